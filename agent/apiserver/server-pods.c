/* SPDX-License-Identifier: Apache-2.0 */
/* The pods that the API server has bound to this node, as desired pods; and this node's pods,
 * marked for the status writer. */

#include "agent/apiserver/server-pods.h"

#include "agent/apiserver/daemonset-pod-adoption.h"
#include "agent/apiserver/pod-status-writer.h"
#include "agent/apiserver/pod-watch.h"
#include "agent/apiserver/terminated-pods.h"
#include "agent/daemonset/rules/rules.h"
#include "agent/model/json.h"
#include "agent/model/object-identity.h"
#include "agent/model/pod-adoption.h"
#include "agent/pods/pod/pod-preemption.h"
#include "common/cleanup.h"
#include "common/dump.h"
#include "common/log.h"
#include "common/text.h"

struct ApiServerPods {
        bool is_of_other_cluster; /* so pods of an earlier agent have been forgotten */
        ApiServerPodsSpec spec;
        PodTable table;
        RemotePodWatch *watch;
        PodStatusWriter *writer;
        bool awaits_local_pod; /* an API pod cannot start until a local pod changes */
};

/* ---- unused entries ---- */

static bool is_pod_unreferenced(const ApiServerPods *pods, const ApiServerPod *pod) {
        if (pod->remote.exists || pod->bound.desired || pod->local.uid)
                return false;
        return !pod->local.is_api_pod || pod_watch_is_synced(pods->watch);
}

static void remove_unreferenced_pods(void *userdata) {
        ApiServerPods *pods = userdata;
        ApiServerPod **link = &pods->table.first;

        while (*link) {
                ApiServerPod *pod = *link;

                if (!is_pod_unreferenced(pods, pod)) {
                        link = &pod->next;
                        continue;
                }
                pod_status_writer_forget(pods->writer, pod);
                if (pod->local.is_api_pod && pod->local.final_uid)
                        terminated_pods_remove(pods->spec.cache, pod->local.final_uid);
                pod_table_remove(link);
        }
}

/* ---- construction ---- */

static void on_watched_pod_changed(const ApiServerPod *pod, void *userdata) {
        ApiServerPods *pods = userdata;

        pod_status_writer_mark(pods->writer, pod);
}

static void on_watched_list_end(void *userdata) {
        ApiServerPods *pods = userdata;

        pod_status_writer_mark_all(pods->writer);
}

static void on_watch_answered(void *userdata) {
        ApiServerPods *pods = userdata;

        pods->spec.on_answered(pods->spec.userdata);
}

static void on_watched_pod_unbound(const Pod *pod, void *userdata) {
        ApiServerPods *pods = userdata;

        pods->spec.on_unbound(pod, pods->spec.userdata);
}

static void request_recompute(void *userdata) {
        ApiServerPods *pods = userdata;

        pods->spec.on_recompute_due(pods->spec.userdata);
}

int apiserver_pods_new(const ApiServerPodsSpec *spec, ApiServerPods **ret) {
        ApiServerPods *pods = calloc(1, sizeof(*pods));
        int r;

        if (!pods)
                return -ENOMEM;
        pods->spec = *spec;
        r = pod_watch_new(&(RemotePodWatchSpec){ .event = spec->event,
                                                 .node_name = spec->node_name,
                                                 .pod_manager = spec->pod_manager,
                                                 .pods = &pods->table,
                                                 .connection = spec->connection,
                                                 .on_changed = on_watched_pod_changed,
                                                 .on_unbound = on_watched_pod_unbound,
                                                 .on_removed = remove_unreferenced_pods,
                                                 .on_list_end = on_watched_list_end,
                                                 .on_answered = on_watch_answered,
                                                 .on_recompute_due = request_recompute,
                                                 .userdata = pods },
                          &pods->watch);
        if (r >= 0)
                r = pod_status_writer_new(&(PodStatusWriterSpec){ .event = spec->event,
                                                                  .node_name = spec->node_name,
                                                                  .pod_manager = spec->pod_manager,
                                                                  .pods = &pods->table },
                                          &pods->writer);
        if (r < 0) {
                apiserver_pods_free(pods);
                return r;
        }
        *ret = pods;
        return 0;
}

