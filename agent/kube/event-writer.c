/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kube/event-writer.h"

#include "agent/kube/event-object.h"
#include "agent/kube/writer.h"
#include "common/cleanup.h"
#include "common/clock.h"

/* Nothing is remembered of an event once it is written: one that has happened before is counted up
 * by a patch, and where the server does not know it (any more) it is created; one that is created
 * twice is counted up. */

#define PATCH_TYPE "application/strategic-merge-patch+json"

enum {
        DEADLINE_SEC = 10,
        BUDGETS_MAX = 128, /* pods whose events are counted */
};

typedef struct Pending Pending;

struct Pending {
        Pending *next;
        char *key; /* "<namespace>/<name>" */
        EventObject object;
        bool exists;      /* as far as we know, on the server */
        uint64_t sent;    /* the count that is under way */
        uint64_t told_at; /* boot time */
};

/* How many events of a pod may still be written: a bucket that fills again with time. */
typedef struct Budget {
        char *pod;
        double left;
        uint64_t at; /* boot time */
} Budget;

struct EventWriter {
        EventWriterSpec spec;
        KubeWriter *writer;
        Pending *oldest;
        size_t n;
        Budget budgets[BUDGETS_MAX];
        uint64_t n_dropped;
        char *trouble; /* that was told */
};

/* ---- budgets ---- */

static Budget *find_budget(EventWriter *writer, const char *pod) {
        Budget *stalest = &writer->budgets[0];

        for (size_t i = 0; i < BUDGETS_MAX; i++) {
                Budget *budget = &writer->budgets[i];

                if (budget->pod && streq(budget->pod, pod))
                        return budget;
                if (budget->at < stalest->at)
                        stalest = budget;
        }
        free(stalest->pod);
        *stalest = (Budget){ .pod = strdup(pod), .left = EVENTS_BURST };
        return stalest;
}

static bool may_write(EventWriter *writer, const char *pod) {
        Budget *budget = find_budget(writer, pod);
        uint64_t now = now_boottime_usec();
        double filled;

        if (budget->at > 0) {
                filled = (double) (now - budget->at) / USEC_PER_SEC / EVENTS_REFILL_SEC;
                budget->left = MIN(budget->left + filled, (double) EVENTS_BURST);
        }
        budget->at = now;
        if (budget->left < 1)
                return false;
        budget->left -= 1;
        return true;
}

/* ---- what is pending ---- */

static Pending *find(const EventWriter *writer, const char *key) {
        for (Pending *pending = writer->oldest; pending; pending = pending->next)
                if (streq(pending->key, key))
                        return pending;
        return NULL;
}

static void drop(EventWriter *writer, Pending *pending) {
        Pending **at = &writer->oldest;

        while (*at != pending)
                at = &(*at)->next;
        *at = pending->next;
        writer->n--;
        event_object_done(&pending->object);
        free(pending->key);
        free(pending);
}

static void give_up(EventWriter *writer, Pending *pending) {
        writer->n_dropped++;
        drop(writer, pending);
}

static void make_room(EventWriter *writer) {
        Pending *oldest = writer->oldest;

        if (writer->n < EVENTS_PENDING_MAX)
                return;
        kube_writer_forget(writer->writer, oldest->key);
        give_up(writer, oldest);
}

static int append(EventWriter *writer, const char *key, Pending **ret) {
        Pending *pending = calloc(1, sizeof(*pending)), **at = &writer->oldest;

        if (!pending)
                return -ENOMEM;
        pending->key = strdup(key);
        if (!pending->key) {
                free(pending);
                return -ENOMEM;
        }
        while (*at)
                at = &(*at)->next;
        *at = pending;
        writer->n++;
        *ret = pending;
        return 0;
}

int event_writer_tell(EventWriter *writer, const char *json) {
        cleanup_with(event_object_done) EventObject object = { 0 };
        cleanup_free char *key = NULL;
        Pending *pending;
        int r = event_object_read(json, &object);

        if (r < 0)
                return r;
        if (asprintf(&key, "%s/%s", object.namespace, object.name) < 0) {
                key = NULL;
                return -ENOMEM;
        }
        pending = find(writer, key);
        if (!pending && !may_write(writer, object.pod)) {
                writer->n_dropped++;
                return -EDQUOT;
        }
        if (!pending) {
                make_room(writer);
                r = append(writer, key, &pending);
                if (r < 0)
                        return r;
                pending->exists = object.count > 1;
        }
        event_object_done(&pending->object);
        pending->object = object;
        object = (EventObject){ 0 };
        pending->told_at = now_boottime_usec();
        return kube_writer_mark(writer->writer, pending->key);
}

