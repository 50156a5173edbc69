/* SPDX-License-Identifier: Apache-2.0 */

/* A key is here from when it is marked until it is clean. At each turn those whose time has come
 * get their request, in the order in which they were marked. While the server is not there, one
 * request asks for all whether it is again; when it is, all are due. */

#include "agent/kube/writer.h"

#include "agent/kube/backoff.h"
#include "common/cleanup.h"
#include "common/clock.h"

#include <errno.h>

enum {
        WRITER_PRIORITY = SD_EVENT_PRIORITY_NORMAL + 20,
        AGAIN_MAX = 5, /* at once, one after another */
        RETRIES_APART_SEC = 1,
};

typedef struct Entry Entry;
struct Entry {
        Entry *next;
        KubeWriter *writer;
        char *key;
        KubeRequest *request;
        bool is_dirty;
        bool is_held;      /* somebody is asked about it */
        bool is_forgotten; /* meanwhile */
        unsigned n_again;
        Backoff backoff;
        uint64_t due; /* boot time */
};

struct KubeWriter {
        KubeWriterSpec spec;
        sd_event_source *turn;  /* as soon as may be */
        sd_event_source *timer; /* later */
        KubeListener listener;
        Entry *entries; /* as they were marked */
        unsigned n_under_way;
        Backoff backoff;     /* while there is no server */
        uint64_t server_due; /* not before; 0: it is there */
        uint64_t retried_at;
        unsigned held;
        bool is_doomed;
};

/* ---- entries ---- */

static Entry *find(const KubeWriter *writer, const char *key) {
        for (Entry *entry = writer->entries; entry; entry = entry->next)
                if (!entry->is_forgotten && streq(entry->key, key))
                        return entry;
        return NULL;
}

static void unlink_entry(Entry *entry) {
        Entry **at = &entry->writer->entries;

        while (*at && *at != entry)
                at = &(*at)->next;
        if (*at)
                *at = entry->next;
}

static void end_request(Entry *entry) {
        if (!entry->request)
                return;
        entry->request = kube_request_cancel(entry->request);
        entry->writer->n_under_way--;
}

static void entry_free(Entry *entry) {
        if (entry->is_held) {
                entry->is_forgotten = true;
                return;
        }
        end_request(entry);
        unlink_entry(entry);
        free(entry->key);
        free(entry);
}

static int entry_new(KubeWriter *writer, const char *key, Entry **ret) {
        Entry *entry = calloc(1, sizeof(*entry)), **at = &writer->entries;

        if (!entry)
                return -ENOMEM;
        entry->writer = writer;
        entry->key = strdup(key);
        if (!entry->key) {
                free(entry);
                return -ENOMEM;
        }
        while (*at)
                at = &(*at)->next;
        *at = entry;
        *ret = entry;
        return 0;
}

static void hold(Entry *entry) {
        entry->is_held = true;
        entry->writer->held++;
}

/* Whether the entry and the writer are still wanted; what is not, is gone. */
static bool release(Entry *entry) {
        KubeWriter *writer = entry->writer;
        bool is_wanted = !entry->is_forgotten && !writer->is_doomed;

        entry->is_held = false;
        if (entry->is_forgotten)
                entry_free(entry);
        if (--writer->held == 0 && writer->is_doomed)
                kube_writer_free(writer);
        return is_wanted;
}

/* ---- when ---- */

static void arm(KubeWriter *writer) {
        uint64_t due = UINT64_MAX;

        for (const Entry *entry = writer->entries; entry; entry = entry->next)
                if (entry->is_dirty && !entry->request)
                        due = MIN(due, entry->due);
        due = due == UINT64_MAX ? due : MAX(due, writer->server_due);
        if (due == UINT64_MAX || writer->n_under_way >= writer->spec.parallel) {
                (void) sd_event_source_set_enabled(writer->timer, SD_EVENT_OFF);
                return;
        }
        (void) sd_event_source_set_time(writer->timer, due);
        (void) sd_event_source_set_enabled(writer->timer, SD_EVENT_ONESHOT);
}