ApiServerPods *apiserver_pods_free(ApiServerPods *pods) {
        if (!pods)
                return NULL;
        pod_status_writer_free(pods->writer);
        pod_watch_free(pods->watch);
        pod_table_done(&pods->table);
        free(pods);
        return NULL;
}

int apiserver_pods_start(ApiServerPods *pods, KubeClient *client) {
        int r = pod_status_writer_start(pods->writer, client);

        return r < 0 ? r : pod_watch_start(pods->watch, client);
}

/* ---- desired pods ---- */

int apiserver_pods_restore(ApiServerPods *pods, const Pod *desired) {
        const ObjectMeta *metadata = &desired->metadata;
        ApiServerPod *pod;
        char *json = NULL;

        if (pod_adoption_api_uid(desired))
                return adopted_pod_restore(&pods->table, desired);
        pod = pod_table_get(&pods->table, metadata->namespace, metadata->name);
        if (!pod)
                return -ENOMEM;
        if (terminated_pods_find(pods->spec.cache, pods->spec.run_dir, metadata->uid, &json))
                return local_pod_restore_final(&pod->local, metadata->uid, json);
        pod->bound.adopted = pod_free(pod->bound.adopted); /* it was stopping */
        return bound_pod_restore(&pod->bound, desired);
}

/* A pod that has terminated and has left nothing here does not start again. */
static bool is_apiserver_pod_desired(const ApiServerPod *pod) {
        bool has_terminated = remote_pod_has_terminated(&pod->remote) && !pod->local.uid;

        return pod->bound.desired && !pod->bound.rejection &&
               !remote_pod_is_deleting(&pod->remote) && !has_terminated;
}

typedef struct CandidateContext {
        const ApiServerPods *pods;
        const ApiServerPod *pod;
        AdoptionSearch search;
} CandidateContext;

static int check_adoption_candidate(const Pod *local_pod, const PodStatus *status, void *userdata) {
        CandidateContext *context = userdata;
        const ApiServerPods *pods = context->pods;
        const PodSource *source =
                pod_manager_pod_source(pods->spec.pod_manager, local_pod->metadata.uid);
        bool is_evaluated_here = source && source->kind == POD_SOURCE_APISERVER_DAEMONSET;
        bool is_adopted_elsewhere = pod_table_find_adopted(&pods->table, local_pod,
                                                           /* except= */ context->pod);

        return adoption_search_check(
                &context->search,
                &(AdoptionCandidate){ .pod = local_pod,
                                      .status = status,
                                      .is_evaluated_here = is_evaluated_here,
                                      .is_adopted_elsewhere = is_adopted_elsewhere });
}

/* If the new pod can never start, its own status reports this, so it does not wait. */
static bool is_preflight_finished(ApiServerPods *pods, BoundPod *bound) {
        int r = 0;

        if (!bound->preflight)
                r = pod_manager_new_preflight(pods->spec.pod_manager, bound->owned,
                                              request_recompute, pods, &bound->preflight);
        return r < 0 || preflight_step(bound->preflight, NULL) != 0;
}

/* A pod of the same DaemonSet is running and cannot be adopted. It keeps running until its status
 * is known and the images of the new pod are present. */
static int keep_blocking_pods(ApiServerPods *pods, BoundPod *bound, const AdoptionSearch *search,
                              DesiredPods *desired) {
        static const PodSource source = { .kind = POD_SOURCE_APISERVER_DAEMONSET };
        int r;

        pods->awaits_local_pod = true;
        if (search->syncing_pod) {
                r = desired_pods_add(desired, &source, search->syncing_pod);
                if (r < 0)
                        return r;
        }
        if (!search->serving_pod || (!search->syncing_pod && is_preflight_finished(pods, bound)))
                return 0;
        r = desired_pods_add(desired, &source, search->serving_pod);
        return r < 0 ? r : 0;
}

