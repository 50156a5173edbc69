/* SPDX-License-Identifier: Apache-2.0 */

/* A key is in the queue from the time at which it is marked until it is clean. Requests for due
 * keys are sent in the order in which the keys were marked. While the server is unreachable, one
 * request at a time tests it; once it is reachable, all keys are due. */

#include "agent/kubeclient/work-queue.h"

#include "agent/kubeclient/request-back-off.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/dump.h"
#include "common/event-source.h"
#include "common/list.h"

#include <errno.h>

enum {
        WORK_QUEUE_PRIORITY = SD_EVENT_PRIORITY_NORMAL + 20,
        IMMEDIATE_RETRIES_MAX = 5, /* in a row */
        RETRIES_APART_SEC = 1,
        SOON_MSEC = 500,
};

typedef struct KubeWorkItem KubeWorkItem;
struct KubeWorkItem {
        KubeWorkItem *next;
        KubeWorkQueue *queue;
        char *key;
        KubeRequest *request;
        bool is_dirty;
        bool is_held;      /* a callback for it is running */
        bool is_forgotten; /* during the callback */
        unsigned n_immediate_retries;
        KubeBackOff back_off;
        uint64_t due_at; /* boot time */
};

struct KubeWorkQueue {
        KubeWorkQueueSpec spec;
        sd_event_source *dispatch; /* at the end of the turn */
        sd_event_source *timer;    /* at the next due time */
        KubeReconnectListener listener;
        KubeWorkItem *items; /* in the order in which they were marked */
        unsigned n_in_flight;
        KubeBackOff back_off;     /* while the server is unreachable */
        uint64_t server_retry_at; /* of the next attempt; 0: the server is reachable */
        uint64_t retried_at;
        unsigned held;
        bool is_doomed;
};

/* ---- entries ---- */

static KubeWorkItem *find_work_item(const KubeWorkQueue *queue, const char *key) {
        list_foreach(item, queue->items)
                if (!item->is_forgotten && streq(item->key, key))
                        return item;
        return NULL;
}

static void unlink_work_item(KubeWorkItem *item) {
        KubeWorkItem **at = &item->queue->items;

        while (*at && *at != item)
                at = &(*at)->next;
        if (*at)
                *at = item->next;
}

static void cancel_item_request(KubeWorkItem *item) {
        if (!item->request)
                return;
        item->request = kube_request_cancel(item->request);
        item->queue->n_in_flight--;
}

static void work_item_free(KubeWorkItem *item) {
        if (item->is_held) {
                item->is_forgotten = true;
                return;
        }
        cancel_item_request(item);
        unlink_work_item(item);
        free(item->key);
        free(item);
}

static int work_item_new(KubeWorkQueue *queue, const char *key, KubeWorkItem **ret) {
        KubeWorkItem *item = calloc(1, sizeof(*item)), **at = &queue->items;

        if (!item)
                return -ENOMEM;
        item->queue = queue;
        item->key = strdup(key);
        if (!item->key) {
                free(item);
                return -ENOMEM;
        }
        while (*at)
                at = &(*at)->next;
        *at = item;
        *ret = item;
        return 0;
}

static void hold_work_item(KubeWorkItem *item) {
        item->is_held = true;
        item->queue->held++;
}

/* Whether the entry and the queue are still in use; otherwise they are freed. */
static bool release_work_item(KubeWorkItem *item) {
        KubeWorkQueue *queue = item->queue;
        bool is_wanted = !item->is_forgotten && !queue->is_doomed;

        item->is_held = false;
        if (item->is_forgotten)
                work_item_free(item);
        if (--queue->held == 0 && queue->is_doomed)
                kube_work_queue_free(queue);
        return is_wanted;
}

/* ---- due times ---- */

/* One request at a time while the server is unreachable. */
static unsigned count_permitted_requests(const KubeWorkQueue *queue) {
        return queue->server_retry_at > 0 ? 1 : queue->spec.max_parallel;
}

static void arm_work_queue_timer(KubeWorkQueue *queue) {
        uint64_t due = UINT64_MAX;

        list_foreach(item, queue->items)
                if (item->is_dirty && !item->request)
                        due = MIN(due, item->due_at);
        due = due == UINT64_MAX ? due : MAX(due, queue->server_retry_at);
        if (due == UINT64_MAX || queue->n_in_flight >= count_permitted_requests(queue)) {
                (void) sd_event_source_set_enabled(queue->timer, SD_EVENT_OFF);
                return;
        }
        (void) event_timer_arm_at(queue->timer, due);
}

static void schedule_dispatch(KubeWorkQueue *queue) {
        if (queue->is_doomed)
                return;
        (void) sd_event_source_set_enabled(queue->dispatch, SD_EVENT_ONESHOT);
}

