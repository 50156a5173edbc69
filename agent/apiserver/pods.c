/* SPDX-License-Identifier: Apache-2.0 */
/* The pods that an API server has bound to this node, and the mirrors of ours that it has. A list
 * that lacks many of those that run here is asked for once more before anybody believes it. */

#include "agent/apiserver/apiserver-private.h"

#include "agent/model/adoption.h"
#include "agent/model/edit-plan.h"
#include "agent/model/json.h"
#include "agent/model/names.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/log.h"

#include <stdio.h>

#define RELIST_DELAY_USEC (10 * USEC_PER_SEC)

/* ---- by name ---- */

ApiServerPod *apiserver_find_pod(ApiServerSync *api, const char *key) {
        for (ApiServerPod *pod = api->pods; pod; pod = pod->next)
                if (streq(pod->key, key))
                        return pod;
        return NULL;
}

ApiServerPod *apiserver_get_pod(ApiServerSync *api, const char *namespace, const char *name) {
        ApiServerPod **link = &api->pods, *pod;
        cleanup_free char *key = NULL;

        if (asprintf(&key, "%s/%s", namespace, name) < 0) {
                key = NULL;
                return NULL;
        }
        while (*link && strcmp((*link)->key, key) < 0)
                link = &(*link)->next;
        if (*link && streq((*link)->key, key))
                return *link;
        pod = calloc(1, sizeof(*pod));
        if (!pod)
                return NULL;
        pod->key = TAKE_PTR(key);
        pod->deletion_grace = -1;
        pod->next = *link;
        *link = pod;
        return pod;
}

void apiserver_pod_clear_local(ApiServerPod *pod) {
        free(pod->local_uid);
        free(pod->local_name);
        free(pod->reported_uid);
        pod->local_uid = pod->local_name = pod->reported_uid = NULL;
}

static void apiserver_pod_free(ApiServerPod *pod) {
        kube_object_summary_done(&pod->remote);
        free(pod->deleted_uid);
        preflight_free(pod->preflight);
        pod_free(pod->desired);
        pod_free(pod->adopted);
        free(pod->rejection);
        free(pod->refused);
        apiserver_pod_clear_local(pod);
        free(pod->final_status);
        free(pod->final_uid);
        free(pod->key);
        free(pod);
}

void apiserver_free_pods(ApiServerSync *api) {
        while (api->pods) {
                ApiServerPod *pod = api->pods;

                api->pods = pod->next;
                apiserver_pod_free(pod);
        }
}

/* Neither side has it any more, and the server has said so. */
static bool is_pod_unreferenced(const ApiServerSync *api, const ApiServerPod *pod) {
        if (pod->has_remote || pod->desired || pod->local_uid)
                return false;
        return !pod->is_api_pod || (api->pod_reflector && !api->is_list_doubtful &&
                                    kube_reflector_is_synced(api->pod_reflector));
}

static void remove_unreferenced_pods(ApiServerSync *api) {
        ApiServerPod **link = &api->pods;

        while (*link) {
                ApiServerPod *pod = *link;

                if (!is_pod_unreferenced(api, pod)) {
                        link = &pod->next;
                        continue;
                }
                *link = pod->next;
                if (api->pod_writer)
                        kube_work_queue_forget(api->pod_writer, pod->key);
                if (pod->is_api_pod && pod->final_uid)
                        apiserver_forget_terminated_pod(api, pod->final_uid);
                apiserver_pod_free(pod);
        }
}

static void mark_pod_status_dirty(ApiServerSync *api, const ApiServerPod *pod) {
        if (api->pod_writer && kube_work_queue_add(api->pod_writer, pod->key) < 0)
                log_error("Out of memory, the status of pod '%s' is told later", pod->key);
}

void apiserver_report_all_pods(ApiServerSync *api) {
        for (const ApiServerPod *pod = api->pods; pod; pod = pod->next)
                mark_pod_status_dirty(api, pod);
}

/* ---- what the server says ---- */

