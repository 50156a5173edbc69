/* SPDX-License-Identifier: Apache-2.0 */
/* The order of pods (mainstay.dev/after): the pods that a pod waits for, the pods that are checked
 * again when those change, and the steps in which pods are stopped. The meaning of the annotation
 * is in model/pod-order.h. */

#include "agent/model/pod-order.h"
#include "agent/pods/manager/pod-manager-private.h"
#include "common/cleanup.h"
#include "common/text.h"

/* ---- start ---- */

static PodOrderPresence order_presence(const PodEntry *entry) {
        if (!entry->worker)
                return entry->start_error ? POD_IS_NOT_READY : POD_IS_MISSING;
        return pod_worker_is_desired(entry->worker) &&
                               pod_status_is_ready_or_done(pod_worker_status(entry->worker))
                       ? POD_IS_READY
                       : POD_IS_NOT_READY;
}

static PodOrderPresence find_order_presence(const PodManager *manager, const PodAfterName *name) {
        PodOrderPresence best = POD_IS_MISSING;

        for (PodEntry *entry = manager->entries; entry; entry = entry->next_entry) {
                const Pod *pod = entry->worker ? pod_worker_pod(entry->worker) : entry->next;

                if (!pod || !pod_after_means(name, pod))
                        continue;
                entry->presence = order_presence(entry);
                best = MAX(best, entry->presence);
        }
        return best;
}

/* The pods of these entries (NULL: all), in an array that the caller frees; NULL: out of memory.
 */
static const Pod **list_pods_to_order(const PodManager *manager, order_filter_t filter,
                                      size_t *ret_n) {
        const Pod **pods;
        size_t n = 0;

        for (const PodEntry *entry = manager->entries; entry; entry = entry->next_entry)
                n++;
        pods = calloc(n + 1, sizeof(*pods));
        n = 0;
        for (const PodEntry *entry = manager->entries; pods && entry; entry = entry->next_entry)
                if (entry->worker && (!filter || filter(manager, entry)))
                        pods[n++] = pod_worker_pod(entry->worker);
        *ret_n = n;
        return pods;
}

/* "pods wait for one another: …" if the references form a cycle; otherwise NULL. */
static char *explain_order_cycle(const PodManager *manager, const Pod *pod) {
        size_t n, i = 0;
        cleanup_free const Pod **pods = list_pods_to_order(manager, NULL, &n);
        cleanup_free size_t *next = pods ? calloc(n + 1, sizeof(*next)) : NULL;
        cleanup_free char *cycle = NULL;

        if (!next || pod_order_find_cycles(pods, n, next) < 0)
                return NULL;
        while (i < n && pods[i] != pod)
                i++;
        if (i == n || next[i] == n)
                return NULL;
        cycle = pod_order_format_cycle(pods, n, next, i);
        return cycle ? text_format("pods wait for one another: %s", cycle) : NULL;
}

/* "waits for default/db, which does not exist, default/cache, which is not ready" */
static PodOrderPresence print_awaited_pods(const PodManager *manager, const Pod *pod, FILE *out) {
        PodOrderPresence worst = POD_IS_READY;
        const char *cursor = NULL;
        PodAfterName name;

        while (pod_after_next(pod, &cursor, &name)) {
                PodOrderPresence presence = find_order_presence(manager, &name);

                if (presence == POD_IS_READY)
                        continue;
                fprintf(out, "%s %.*s/%.*s, which %s",
                        worst == POD_IS_READY ? "waits for" : " and for",
                        (int) name.namespace_length, name.namespace, (int) name.name_length,
                        name.name, presence == POD_IS_MISSING ? "does not exist" : "is not ready");
                worst = MIN(worst, presence);
        }
        return worst;
}

PodOrderState pod_manager_find_awaited_pods(const Pod *pod, char **ret_message, void *userdata) {
        const PodManager *manager = userdata;
        cleanup_free char *text = NULL;
        size_t length;
        FILE *out = open_memstream(&text, &length);
        PodOrderPresence worst = out ? print_awaited_pods(manager, pod, out) : POD_IS_NOT_READY;

        if (out && fclose(out) == 0)
                *ret_message = TAKE_PTR(text);
        if (worst == POD_IS_READY)
                return POD_ORDER_MET;
        text = explain_order_cycle(manager, pod);
        if (!text)
                return worst == POD_IS_MISSING ? POD_ORDER_BROKEN : POD_ORDER_AWAITED;
        free(*ret_message);
        *ret_message = TAKE_PTR(text);
        return POD_ORDER_BROKEN;
}

static void wake_waiting_pods(const PodManager *manager, const Pod *pod) {
        for (PodEntry *other = manager->entries; other; other = other->next_entry)
                if (other->worker && pod_worker_awaits_pods(other->worker) &&
                    pod_is_after(pod_worker_pod(other->worker), pod))
                        pod_entry_mark_dirty(other);
}

void pod_manager_notice_order(const PodManager *manager, PodEntry *entry, bool is_gone) {
        PodOrderPresence presence;

        if (manager->context.n_awaiting == 0)
                return;
        presence = is_gone ? POD_IS_MISSING : order_presence(entry);
        if (presence == entry->presence)
                return;
        entry->presence = presence;
        wake_waiting_pods(manager, pod_worker_pod(entry->worker));
}

/* ---- stop ---- */

size_t pod_manager_choose_stop_steps(const PodManager *manager, order_filter_t filter) {
        size_t n, n_steps = 0, i = 0;
        cleanup_free const Pod **pods = list_pods_to_order(manager, filter, &n);
        cleanup_free size_t *steps = pods ? calloc(n + 1, sizeof(*steps)) : NULL;
        bool is_known = steps && pod_order_stop_steps(pods, n, steps, &n_steps) >= 0;

        for (PodEntry *entry = manager->entries; entry; entry = entry->next_entry)
                if (entry->worker && filter(manager, entry))
                        entry->stop_step = is_known ? steps[i++] : 0;
        return MAX(n_steps, (size_t) 1);
}