static void retry_item_later(KubeWorkItem *item, uint64_t retry_after_usec) {
        KubeWorkQueue *queue = item->queue;
        uint64_t now = now_boottime_usec();
        uint64_t retry;

        item->is_dirty = true;
        item->n_immediate_retries = 0;
        item->due_at = now + kube_back_off_next(&item->back_off, &kube_back_off_default, now,
                                                retry_after_usec, back_off_random());
        /* At most one retry a second for all keys together. */
        retry = queue->retried_at + RETRIES_APART_SEC * USEC_PER_SEC;
        item->due_at = MAX(item->due_at, retry);
        queue->retried_at = MAX(now, retry);
}

static void delay_until_reachable(KubeWorkItem *item) {
        KubeWorkQueue *queue = item->queue;
        uint64_t now = now_boottime_usec();

        item->is_dirty = true;
        item->due_at = now;
        queue->server_retry_at = now + kube_back_off_next(&queue->back_off, &kube_back_off_default,
                                                          now, 0, back_off_random());
}

/* All nodes of a cluster detect it at the same moment. */
static void on_queue_reconnect(bool was_down, void *userdata) {
        KubeWorkQueue *queue = userdata;

        if (queue->server_retry_at == 0)
                return;
        kube_back_off_reset(&queue->back_off);
        queue->server_retry_at = 0;
        queue->retried_at = 0; /* all keys are due, including those with their own delay */
        list_foreach(item, queue->items)
                item->due_at = now_boottime_usec() + back_off_random() % (2 * USEC_PER_SEC);
        schedule_dispatch(queue);
}

/* ---- responses ---- */

static void apply_work_result(KubeWorkItem *item, KubeWorkResult result,
                              uint64_t retry_after_usec) {
        switch (result) {
        case KUBE_WORK_DONE:
                kube_back_off_reset(&item->back_off);
                item->n_immediate_retries = 0;
                item->due_at = 0;
                if (!item->is_dirty)
                        work_item_free(item);
                break;
        case KUBE_WORK_RETRY_NOW:
                item->is_dirty = true;
                item->due_at = 0;
                if (++item->n_immediate_retries > IMMEDIATE_RETRIES_MAX)
                        retry_item_later(item, retry_after_usec);
                break;
        case KUBE_WORK_RETRY_SOON:
                item->is_dirty = true;
                item->due_at = now_boottime_usec() + SOON_MSEC * USEC_PER_MSEC;
                break;
        case KUBE_WORK_RETRY_LATER:
                retry_item_later(item, retry_after_usec);
                break;
        }
}

static bool is_retriable_response(const KubeResponse *response) {
        return response->error || response->status >= 500 || response->status == 429 ||
               response->status == 401;
}

static void on_item_response(const KubeResponse *response, void *userdata) {
        KubeWorkItem *item = userdata;
        KubeWorkQueue *queue = item->queue;
        KubeWorkResult result;

        item->request = NULL;
        queue->n_in_flight--;
        schedule_dispatch(queue);
        if (response->error && !kube_client_state(queue->spec.client).is_reached) {
                delay_until_reachable(item);
                return;
        }
        on_queue_reconnect(/* was_down= */ false, queue);
        if (is_retriable_response(response)) {
                retry_item_later(item, response->retry_after_usec);
                return;
        }
        hold_work_item(item);
        result = queue->spec.on_response(item->key, response, queue->spec.userdata);
        if (release_work_item(item))
                apply_work_result(item, result, response->retry_after_usec);
}

/* ---- requests ---- */

static void free_const_text(const char *text) {
        char *p;

        memcpy(&p, &text, sizeof(p));
        free(p);
}

void kube_request_spec_free(KubeRequestSpec *request, void *userdata) {
        free_const_text(request->path);
        free_const_text(request->body);
}

static int send_item_request(KubeWorkItem *item, KubeRequestSpec *request_spec) {
        KubeWorkQueue *queue = item->queue;
        int r;

        request_spec->on_data = NULL;
        request_spec->on_open = NULL;
        request_spec->on_done = on_item_response;
        request_spec->userdata = item;
        r = kube_client_start_request(queue->spec.client, request_spec, &item->request, NULL);
        if (r < 0)
                return r;
        queue->n_in_flight++;
        return 0;
}

static void start_work_item(KubeWorkItem *item) {
        KubeWorkQueue *queue = item->queue;
        KubeRequestSpec request_spec = { 0 };
        int r;

        item->is_dirty = false;
        hold_work_item(item);
        r = queue->spec.build_request(item->key, &request_spec, queue->spec.userdata);
        if (r > 0) {
                r = item->is_forgotten || queue->is_doomed ? -ECANCELED
                                                           : send_item_request(item, &request_spec);
                if (queue->spec.free_request)
                        queue->spec.free_request(&request_spec, queue->spec.userdata);
                r = r < 0 ? r : 1;
        }
        if (!release_work_item(item) || r > 0)
                return;
        if (r < 0)
                retry_item_later(item, 0);
        else if (!item->is_dirty)
                work_item_free(item);
}