/* The grace is told each time that it is another: who deletes with force means now. */
static void delete_local_pod(ApiServerSync *api, ApiServerPod *pod, int64_t grace) {
        const char *slash = strchr(pod->key, '/');
        cleanup_free char *namespace = strndup(pod->key, (size_t) (slash - pod->key));

        if (!pod->local_uid || !pod->is_api_pod ||
            (pod->deletion_grace >= 0 && pod->deletion_grace <= grace))
                return;
        pod->deletion_grace = grace;
        if (namespace)
                (void) pod_manager_delete_pod(api->config.pod_manager, namespace, pod->local_name,
                                              grace, "the API server deleted it", NULL);
}

static void clear_desired_pod(ApiServerPod *pod) {
        pod->preflight = preflight_free(pod->preflight);
        pod->desired = pod_free(pod->desired);
        pod->is_adopted_current = false;
        free(pod->rejection);
        pod->rejection = NULL;
}

/* Why it cannot be, as a kubelet says it of a pod that it does not admit. */
static int reject_desired_pod(ApiServerPod *pod, const char *sentence) {
        free(pod->rejection);
        pod->rejection = kube_rejected_pod_to_json(sentence);
        return pod->rejection ? 0 : -ENOMEM;
}

/* A pod that runs goes on as it was last good. */
static int handle_invalid_pod_spec(ApiServerSync *api, ApiServerPod *pod, const char *sentence) {
        bool is_same = pod->desired && streq(pod->desired->metadata.uid, pod->remote.uid);

        log_error("Pod '%s' of the API server %s: %s", pod->key,
                  is_same ? "goes on as it was" : "cannot be", sentence);
        if (is_same)
                return 0;
        clear_desired_pod(pod);
        return reject_desired_pod(pod, sentence);
}

/* 1 where it is another pod now, or another in some field. */
static int update_desired_pod(ApiServerPod *pod, Pod **desired) {
        cleanup_with(edit_plan_done) EditPlan plan = { 0 };
        bool is_same = pod->desired && streq(pod->desired->metadata.uid, (*desired)->metadata.uid);
        int r = is_same ? edit_plan_make(pod->desired, *desired, &plan) : 0;

        if (r < 0 || (is_same && plan.effect == EDIT_NONE))
                return r;
        clear_desired_pod(pod);
        pod->desired = *desired;
        *desired = NULL;
        return 1;
}

static int parse_watched_pod(ApiServerSync *api, ApiServerPod *pod, const char *json,
                             size_t length) {
        cleanup_with(manifest_objects_done) ManifestObjects objects = { 0 };
        cleanup_error Error error = ERROR_NULL;
        int r = manifest_parse_api(pod->key, "Pod", json, length, api->config.node_name, &objects,
                                   &error);

        if (r >= 0 && objects.pods.n != 1)
                r = error_setf(&error, EINVAL, "is no pod");
        if (r == -ENOMEM)
                return r;
        return r < 0 ? handle_invalid_pod_spec(api, pod, error_message(&error, r))
                     : update_desired_pod(pod, &objects.pods.items[0]);
}

/* Takes the metadata. 'json' is the object. 1 where wishes are due. */
static int update_remote_pod(ApiServerSync *api, ApiServerPod *pod, KubeObjectSummary *metadata,
                             const char *json, size_t length) {
        bool was_deleting = pod->has_remote && pod->remote.is_deleting;
        bool is_another = !pod->has_remote || !streq(pod->remote.uid, metadata->uid);
        int r = 0;

        kube_object_summary_done(&pod->remote);
        pod->remote = *metadata;
        *metadata = (KubeObjectSummary){ 0 };
        pod->has_remote = true;
        pod->generation = api->generation;
        if (is_another)
                pod->deletion_grace = -1;
        if (pod->remote.mirror_hash)
                return 0;
        if (pod->remote.is_deleting)
                delete_local_pod(api, pod, MAX(pod->remote.grace_seconds, 1));
        r = parse_watched_pod(api, pod, json, length);
        return r < 0 ? r : r || was_deleting != pod->remote.is_deleting || is_another;
}

