/* SPDX-License-Identifier: Apache-2.0 */
/* Queues and rate-limits events for the API server (client-go: EventCorrelator; their counting is
 * in metrics/event-store.c). */

#include "agent/kubeclient/event-sink.h"

#include "agent/kubeclient/event-object.h"
#include "agent/kubeclient/work-queue.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/dump.h"
#include "common/list.h"
#include "common/text.h"

/* No state is kept about events that were sent. A repeated event is patched with the new count, and
 * created if the server does not have it; an event that already exists is patched. */

#define PATCH_TYPE "application/strategic-merge-patch+json"

enum {
        DEADLINE_SEC = 10,
        TOKEN_BUCKETS_MAX = 128, /* pods with a budget */
};

typedef struct PendingEvent PendingEvent;

struct PendingEvent {
        PendingEvent *next;
        char *key; /* "<namespace>/<name>" */
        EventObject object;
        bool exists;         /* it probably exists at the server */
        uint64_t sent_count; /* the count in flight */
        uint64_t queued_at;  /* boot time */
};

/* A token bucket: how many more events of a pod may be sent. */
typedef struct EventTokenBucket {
        char *pod;
        double tokens;
        uint64_t refilled_at; /* boot time */
} EventTokenBucket;

struct KubeEventSink {
        KubeEventSinkSpec spec;
        KubeWorkQueue *queue;
        PendingEvent *oldest;
        size_t n_pending;
        EventTokenBucket token_buckets[TOKEN_BUCKETS_MAX];
        uint64_t n_dropped;
        char *last_error; /* as last reported */
};

/* ---- budgets ---- */

static EventTokenBucket *find_token_bucket(KubeEventSink *sink, const char *pod) {
        EventTokenBucket *stalest = &sink->token_buckets[0];

        for (size_t i = 0; i < TOKEN_BUCKETS_MAX; i++) {
                EventTokenBucket *bucket = &sink->token_buckets[i];

                if (bucket->pod && streq(bucket->pod, pod))
                        return bucket;
                if (bucket->refilled_at < stalest->refilled_at)
                        stalest = bucket;
        }
        free(stalest->pod);
        *stalest = (EventTokenBucket){ .pod = strdup(pod), .tokens = EVENTS_BURST };
        return stalest;
}

static bool take_event_token(KubeEventSink *sink, const char *pod) {
        EventTokenBucket *bucket = find_token_bucket(sink, pod);
        uint64_t now = now_boottime_usec();
        double filled;

        if (bucket->refilled_at > 0) {
                filled = (double) (now - bucket->refilled_at) / USEC_PER_SEC / EVENTS_REFILL_SEC;
                bucket->tokens = MIN(bucket->tokens + filled, (double) EVENTS_BURST);
        }
        bucket->refilled_at = now;
        if (bucket->tokens < 1)
                return false;
        bucket->tokens -= 1;
        return true;
}

/* ---- pending events ---- */

static PendingEvent *find_pending_event(const KubeEventSink *sink, const char *key) {
        list_foreach(pending, sink->oldest)
                if (streq(pending->key, key))
                        return pending;
        return NULL;
}

static void remove_pending_event(KubeEventSink *sink, PendingEvent *pending) {
        PendingEvent **at = &sink->oldest;

        while (*at != pending)
                at = &(*at)->next;
        *at = pending->next;
        sink->n_pending--;
        event_object_done(&pending->object);
        free(pending->key);
        free(pending);
}

static void drop_pending_event(KubeEventSink *sink, PendingEvent *pending) {
        sink->n_dropped++;
        remove_pending_event(sink, pending);
}

static void drop_oldest_event(KubeEventSink *sink) {
        PendingEvent *oldest = sink->oldest;

        if (sink->n_pending < EVENTS_PENDING_MAX)
                return;
        kube_work_queue_forget(sink->queue, oldest->key);
        drop_pending_event(sink, oldest);
}

static int append_pending_event(KubeEventSink *sink, const char *key, PendingEvent **ret) {
        PendingEvent *pending = calloc(1, sizeof(*pending)), **at = &sink->oldest;

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
        sink->n_pending++;
        *ret = pending;
        return 0;
}

int kube_event_sink_submit(KubeEventSink *sink, const char *json) {
        cleanup_with(event_object_done) EventObject object = { 0 };
        cleanup_free char *key = NULL;
        PendingEvent *pending;
        int r = event_object_parse(json, &object);

        if (r < 0)
                return r;
        key = text_format("%s/%s", object.namespace, object.name);
        if (!key)
                return -ENOMEM;
        pending = find_pending_event(sink, key);
        if (!pending && !take_event_token(sink, object.pod)) {
                sink->n_dropped++;
                return -EDQUOT;
        }
        if (!pending) {
                drop_oldest_event(sink);
                r = append_pending_event(sink, key, &pending);
                if (r < 0)
                        return r;
                pending->exists = object.count > 1;
        }
        event_object_done(&pending->object);
        pending->object = object;
        object = (EventObject){ 0 };
        pending->queued_at = now_boottime_usec();
        return kube_work_queue_add(sink->queue, pending->key);
}