static KubeWorkItem *find_due_item(const KubeWorkQueue *queue) {
        uint64_t now = now_boottime_usec();

        if (queue->n_in_flight >= count_permitted_requests(queue) || queue->server_retry_at > now)
                return NULL;
        list_foreach(item, queue->items)
                if (item->is_dirty && !item->request && !item->is_held && item->due_at <= now)
                        return item;
        return NULL;
}

static void dispatch_work_items(KubeWorkQueue *queue) {
        KubeWorkItem *item;

        queue->held++;
        while (!queue->is_doomed && (item = find_due_item(queue)))
                start_work_item(item);
        if (--queue->held > 0)
                return;
        if (queue->is_doomed)
                kube_work_queue_free(queue);
        else
                arm_work_queue_timer(queue);
}

static int on_dispatch_due(sd_event_source *source, void *userdata) {
        dispatch_work_items(userdata);
        return 0;
}

static int on_work_queue_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        dispatch_work_items(userdata);
        return 0;
}

/* ---- construction ---- */

int kube_work_queue_add(KubeWorkQueue *queue, const char *key) {
        KubeWorkItem *item = find_work_item(queue, key);
        int r = item ? 0 : work_item_new(queue, key, &item);

        if (r < 0)
                return r;
        item->is_dirty = true;
        schedule_dispatch(queue);
        return 0;
}

void kube_work_queue_forget(KubeWorkQueue *queue, const char *key) {
        KubeWorkItem *item = find_work_item(queue, key);

        if (!item)
                return;
        work_item_free(item);
        schedule_dispatch(queue);
}

size_t kube_work_queue_length(const KubeWorkQueue *queue) {
        size_t n = 0;

        list_foreach(item, queue->items)
                n += !item->is_forgotten;
        return n;
}

static void dump_work_item(const KubeWorkItem *item, FILE *out) {
        char due[DUMP_DURATION_SIZE];

        if (item->request)
                dump_line(out, 2, "item: %s, in flight%s", item->key,
                          item->is_dirty ? ", changed again" : "");
        else
                dump_line(out, 2, "item: %s, due %s, %u failures", item->key,
                          dump_format_due(due, item->due_at), item->back_off.n_failures);
}

void kube_work_queue_dump(const KubeWorkQueue *queue, const char *name, FILE *out) {
        char due[DUMP_DURATION_SIZE];

        dump_line(out, 1, "work queue: %s, length %zu, in flight %u of %u", name,
                  kube_work_queue_length(queue), queue->n_in_flight, queue->spec.max_parallel);
        if (queue->server_retry_at > 0)
                dump_line(out, 2, "the server is not reached, next attempt: %s",
                          dump_format_due(due, queue->server_retry_at));
        list_foreach(item, queue->items)
                if (!item->is_forgotten)
                        dump_work_item(item, out);
        dump_timer(out, 2, "next item", queue->timer);
}

int kube_work_queue_new(sd_event *event, const KubeWorkQueueSpec *spec, KubeWorkQueue **ret) {
        cleanup_with(kube_work_queue_freep) KubeWorkQueue *queue = calloc(1, sizeof(*queue));
        int r;

        if (!queue)
                return -ENOMEM;
        queue->spec = *spec;
        queue->spec.max_parallel = MAX(spec->max_parallel, 1);
        queue->listener =
                (KubeReconnectListener){ .on_reached = on_queue_reconnect, .userdata = queue };
        kube_client_add_listener(spec->client, &queue->listener);
        r = event_add_disabled_defer(event, &queue->dispatch, WORK_QUEUE_PRIORITY, on_dispatch_due,
                                     queue);
        if (r < 0)
                return r;
        r = event_add_disabled_timer(event, &queue->timer, CLOCK_BOOTTIME, 10 * USEC_PER_MSEC,
                                     on_work_queue_timer, queue);
        if (r < 0)
                return r;
        r = sd_event_source_set_priority(queue->timer, WORK_QUEUE_PRIORITY);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(queue);
        return 0;
}

KubeWorkQueue *kube_work_queue_free(KubeWorkQueue *queue) {
        if (!queue)
                return NULL;
        if (!queue->is_doomed) {
                queue->dispatch = sd_event_source_disable_unref(queue->dispatch);
                queue->timer = sd_event_source_disable_unref(queue->timer);
                list_foreach(item, queue->items)
                        cancel_item_request(item);
                kube_client_remove_listener(queue->spec.client, &queue->listener);
        }
        queue->is_doomed = true;
        if (queue->held > 0)
                return NULL;
        while (queue->items)
                work_item_free(queue->items);
        free(queue);
        return NULL;
}