/* 1 where wishes are due. */
static int remove_remote_pod(ApiServerPod *pod, const KubeObjectSummary *metadata) {
        bool was_desired = pod->desired && streq(pod->desired->metadata.uid, metadata->uid);

        if (pod->has_remote && streq(pod->remote.uid, metadata->uid)) {
                kube_object_summary_done(&pod->remote);
                pod->has_remote = false;
        }
        if (was_desired)
                clear_desired_pod(pod);
        free(pod->deleted_uid);
        pod->deleted_uid = strdup(metadata->uid);
        return was_desired;
}

static int check_remote_pod_names(const KubeObjectSummary *metadata, Error *reterr) {
        int r = check_dns_subdomain(metadata->name, reterr);

        if (r >= 0)
                r = check_dns_label(metadata->namespace, reterr);
        return r < 0 ? r : check_uid(metadata->uid, reterr);
}

static int handle_pod_change(ApiServerSync *api, KubeWatchEvent change, const char *json,
                             size_t length, Error *reterr) {
        cleanup_with(kube_object_summary_done) KubeObjectSummary metadata = { 0 };
        ApiServerPod *pod;
        int r = kube_object_summary_parse(json, length, &metadata, reterr);

        if (r >= 0)
                r = check_remote_pod_names(&metadata, reterr);
        if (r < 0)
                return r;
        pod = apiserver_get_pod(api, metadata.namespace, metadata.name);
        if (!pod)
                return -ENOMEM;
        pod->watch_events++;
        if (change == KUBE_LISTED) { /* a backup brings back what had gone */
                free(pod->deleted_uid);
                pod->deleted_uid = NULL;
        }
        if (change != KUBE_DELETED)
                r = update_remote_pod(api, pod, &metadata, json, length);
        else {
                delete_local_pod(api, pod, MAX(metadata.grace_seconds, 1));
                r = remove_remote_pod(pod, &metadata);
        }
        mark_pod_status_dirty(api, pod);
        return r;
}

static void on_pod_object(KubeWatchEvent change, const char *json, size_t length, void *userdata) {
        ApiServerSync *api = userdata;
        cleanup_error Error error = ERROR_NULL;
        int r = handle_pod_change(api, change, json, length, &error);

        if (r < 0)
                log_error("An object among the API server's pods is ignored: %s",
                          error_message(&error, r));
        if (r < 0 && change == KUBE_LISTED)
                api->has_unreadable = true;
        else if (r < 0) /* what it was is told by a list */
                kube_reflector_relist(api->pod_reflector, RELIST_DELAY_USEC);
        if (r > 0 && !api->is_listing)
                apiserver_schedule_recompute(api);
        if (change == KUBE_DELETED)
                remove_unreferenced_pods(api);
}

/* ---- lists ---- */

static void on_pod_list_begin(void *userdata) {
        ApiServerSync *api = userdata;

        api->generation++;
        api->is_listing = true;
        api->has_unreadable = false;
}

static bool is_missing_in_list(const ApiServerSync *api, const ApiServerPod *pod) {
        return pod->generation != api->generation;
}

/* More than half of what the server wanted is not in its list. */
static bool is_pod_list_doubtful(const ApiServerSync *api) {
        unsigned n = 0, n_missing = 0;

        for (const ApiServerPod *pod = api->pods; pod; pod = pod->next) {
                n += pod->desired != NULL;
                n_missing += pod->desired && is_missing_in_list(api, pod);
        }
        return n_missing > n / 2;
}

static void forget_unlisted_pods(ApiServerSync *api) {
        for (ApiServerPod *pod = api->pods; pod; pod = pod->next) {
                if (!is_missing_in_list(api, pod))
                        continue;
                if (pod->adopted) /* its name is one that we may wish for again */
                        delete_local_pod(api, pod, -1);
                if (pod->has_remote)
                        kube_object_summary_done(&pod->remote);
                pod->has_remote = false;
                clear_desired_pod(pod);
        }
}