static void wake(KubeWriter *writer) {
        if (writer->is_doomed)
                return;
        (void) sd_event_source_set_enabled(writer->turn, SD_EVENT_ONESHOT);
}

static void wait_later(Entry *entry, uint64_t retry_after_usec) {
        KubeWriter *writer = entry->writer;
        uint64_t now = now_boottime_usec();
        uint64_t retry;

        entry->is_dirty = true;
        entry->n_again = 0;
        entry->due = now + backoff_next(&entry->backoff, &backoff_pace, now, retry_after_usec,
                                        chance_now());
        /* Each has its turn, so that all together are no more than one a second. */
        retry = writer->retried_at + RETRIES_APART_SEC * USEC_PER_SEC;
        entry->due = MAX(entry->due, retry);
        writer->retried_at = MAX(now, retry);
}

static void wait_for_server(Entry *entry) {
        KubeWriter *writer = entry->writer;
        uint64_t now = now_boottime_usec();

        entry->is_dirty = true;
        entry->due = now;
        writer->server_due =
                now + backoff_next(&writer->backoff, &backoff_pace, now, 0, chance_now());
}

/* All nodes of a cluster hear of it at once. */
static void on_reached(void *userdata) {
        KubeWriter *writer = userdata;

        if (writer->server_due == 0)
                return;
        backoff_reset(&writer->backoff);
        writer->server_due = 0;
        for (Entry *entry = writer->entries; entry; entry = entry->next)
                entry->due = now_boottime_usec() + chance_now() % (2 * USEC_PER_SEC);
        wake(writer);
}

/* ---- answers ---- */

static void take_verdict(Entry *entry, KubeVerdict verdict, uint64_t retry_after_usec) {
        switch (verdict) {
        case KUBE_WRITTEN:
                backoff_reset(&entry->backoff);
                entry->n_again = 0;
                entry->due = 0;
                if (!entry->is_dirty)
                        entry_free(entry);
                break;
        case KUBE_AGAIN:
                entry->is_dirty = true;
                entry->due = 0;
                if (++entry->n_again > AGAIN_MAX)
                        wait_later(entry, retry_after_usec);
                break;
        case KUBE_LATER:
                wait_later(entry, retry_after_usec);
                break;
        }
}

static bool is_retried(const KubeAnswer *answer) {
        return answer->error || answer->status >= 500 || answer->status == 429 ||
               answer->status == 401;
}

static void on_done(const KubeAnswer *answer, void *userdata) {
        Entry *entry = userdata;
        KubeWriter *writer = entry->writer;
        KubeVerdict verdict;

        entry->request = NULL;
        writer->n_under_way--;
        wake(writer);
        if (answer->error && !kube_client_state(writer->spec.client).is_reached) {
                wait_for_server(entry);
                return;
        }
        on_reached(writer);
        if (is_retried(answer)) {
                wait_later(entry, answer->retry_after_usec);
                return;
        }
        hold(entry);
        verdict = writer->spec.on_answer(entry->key, answer, writer->spec.userdata);
        if (release(entry))
                take_verdict(entry, verdict, answer->retry_after_usec);
}

/* ---- requests ---- */

static int call(Entry *entry, KubeCall *made) {
        KubeWriter *writer = entry->writer;
        int r;

        made->on_data = NULL;
        made->on_open = NULL;
        made->on_done = on_done;
        made->userdata = entry;
        r = kube_client_call(writer->spec.client, made, &entry->request, NULL);
        if (r >= 0)
                writer->n_under_way++;
        return r;
}