/* ---- requests ---- */

static int format_event_path(const PendingEvent *pending, char **ret) {
        const EventObject *object = &pending->object;

        *ret = text_format("/api/v1/namespaces/%s/events%s%s", object->namespace,
                           pending->exists ? "/" : "", pending->exists ? object->name : "");
        return *ret ? 0 : -ENOMEM;
}

static int build_event_request(const char *key, KubeRequestSpec *ret, void *userdata) {
        KubeEventSink *sink = userdata;
        PendingEvent *pending = find_pending_event(sink, key);
        char *path;

        if (!pending)
                return 0;
        if (now_boottime_usec() - pending->queued_at > EVENTS_AGE_MAX_SEC * USEC_PER_SEC) {
                drop_pending_event(sink, pending);
                return 0;
        }
        if (format_event_path(pending, &path) < 0)
                return -ENOMEM;
        *ret = (KubeRequestSpec){
                .method = pending->exists ? "PATCH" : "POST",
                .path = path,
                .content_type = pending->exists ? PATCH_TYPE : NULL,
                .body = pending->exists ? pending->object.patch : pending->object.body,
                .deadline_usec = DEADLINE_SEC * USEC_PER_SEC,
        };
        ret->body_length = strlen(ret->body);
        pending->sent_count = pending->object.count;
        return 1;
}

/* The body belongs to the event; the request has copied it. */
static void free_event_request(KubeRequestSpec *call, void *userdata) {
        freep(&call->path);
}

static void report_event_error(KubeEventSink *sink, const KubeResponse *response, bool is_written) {
        char text[64];
        const char *error = is_written ? NULL : response->error ? response->error : text;

        (void) snprintf(text, sizeof(text), "events are refused with status %u", response->status);
        if (streq_ptr(error, sink->last_error))
                return;
        (void) text_replace(&sink->last_error, error);
        if (sink->spec.on_error)
                sink->spec.on_error(error, response->status, sink->spec.userdata);
}

static KubeWorkResult on_event_response(const char *key, const KubeResponse *response,
                                        void *userdata) {
        KubeEventSink *sink = userdata;
        PendingEvent *pending = find_pending_event(sink, key);
        bool is_written = !response->error && (response->status == 200 || response->status == 201);

        if (!pending)
                return KUBE_WORK_DONE;
        if (!response->error && response->status == (pending->exists ? 404 : 409)) {
                pending->exists = !pending->exists;
                return KUBE_WORK_RETRY_NOW;
        }
        report_event_error(sink, response, is_written);
        if (response->error)
                return KUBE_WORK_RETRY_LATER;
        /* A terminating namespace accepts no events. */
        if (!is_written)
                drop_pending_event(sink, pending);
        else if (pending->object.count == pending->sent_count)
                remove_pending_event(sink, pending);
        else
                pending->exists = true; /* the event has happened again in the meantime, and is
                                         * marked */
        return KUBE_WORK_DONE;
}

int kube_event_sink_new(sd_event *event, const KubeEventSinkSpec *spec, KubeEventSink **ret) {
        cleanup_with(kube_event_sink_freep) KubeEventSink *sink = calloc(1, sizeof(*sink));
        KubeWorkQueueSpec writes = {
                .client = spec->client,
                .max_parallel = 2,
                .build_request = build_event_request,
                .free_request = free_event_request,
                .on_response = on_event_response,
                .userdata = sink,
        };
        int r;

        if (!sink)
                return -ENOMEM;
        sink->spec = *spec;
        r = kube_work_queue_new(event, &writes, &sink->queue);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(sink);
        return 0;
}

KubeEventSink *kube_event_sink_free(KubeEventSink *sink) {
        if (!sink)
                return NULL;
        kube_work_queue_free(sink->queue);
        while (sink->oldest)
                remove_pending_event(sink, sink->oldest);
        for (size_t i = 0; i < TOKEN_BUCKETS_MAX; i++)
                free(sink->token_buckets[i].pod);
        free(sink->last_error);
        free(sink);
        return NULL;
}

void kube_event_sink_dump(const KubeEventSink *sink, FILE *out) {
        dump_line(out, 1, "events: %zu pending of %d, %llu dropped", sink->n_pending,
                  EVENTS_PENDING_MAX, (unsigned long long) sink->n_dropped);
        if (sink->last_error)
                dump_line(out, 2, "last error: %s", sink->last_error);
        kube_work_queue_dump(sink->queue, "events", out);
}