static void on_pod_list_end(bool is_complete, void *userdata) {
        ApiServerSync *api = userdata;

        api->is_listing = false;
        if (is_complete && !api->has_unreadable && !api->is_list_doubtful &&
            is_pod_list_doubtful(api)) {
                log_warning("The API server lists few of the pods that it wanted here; asking "
                            "again before any is stopped");
                api->is_list_doubtful = true;
                kube_reflector_relist(api->pod_reflector, RELIST_DELAY_USEC);
        } else if (is_complete && !api->has_unreadable) {
                api->is_list_doubtful = false;
                forget_unlisted_pods(api);
        }
        apiserver_report_all_pods(api);
        apiserver_schedule_recompute(api);
        remove_unreferenced_pods(api);
}

static void on_pod_watch_error(const char *error, unsigned status, void *userdata) {
        ApiServerSync *api = userdata;
        bool is_unreachable = apiserver_is_unreachable(api, error, status);

        apiserver_set_permission_error(api, PERMISSION_PODS, error, status);
        if (streq_ptr(error, api->pod_watch_error))
                return;
        if (error && !is_unreachable)
                log_warning("The pods of this node cannot be had from the API server: %s", error);
        else if (!error && api->pod_watch_error)
                log_info("The API server tells the pods of this node again");
        free(api->pod_watch_error);
        api->pod_watch_error = error ? strdup(error) : NULL;
        api->config.on_state_changed(api->config.userdata);
}

int apiserver_watch_pods(ApiServerSync *api) {
        cleanup_free char *query = NULL;

        if (asprintf(&query, "fieldSelector=spec.nodeName%%3D%s", api->config.node_name) < 0) {
                query = NULL;
                return -ENOMEM;
        }
        return kube_reflector_new(api->config.event,
                                  &(KubeReflectorSpec){ .client = api->client,
                                                        .path = "/api/v1/pods",
                                                        .query = query,
                                                        .on_object = on_pod_object,
                                                        .on_list_begin = on_pod_list_begin,
                                                        .on_list_end = on_pod_list_end,
                                                        .on_error = on_pod_watch_error,
                                                        .userdata = api },
                                  &api->pod_reflector);
}

/* ---- wishes ---- */

int apiserver_restore_pod(const Pod *desired, void *userdata) {
        ApiServerSync *api = userdata;
        ApiServerPod *pod;

        if (pod_adoption_api_uid(desired))
                return apiserver_restore_adopted_pod(api, desired);
        pod = apiserver_get_pod(api, desired->metadata.namespace, desired->metadata.name);
        if (!pod)
                return -ENOMEM;
        if (apiserver_find_terminated_pod(api, desired->metadata.uid, &pod->final_status)) {
                pod->final_uid = strdup(desired->metadata.uid);
                pod->is_api_pod = true;
                return pod->final_uid ? 0 : -ENOMEM;
        }
        pod->adopted = pod_free(pod->adopted); /* it was about to be gone */
        pod->desired = pod_free(pod->desired);
        return pod_copy(desired, &pod->desired);
}

/* It has succeeded or failed, and nothing of it is here that would know. */
static bool has_remote_pod_terminated(const ApiServerPod *pod) {
        const char *phase = pod->has_remote ? pod->remote.phase : NULL;

        return phase && (streq(phase, "Succeeded") || streq(phase, "Failed")) && !pod->local_uid;
}

static bool is_apiserver_pod_desired(const ApiServerPod *pod) {
        return pod->desired && !(pod->has_remote && pod->remote.is_deleting) &&
               !has_remote_pod_terminated(pod);
}

/* 0 or -ENOMEM. */
static int add_desired_apiserver_pod(ApiServerSync *api, ApiServerPod *pod, DesiredPods *desired) {
        static const PodSource source = { .kind = POD_SOURCE_APISERVER };
        const ObjectMeta *metadata = &pod->desired->metadata;
        const Pod *resolved;
        int r;

        if (desired_pods_find(desired, metadata->namespace, metadata->name))
                return pod->rejection || !pod->has_remote
                               ? 0
                               : reject_desired_pod(pod,
                                                    "a file of this node has a pod of that name");
        r = apiserver_resolve_desired_pod(api, pod, desired, &resolved);
        if (r > 0)
                r = desired_pods_add(desired, &source, resolved);
        return r < 0 ? r : 0;
}