/* ---- what is written ---- */

static int print_path(const Pending *pending, char **ret) {
        const EventObject *object = &pending->object;
        int r = asprintf(ret, "/api/v1/namespaces/%s/events%s%s", object->namespace,
                         pending->exists ? "/" : "", pending->exists ? object->name : "");

        if (r < 0)
                *ret = NULL;
        return r < 0 ? -ENOMEM : 0;
}

static int make(const char *key, KubeCall *ret, void *userdata) {
        EventWriter *writer = userdata;
        Pending *pending = find(writer, key);
        char *path;

        if (!pending)
                return 0;
        if (now_boottime_usec() - pending->told_at > EVENTS_AGE_MAX_SEC * USEC_PER_SEC) {
                give_up(writer, pending);
                return 0;
        }
        if (print_path(pending, &path) < 0)
                return -ENOMEM;
        *ret = (KubeCall){
                .method = pending->exists ? "PATCH" : "POST",
                .path = path,
                .content_type = pending->exists ? PATCH_TYPE : NULL,
                .body = pending->exists ? pending->object.patch : pending->object.body,
                .deadline_usec = DEADLINE_SEC * USEC_PER_SEC,
        };
        ret->body_length = strlen(ret->body);
        pending->sent = pending->object.count;
        return 1;
}

/* The body is the event's own: the request has copied it. */
static void unmake(KubeCall *call, void *userdata) {
        freep(&call->path);
}

static void tell_trouble(EventWriter *writer, const KubeAnswer *answer, bool is_written) {
        char text[64];
        const char *error = is_written ? NULL : answer->error ? answer->error : text;

        (void) snprintf(text, sizeof(text), "events are refused with %u", answer->status);
        if (streq_ptr(error, writer->trouble))
                return;
        free(writer->trouble);
        writer->trouble = error ? strdup(error) : NULL;
        if (writer->spec.on_trouble)
                writer->spec.on_trouble(error, answer->status, writer->spec.userdata);
}

static KubeVerdict on_answer(const char *key, const KubeAnswer *answer, void *userdata) {
        EventWriter *writer = userdata;
        Pending *pending = find(writer, key);
        bool is_written = !answer->error && (answer->status == 200 || answer->status == 201);

        if (!pending)
                return KUBE_WRITTEN;
        if (!answer->error && answer->status == (pending->exists ? 404 : 409)) {
                pending->exists = !pending->exists;
                return KUBE_AGAIN;
        }
        tell_trouble(writer, answer, is_written);
        if (answer->error)
                return KUBE_LATER;
        /* A namespace that is going takes no events; nobody would read them. */
        if (!is_written)
                give_up(writer, pending);
        else if (pending->object.count == pending->sent)
                drop(writer, pending);
        else
                pending->exists = true; /* it happened again meanwhile, and is marked */
        return KUBE_WRITTEN;
}

int event_writer_new(sd_event *event, const EventWriterSpec *spec, EventWriter **ret) {
        cleanup_with(event_writer_freep) EventWriter *writer = calloc(1, sizeof(*writer));
        KubeWriterSpec writes = {
                .client = spec->client,
                .parallel = 2,
                .make = make,
                .unmake = unmake,
                .on_answer = on_answer,
                .userdata = writer,
        };
        int r;

        if (!writer)
                return -ENOMEM;
        writer->spec = *spec;
        r = kube_writer_new(event, &writes, &writer->writer);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(writer);
        return 0;
}

EventWriter *event_writer_free(EventWriter *writer) {
        if (!writer)
                return NULL;
        kube_writer_free(writer->writer);
        while (writer->oldest)
                drop(writer, writer->oldest);
        for (size_t i = 0; i < BUDGETS_MAX; i++)
                free(writer->budgets[i].pod);
        free(writer->trouble);
        free(writer);
        return NULL;
}

uint64_t event_writer_dropped(const EventWriter *writer) {
        return writer->n_dropped;
}