static void begin(Entry *entry) {
        KubeWriter *writer = entry->writer;
        KubeCall made = { 0 };
        int r;

        entry->is_dirty = false;
        hold(entry);
        r = writer->spec.make(entry->key, &made, writer->spec.userdata);
        if (r > 0) {
                r = entry->is_forgotten || writer->is_doomed ? -ECANCELED : call(entry, &made);
                if (writer->spec.unmake)
                        writer->spec.unmake(&made, writer->spec.userdata);
                r = r < 0 ? r : 1;
        }
        if (!release(entry) || r > 0)
                return;
        if (r < 0)
                wait_later(entry, 0);
        else if (!entry->is_dirty)
                entry_free(entry);
}

/* With no server there is one at a time. */
static Entry *find_due(const KubeWriter *writer) {
        uint64_t now = now_boottime_usec();
        unsigned parallel = writer->server_due > 0 ? 1 : writer->spec.parallel;

        if (writer->n_under_way >= parallel || writer->server_due > now)
                return NULL;
        for (Entry *entry = writer->entries; entry; entry = entry->next)
                if (entry->is_dirty && !entry->request && !entry->is_held && entry->due <= now)
                        return entry;
        return NULL;
}

static void take_turn(KubeWriter *writer) {
        Entry *entry;

        writer->held++;
        while (!writer->is_doomed && (entry = find_due(writer)))
                begin(entry);
        if (--writer->held > 0)
                return;
        if (writer->is_doomed)
                kube_writer_free(writer);
        else
                arm(writer);
}

static int on_turn(sd_event_source *source, void *userdata) {
        take_turn(userdata);
        return 0;
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        take_turn(userdata);
        return 0;
}

/* ---- life ---- */

int kube_writer_mark(KubeWriter *writer, const char *key) {
        Entry *entry = find(writer, key);
        int r = entry ? 0 : entry_new(writer, key, &entry);

        if (r < 0)
                return r;
        entry->is_dirty = true;
        wake(writer);
        return 0;
}

void kube_writer_forget(KubeWriter *writer, const char *key) {
        Entry *entry = find(writer, key);

        if (!entry)
                return;
        entry_free(entry);
        wake(writer);
}

size_t kube_writer_pending(const KubeWriter *writer) {
        size_t n = 0;

        for (const Entry *entry = writer->entries; entry; entry = entry->next)
                n += !entry->is_forgotten;
        return n;
}

int kube_writer_new(sd_event *event, const KubeWriterSpec *spec, KubeWriter **ret) {
        cleanup_with(kube_writer_freep) KubeWriter *writer = calloc(1, sizeof(*writer));
        int r;

        if (!writer)
                return -ENOMEM;
        writer->spec = *spec;
        writer->spec.parallel = MAX(spec->parallel, 1);
        writer->listener = (KubeListener){ .on_reached = on_reached, .userdata = writer };
        kube_client_listen(spec->client, &writer->listener);
        r = sd_event_add_defer(event, &writer->turn, on_turn, writer);
        if (r >= 0)
                r = sd_event_source_set_enabled(writer->turn, SD_EVENT_OFF);
        if (r >= 0)
                r = sd_event_source_set_priority(writer->turn, WRITER_PRIORITY);
        if (r >= 0)
                r = sd_event_add_time(event, &writer->timer, CLOCK_BOOTTIME, 0, 10 * USEC_PER_MSEC,
                                      on_timer, writer);
        if (r >= 0)
                r = sd_event_source_set_enabled(writer->timer, SD_EVENT_OFF);
        if (r >= 0)
                r = sd_event_source_set_priority(writer->timer, WRITER_PRIORITY);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(writer);
        return 0;
}

KubeWriter *kube_writer_free(KubeWriter *writer) {
        if (!writer)
                return NULL;
        if (!writer->is_doomed) {
                writer->turn = sd_event_source_disable_unref(writer->turn);
                writer->timer = sd_event_source_disable_unref(writer->timer);
                for (Entry *entry = writer->entries; entry; entry = entry->next)
                        end_request(entry);
                kube_client_ignore(writer->spec.client, &writer->listener);
        }
        writer->is_doomed = true;
        if (writer->held > 0)
                return NULL;
        while (writer->entries)
                entry_free(writer->entries);
        free(writer);
        return NULL;
}