int apiserver_add_desired_pods(DesiredPods *desired, void *userdata) {
        ApiServerSync *api = userdata;
        int result = 0;

        api->awaits_local_pod = false;
        apiserver_begin_references(api);
        for (ApiServerPod *pod = api->pods; pod; pod = pod->next) {
                if (is_apiserver_pod_desired(pod) &&
                    add_desired_apiserver_pod(api, pod, desired) < 0)
                        result = -ENOMEM;
                if (pod->desired &&
                    apiserver_add_references(api, pod->adopted ? pod->adopted : pod->desired) < 0)
                        result = -ENOMEM;
        }
        if (result >= 0)
                apiserver_end_references(api);
        return result;
}

/* ---- why a pod of the server's is no longer desired ---- */

/* What the server wants for which this pod ran, under its own name or adopted; or NULL. */
static const ApiServerPod *find_served_pod(ApiServerSync *api, const Pod *local_pod) {
        cleanup_free char *api_name = pod_adoption_api_name(local_pod), *key = NULL;

        if (asprintf(&key, "%s/%s", local_pod->metadata.namespace,
                     api_name ? api_name : local_pod->metadata.name) < 0) {
                key = NULL;
                return NULL;
        }
        return apiserver_find_pod(api, key);
}

/* A list that was complete and is believed does not have it. */
static bool is_pod_list_known(const ApiServerSync *api) {
        return api->pod_reflector && !api->is_list_doubtful &&
               kube_reflector_is_synced(api->pod_reflector);
}

static char *explain_apiserver_pod_stop(ApiServerSync *api, const Pod *local_pod) {
        const ApiServerPod *pod = find_served_pod(api, local_pod);
        char *reason;

        if (!pod)
                return is_pod_list_known(api) ? strdup("the API server deleted it") : NULL;
        if (streq_ptr(pod->final_uid, local_pod->metadata.uid))
                return strdup("it has terminated, as was cached for the API server");
        if (pod->desired && has_remote_pod_terminated(pod))
                return strdup("the API server has it as terminated");
        if (!pod->desired || pod->remote.is_deleting)
                return strdup("the API server deleted it");
        return asprintf(&reason, "replaced by pod %s of the API server", pod->key) < 0 ? NULL
                                                                                       : reason;
}

/* The controller manager has bound a pod of the same set, which ours would be in the way of. */
static char *explain_daemonset_pod_stop(const ApiServerSync *api, const Pod *local_pod) {
        const OwnerReference *owner = object_controller(&local_pod->metadata);
        char *reason;

        for (const ApiServerPod *pod = api->pods; owner && pod; pod = pod->next) {
                const OwnerReference *desired_owner =
                        pod->desired ? object_controller(&pod->desired->metadata) : NULL;

                if (desired_owner && streq(desired_owner->uid, owner->uid))
                        return asprintf(&reason, "replaced by pod %s of the API server", pod->key) <
                                               0
                                       ? NULL
                                       : reason;
        }
        return NULL;
}

char *apiserver_explain_stop(const PodSource *source, const Pod *local_pod, void *userdata) {
        return source->kind == POD_SOURCE_APISERVER
                       ? explain_apiserver_pod_stop(userdata, local_pod)
                       : explain_daemonset_pod_stop(userdata, local_pod);
}

/* ---- what is here ---- */

static int attach_local_pod(ApiServerSync *api, ApiServerPod *pod, const Pod *local_pod) {
        if (streq_ptr(pod->local_uid, local_pod->metadata.uid))
                return 0;
        apiserver_pod_clear_local(pod);
        pod->local_uid = strdup(local_pod->metadata.uid);
        pod->local_name = strdup(local_pod->metadata.name);
        pod->reported_uid = strdup(apiserver_reported_uid(pod, local_pod));
        if (!pod->local_uid || !pod->local_name || !pod->reported_uid) {
                apiserver_pod_clear_local(pod);
                return -ENOMEM;
        }
        pod->is_api_pod = pod_is_of_api(local_pod);
        pod->deletion_grace = -1;
        pod->is_terminated_cached = false;
        return 0;
}