/* 1: the pod starts, or has adopted another; 0: not yet; -ENOMEM. */
static int find_adoptable_pod(ApiServerPods *pods, ApiServerPod *pod, DesiredPods *desired) {
        CandidateContext context = { .pods = pods,
                                     .pod = pod,
                                     .search = { .desired = pod->bound.desired,
                                                 .is_of_daemonset = pod->bound.is_of_daemonset } };
        AdoptionSearch *search = &context.search;
        int r;

        if (!object_controller(&pod->bound.desired->metadata))
                return 1;
        r = pod_manager_for_each_pod(pods->spec.pod_manager, check_adoption_candidate, &context);
        if (r < 0) {
                pod_free(search->adopted);
                return r;
        }
        if (!search->adopted)
                return search->is_blocked ? keep_blocking_pods(pods, &pod->bound, search, desired)
                                          : 1;
        log_info("Pod '%s' of the API server adopts running pod '%s'", pod->key,
                 search->adopted->metadata.name);
        pod->bound.adopted = search->adopted;
        pod->bound.is_adopted_current = true;
        return 1;
}

static bool runs_itself(const ApiServerPods *pods, const Pod *desired) {
        const Pod *running = pod_manager_find_pod(pods->spec.pod_manager, desired->metadata.uid);

        return running && objects_are_same(&running->metadata, &desired->metadata);
}

/* The pod to run for the API server's pod: that pod itself, or the one that it has adopted. 1 with
 * it; 0 if another pod has to stop first, or its state is unknown; -ENOMEM. */
static int resolve_desired_pod(ApiServerPods *pods, ApiServerPod *pod, DesiredPods *desired,
                               const Pod **ret_resolved) {
        BoundPod *bound = &pod->bound;
        int r = adopted_pod_update(pod);

        if (r < 0)
                return r;
        if (r == 0 && runs_itself(pods, bound->desired))
                bound->preflight = preflight_free(bound->preflight); /* it is running already */
        else if (r == 0) {
                r = find_adoptable_pod(pods, pod, desired);
                if (r <= 0)
                        return r;
        }
        *ret_resolved = bound->adopted ? bound->adopted : bound->desired;
        return 1;
}

/* The rejection is permanent, because a pod that has failed never runs. */
static int reject_squatter(const ApiServerPods *pods, ApiServerPod *pod, const char *reason,
                           const char *message) {
        int r = bound_pod_reject(&pod->bound, reason, message);

        if (r < 0)
                return r;
        log_warning("Rejecting pod '%s' of the API server: %s; it is reported as failed, and there "
                    "is no mirror pod until it is deleted",
                    pod->key, message);
        pod_status_writer_mark(pods->writer, pod);
        return 0;
}

/* 1: the pod waits for a response of the server; 0; -ENOMEM. A running pod never waits. */
static int await_claims(const ApiServerPods *pods, BoundPod *bound) {
        ReferencedObjects *objects = pods->spec.objects;
        int r;

        if (bound->claims == CLAIMS_READ)
                return 0;
        if (bound->claims == CLAIMS_UNREAD && !bound->adopted &&
            !runs_itself(pods, bound->desired)) {
                r = referenced_objects_renew_claims(objects, bound->desired);
                if (r < 0)
                        return r;
                bound->claims = CLAIMS_REQUESTED;
        }
        if (bound->claims == CLAIMS_REQUESTED &&
            referenced_objects_awaits_claims(objects, bound->desired))
                return 1;
        bound->claims = CLAIMS_READ;
        return 0;
}

/* 0 or -ENOMEM. */
static int add_desired_apiserver_pod(ApiServerPods *pods, ApiServerPod *pod, DesiredPods *desired) {
        static const PodSource source = { .kind = POD_SOURCE_APISERVER };
        const ObjectMeta *metadata = &pod->bound.desired->metadata;
        const DesiredPod *holder;
        const Pod *resolved;
        int r;

        if (desired_pods_find(desired, metadata->namespace, metadata->name))
                return pod->remote.exists ? reject_squatter(pods, pod, NAME_CONFLICT_REASON,
                                                            NAME_CONFLICT_MESSAGE)
                                          : 0;
        holder = desired_pods_find_uid(desired, metadata->uid);
        if (holder && pod_source_outranks(&holder->source, &source))
                return reject_squatter(pods, pod, UID_CONFLICT_REASON, UID_CONFLICT_MESSAGE);
        r = await_claims(pods, &pod->bound);
        if (r != 0)
                return MIN(r, 0);
        r = resolve_desired_pod(pods, pod, desired, &resolved);
        if (r <= 0)
                return r;
        r = desired_pods_add(desired, &source, resolved);
        return r < 0 ? r : 0;
}