/* What it was at its end is told yet. */
static void save_final_status(ApiServerSync *api, ApiServerPod *pod, const Pod *local_pod) {
        cleanup_with(pod_status_done) PodStatus status = { 0 };
        const Pod *same;

        free(pod->final_status);
        free(pod->final_uid);
        pod->final_status = NULL;
        pod->final_uid = strdup(apiserver_reported_uid(pod, local_pod));
        if (pod_manager_pod_status(api->config.pod_manager, local_pod->metadata.uid, &same,
                                   &status) >= 0)
                pod->final_status = pod_to_json(same, &status);
        pod->is_api_pod = pod_is_of_api(local_pod);
        apiserver_pod_clear_local(pod);
}

/* By what its containers have done, not by somebody who ends it, nor by a machine that goes down.
 */
static bool has_local_pod_terminated(const ApiServerPod *pod, const PodStatus *status) {
        bool is_still_desired = pod->desired && streq(pod->desired->metadata.uid, pod->local_uid) &&
                                !(pod->has_remote && pod->remote.is_deleting);

        return is_still_desired && !status->reason &&
               (status->phase == POD_SUCCEEDED || status->phase == POD_FAILED);
}

static void cache_if_terminated(ApiServerSync *api, ApiServerPod *pod) {
        cleanup_with(pod_status_done) PodStatus status = { 0 };
        cleanup_free char *json = NULL;
        const Pod *local_pod;

        if (!pod->is_api_pod || pod->is_terminated_cached ||
            pod_manager_pod_status(api->config.pod_manager, pod->local_uid, &local_pod, &status) <
                    0 ||
            !has_local_pod_terminated(pod, &status))
                return;
        json = pod_to_json(local_pod, &status);
        if (json)
                apiserver_cache_terminated_pod(api, pod->local_uid, json);
        pod->is_terminated_cached = json;
}

/* It had ended before this boot, and of how it ended its remains know nothing. */
static bool is_terminated_leftover(const ApiServerPod *pod, const Pod *local_pod) {
        return pod_is_of_api(local_pod) && pod->is_api_pod && !pod->local_uid &&
               streq_ptr(pod->final_uid, local_pod->metadata.uid);
}

/* It is told as another's now: what was told of it under its own name goes, which is a mirror. */
static void detach_adopted_mirror(ApiServerSync *api, const Pod *local_pod) {
        for (ApiServerPod *pod = api->pods; pod; pod = pod->next)
                if (streq_ptr(pod->local_uid, local_pod->metadata.uid) &&
                    !streq(pod->reported_uid, pod_adoption_api_uid(local_pod))) {
                        apiserver_pod_clear_local(pod);
                        mark_pod_status_dirty(api, pod);
                }
}

static ApiServerPod *get_reported_pod(ApiServerSync *api, const Pod *local_pod) {
        ApiServerPod *adopting = apiserver_find_adopting_pod(api, local_pod);

        if (!adopting)
                return apiserver_get_pod(api, local_pod->metadata.namespace,
                                         local_pod->metadata.name);
        detach_adopted_mirror(api, local_pod);
        return adopting;
}

void apiserver_on_pod(ApiServerSync *api, const Pod *local_pod, bool is_gone) {
        ApiServerPod *pod = get_reported_pod(api, local_pod);

        if (api->awaits_local_pod)
                apiserver_schedule_recompute(api);
        if (pod && is_terminated_leftover(pod, local_pod))
                return;
        if (!pod || (!is_gone && attach_local_pod(api, pod, local_pod) < 0)) {
                log_error("Out of memory, the API server is not told of pod '%s'",
                          local_pod->metadata.name);
                return;
        }
        if (is_gone) {
                save_final_status(api, pod, local_pod);
                apiserver_forget_tokens(api, local_pod->metadata.uid);
        } else
                cache_if_terminated(api, pod);
        if (!is_gone && pod->has_remote && pod->remote.is_deleting &&
            streq(pod->remote.uid, pod->reported_uid))
                delete_local_pod(api, pod, MAX(pod->remote.grace_seconds, 1));
        mark_pod_status_dirty(api, pod);
        remove_unreferenced_pods(api);
}