void apiserver_pods_forget_bound(ApiServerPods *pods) {
        for (ApiServerPod *pod = pods->table.first; pod; pod = pod->next) {
                if (pod->bound.adopted) /* this node's DaemonSet may use the same name again */
                        local_pod_delete(&pod->local, pod->namespace, /* grace= */ -1,
                                         pods->spec.pod_manager);
                bound_pod_clear(&pod->bound);
        }
        pods->is_of_other_cluster = true;
        request_recompute(pods);
}

/* A terminated pod neither needs nor protects claims: they may be deleted, and their volumes given
 * to others. */
static bool needs_objects(const ApiServerPod *pod) {
        return pod->bound.desired && !remote_pod_has_terminated(&pod->remote);
}

int apiserver_pods_add_desired(ApiServerPods *pods, DesiredPods *desired) {
        ReferencedObjects *objects = pods->spec.objects;
        int result = referenced_objects_begin(objects);

        pods->awaits_local_pod = false;
        for (ApiServerPod *pod = pods->table.first; pod; pod = pod->next) {
                const BoundPod *bound = &pod->bound;

                if (is_apiserver_pod_desired(pod) &&
                    add_desired_apiserver_pod(pods, pod, desired) < 0)
                        result = -ENOMEM;
                if (needs_objects(pod) &&
                    referenced_objects_add(objects,
                                           bound->adopted ? bound->adopted : bound->desired) < 0)
                        result = -ENOMEM;
        }
        if (result >= 0)
                referenced_objects_end(objects);
        return result;
}

static ApiServerPod *find_controlled_pod(const ApiServerPods *pods, const DaemonSet *set) {
        for (ApiServerPod *pod = pods->table.first; pod; pod = pod->next)
                if (pod->bound.desired && daemonset_controls_pod(set, pod->bound.desired))
                        return pod;
        return NULL;
}

/* The set may be forgotten before the pod adopts the one that this node has created for the set. */
const Pod *apiserver_pods_controlled_pod(ApiServerPods *pods, const DaemonSet *set) {
        ApiServerPod *pod = find_controlled_pod(pods, set);

        if (!pod)
                return NULL;
        pod->bound.is_of_daemonset = true;
        return pod->bound.desired;
}

void apiserver_pods_retire_controlled(ApiServerPods *pods, const DaemonSet *set, const char *why) {
        ApiServerPod *pod = find_controlled_pod(pods, set);

        if (!pod || pod->bound.is_outdated || remote_pod_is_deleting(&pod->remote))
                return;
        log_info("Deleting pod '%s' at the API server: %s", pod->key, why);
        pod->bound.is_outdated = true;
        pod_status_writer_mark(pods->writer, pod);
}

/* ---- why a pod is no longer desired ---- */

static char *format_replaced_by(const ApiServerPod *pod) {
        return text_format("replaced by pod %s of the API server", pod->key);
}

/* The entry of the API pod for which this pod ran, directly or adopted; or NULL. */
static const ApiServerPod *find_served_pod(const ApiServerPods *pods, const Pod *local_pod) {
        cleanup_free char *api_name = pod_adoption_api_name(local_pod), *key = NULL;

        key = text_format("%s/%s", local_pod->metadata.namespace,
                          api_name ? api_name : local_pod->metadata.name);
        if (!key)
                return NULL;
        return pod_table_find(&pods->table, key);
}

static char *explain_apiserver_pod_stop(const ApiServerPods *pods, const Pod *local_pod) {
        const ApiServerPod *pod = find_served_pod(pods, local_pod);

        if (!pod)
                return pod_watch_is_synced(pods->watch) ? strdup("the API server deleted it")
                                                        : NULL;
        if (object_has_uid(&local_pod->metadata, pod->local.final_uid))
                return strdup("it has terminated (its final status is cached)");
        if (!pod->bound.desired)
                return strdup(pods->is_of_other_cluster && !pod->remote.exists
                                      ? "the kubeconfig belongs to another cluster now"
                                      : "the API server deleted it");
        if (pod->bound.rejection)
                return strdup(strna(pod->bound.rejection->message));
        if (remote_pod_has_terminated(&pod->remote) && !pod->local.uid)
                return strdup("the API server reports it as terminated");
        return remote_pod_is_deleting(&pod->remote) ? strdup("the API server deleted it")
                                                    : format_replaced_by(pod);
}

/* The controller manager has bound a pod of the same DaemonSet. */
static char *explain_daemonset_pod_stop(const ApiServerPods *pods, const Pod *local_pod) {
        for (const ApiServerPod *pod = pods->table.first; pod; pod = pod->next)
                if (pod->bound.desired && pod->bound.is_of_daemonset &&
                    objects_have_same_controller(&local_pod->metadata,
                                                 &pod->bound.desired->metadata))
                        return format_replaced_by(pod);
        return NULL;
}

char *apiserver_pods_explain_stop(const ApiServerPods *pods, const PodSource *source,
                                  const Pod *local_pod) {
        return source->kind == POD_SOURCE_APISERVER ? explain_apiserver_pod_stop(pods, local_pod)
                                                    : explain_daemonset_pod_stop(pods, local_pod);
}

/* ---- local pods ---- */

/* Whether the containers have terminated on their own: the pod was not stopped, evicted or
 * deleted. */
static bool has_local_pod_terminated(const ApiServerPod *pod, const PodStatus *status) {
        const Pod *desired = pod->bound.desired;
        bool is_still_desired = desired && object_has_uid(&desired->metadata, pod->local.uid) &&
                                !remote_pod_is_deleting(&pod->remote);

        return is_still_desired && !status->reason &&
               (status->phase == POD_SUCCEEDED || status->phase == POD_FAILED);
}

static void cache_if_terminated(ApiServerPods *pods, ApiServerPod *pod, const Pod *local_pod) {
        LocalPod *local = &pod->local;
        cleanup_free char *json = NULL;
        const PodStatus *status;

        if (!local->is_api_pod || local->is_terminated_cached)
                return;
        status = local_pod_status(local, pods->spec.pod_manager);
        if (!status || !has_local_pod_terminated(pod, status))
                return;
        json = pod_to_json(local_pod, status);
        if (!json)
                return;
        terminated_pods_add(pods->spec.cache, local->uid, json);
        local->is_terminated_cached = true;
}

/* Whether the pod terminated before this boot; the data on disk does not show how. */
static bool is_terminated_leftover(const ApiServerPod *pod, const Pod *local_pod) {
        return pod_is_of_api(local_pod) && pod->local.is_api_pod && !pod->local.uid &&
               object_has_uid(&local_pod->metadata, pod->local.final_uid);
}

/* An adopted pod is reported as the API server's pod; the mirror pod under its own name is deleted.
 */
static void detach_adopted_mirror(ApiServerPods *pods, const Pod *local_pod) {
        for (ApiServerPod *pod = pods->table.first; pod; pod = pod->next)
                if (object_has_uid(&local_pod->metadata, pod->local.uid) &&
                    !streq(pod->local.reported_uid, pod_adoption_api_uid(local_pod))) {
                        local_pod_clear(&pod->local);
                        pod_status_writer_mark(pods->writer, pod);
                }
}

static ApiServerPod *get_reported_pod(ApiServerPods *pods, const Pod *local_pod) {
        const ObjectMeta *metadata = &local_pod->metadata;
        ApiServerPod *adopting = adopted_pod_find_entry(&pods->table, local_pod);

        if (!adopting)
                return pod_table_get(&pods->table, metadata->namespace, metadata->name);
        detach_adopted_mirror(pods, local_pod);
        return adopting;
}

static void update_local_pod(ApiServerPods *pods, ApiServerPod *pod, const Pod *local_pod) {
        const KubeObjectSummary *remote = &pod->remote.metadata;

        bound_pod_borrow(&pod->bound, local_pod);
        cache_if_terminated(pods, pod, local_pod);
        if (pod->remote.exists)
                local_pod_set_conditions(&pod->local, remote, pods->spec.pod_manager);
        if (remote_pod_is_deleting(&pod->remote) && streq(remote->uid, pod->local.reported_uid))
                local_pod_delete(&pod->local, pod->namespace, MAX(remote->grace_seconds, 1),
                                 pods->spec.pod_manager);
}

static void return_borrowed_spec(ApiServerPods *pods, const Pod *local_pod) {
        for (ApiServerPod *pod = pods->table.first; pod; pod = pod->next)
                if (bound_pod_return(&pod->bound, local_pod) < 0)
                        log_error("Cannot keep the spec of pod '%s': out of memory; the next "
                                  "event of the API server contains it again",
                                  pod->key);
}

void apiserver_pods_on_pod(ApiServerPods *pods, const Pod *local_pod, bool is_gone) {
        ApiServerPod *pod = get_reported_pod(pods, local_pod);
        const char *reported_uid = pod ? adopted_pod_reported_uid(pod, local_pod) : NULL;

        if (is_gone)
                return_borrowed_spec(pods, local_pod);
        if (pods->awaits_local_pod)
                request_recompute(pods);
        if (pod && is_terminated_leftover(pod, local_pod))
                return;
        if (!pod ||
            (!is_gone && local_pod_set_instance(&pod->local, local_pod, reported_uid) < 0)) {
                log_error("Cannot update status of pod %s/%s: out of memory; it is reported at the "
                          "pod's next change",
                          local_pod->metadata.namespace, local_pod->metadata.name);
                return;
        }
        if (is_gone) {
                local_pod_finish(&pod->local, local_pod, reported_uid, pods->spec.pod_manager);
                service_account_tokens_forget(pods->spec.tokens, local_pod->metadata.uid);
        } else
                update_local_pod(pods, pod, local_pod);
        pod_status_writer_mark(pods->writer, pod);
        remove_unreferenced_pods(pods);
}

/* ---- other reasons to report ---- */

void apiserver_pods_set_synced(ApiServerPods *pods) {
        pod_status_writer_set_synced(pods->writer);
}

void apiserver_pods_set_shutting_down(ApiServerPods *pods, bool is_shutting_down) {
        pod_status_writer_set_shutting_down(pods->writer, is_shutting_down);
}

void apiserver_pods_set_node_uid(ApiServerPods *pods, const char *uid) {
        pod_status_writer_set_node_uid(pods->writer, uid);
}

char *apiserver_pods_rename_event(const ApiServerPods *pods, const char *json) {
        return adopted_pod_rename_event(&pods->table, json);
}

char *apiserver_pods_print_refused(const ApiServerPods *pods) {
        return pod_status_writer_print_refused(pods->writer);
}

static void dump_bound_pod(const ApiServerPod *pod, FILE *out) {
        const BoundPod *bound = &pod->bound;

        dump_line(out, 1, "bound pod: %s, uid %s%s%s%s", pod->key, bound->desired->metadata.uid,
                  bound->adopted ? ", runs as adopted pod " : "",
                  bound->adopted ? bound->adopted->metadata.name : "",
                  bound->preflight ? ", preflight under way" : "");
        if (bound->rejection)
                dump_line(out, 2, "rejected: %s", strna(bound->rejection->message));
}

void apiserver_pods_dump(const ApiServerPods *pods, FILE *out) {
        for (const ApiServerPod *pod = pods->table.first; pod; pod = pod->next)
                if (pod->bound.desired)
                        dump_bound_pod(pod, out);
        pod_watch_dump(pods->watch, out);
        pod_status_writer_dump(pods->writer, out);
}
