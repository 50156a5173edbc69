/* SPDX-License-Identifier: Apache-2.0 */
/* When a controller manager comes back, the pod that it binds here finds one of ours of the same
 * set running. If the two are the same, ours goes on in its place: a *cover* (model/cover.h). It
 * keeps its own name and UID, its record names the server as its origin, and what becomes of it is
 * told as what becomes of the server's pod. If they are not, ours ends before the other begins.
 * Nothing is remembered but what is in the cover's record. */

#include "agent/apiserver/apiserver-private.h"

#include "agent/kubeclient/event-object.h"
#include "agent/model/adoption.h"
#include "agent/model/edit-plan.h"
#include "common/cleanup.h"
#include "common/log.h"

#include <stdio.h>

/* ---- a cover that stands ---- */

ApiServerPod *apiserver_find_adopting_pod(ApiServerSync *api, const Pod *local_pod) {
        cleanup_free char *name = pod_adoption_api_name(local_pod), *key = NULL;
        ApiServerPod *pod;

        if (!name || asprintf(&key, "%s/%s", local_pod->metadata.namespace, name) < 0) {
                key = NULL;
                return NULL;
        }
        pod = apiserver_find_pod(api, key);
        if (!pod || !pod->adopted || !streq(pod->adopted->metadata.uid, local_pod->metadata.uid))
                return NULL;
        return pod;
}

const char *apiserver_reported_uid(const ApiServerPod *pod, const Pod *local_pod) {
        bool is_adopted =
                pod->adopted && streq(pod->adopted->metadata.uid, local_pod->metadata.uid);

        return is_adopted ? pod_adoption_api_uid(pod->adopted) : local_pod->metadata.uid;
}

int apiserver_restore_adopted_pod(ApiServerSync *api, const Pod *adopted) {
        cleanup_with(pod_freep) Pod *adopting = NULL, *copy = NULL;
        ApiServerPod *pod;
        int r = pod_adoption_restore_api_pod(adopted, &adopting);

        if (r >= 0)
                r = pod_copy(adopted, &copy);
        if (r < 0)
                return r;
        pod = apiserver_get_pod(api, adopting->metadata.namespace, adopting->metadata.name);
        if (!pod)
                return -ENOMEM;
        if (pod->desired) /* it has a record of its own: this one was about to be gone */
                return 0;
        pod->desired = TAKE_PTR(adopting);
        pod->adopted = TAKE_PTR(copy);
        pod->is_adopted_current = true;
        return 0;
}

/* 1: it stands; 0: there is none, or none any more; -ENOMEM. */
static int update_adopted_pod(ApiServerPod *pod) {
        Pod *next = NULL;
        int r = 0;

        if (!pod->adopted || pod->is_adopted_current)
                return pod->adopted != NULL;
        if (streq(pod_adoption_api_uid(pod->adopted), pod->desired->metadata.uid))
                r = pod_adoption_make(pod->adopted, pod->desired, EDIT_RESTART_CONTAINER, &next);
        if (r < 0)
                return r;
        if (r == 0) {
                log_info("Pod '%s' of the API server is another than '%s' that stands for it, "
                         "which ends first",
                         pod->key, pod->adopted->metadata.name);
                apiserver_pod_clear_local(pod);
        }
        pod_free(pod->adopted);
        pod->adopted = r > 0 ? next : NULL;
        pod->is_adopted_current = r > 0;
        return r;
}

/* ---- ours that are there when a pod of the server's is to begin ---- */

typedef struct AdoptionSearch {
        const ApiServerSync *api;
        const ApiServerPod *pod;
        const OwnerReference *owner;
        const Pod *syncing_pod; /* how it is will be known soon */
        const Pod *serving_pod; /* it cannot stand, but it does serve */
        Pod *adopted;
        bool is_blocked; /* something that has to end before */
} AdoptionSearch;

static bool is_local_daemonset_pod(const AdoptionSearch *search, const Pod *local_pod) {
        const OwnerReference *owner = object_controller(&local_pod->metadata);
        const PodSource *source;

        if (!owner || !streq(owner->uid, search->owner->uid) || pod_is_of_api(local_pod))
                return false;
        source = pod_manager_pod_source(search->api->config.pod_manager, local_pod->metadata.uid);
        return source && source->kind == POD_SOURCE_APISERVER_DAEMONSET;
}

/* Its record may not say so yet. */
static bool is_adopted_elsewhere(const AdoptionSearch *search, const Pod *local_pod) {
        for (const ApiServerPod *pod = search->api->pods; pod; pod = pod->next)
                if (pod != search->pod && pod->adopted &&
                    streq(pod->adopted->metadata.uid, local_pod->metadata.uid))
                        return true;
        return false;
}

/* It stood for a pod of that name. */
static bool was_adopted_before(const AdoptionSearch *search, const Pod *local_pod) {
        const ObjectMeta *desired_metadata = &search->pod->desired->metadata;
        cleanup_free char *name = pod_adoption_api_name(local_pod);

        return name && streq(name, desired_metadata->name) &&
               streq(local_pod->metadata.namespace, desired_metadata->namespace);
}

/* One that does not serve may lack just what the server's has, the token of its account. */
static bool is_pod_running_ready(const PodStatus *status) {
        return status->phase == POD_RUNNING && status->conditions[CONDITION_READY].is_true;
}

static int check_adoption_candidate(const Pod *local_pod, const PodStatus *status, void *userdata) {
        AdoptionSearch *search = userdata;
        bool is_ours = is_local_daemonset_pod(search, local_pod);
        int r = 0;

        if ((!is_ours && !was_adopted_before(search, local_pod)) ||
            is_adopted_elsewhere(search, local_pod))
                return 0;
        search->is_blocked = true;
        if (!is_ours || status->deletion_time > 0 || search->adopted)
                return 0;
        if (status->is_syncing)
                search->syncing_pod = local_pod;
        else if (is_pod_running_ready(status)) {
                r = pod_adoption_make(local_pod, search->pod->desired, EDIT_IN_PLACE,
                                      &search->adopted);
                if (r == 0)
                        search->serving_pod = local_pod;
        }
        return r < 0 ? r : 0;
}

static void on_adoption_preflight_changed(void *userdata) {
        apiserver_schedule_recompute(userdata);
}

/* Nothing is to be waited for any more. What it lacks for good is better seen in its own status. */
static bool is_preflight_finished(ApiServerSync *api, ApiServerPod *pod) {
        int r = 0;

        if (!pod->preflight)
                r = pod_manager_new_preflight(api->config.pod_manager, pod->desired,
                                              on_adoption_preflight_changed, api, &pod->preflight);
        return r < 0 || preflight_step(pod->preflight, NULL) != 0;
}

static int keep_blocking_pods(ApiServerSync *api, ApiServerPod *pod, const AdoptionSearch *search,
                              DesiredPods *desired) {
        static const PodSource source = { .kind = POD_SOURCE_APISERVER_DAEMONSET };
        int r = 0;

        api->awaits_local_pod = true;
        if (search->syncing_pod)
                r = desired_pods_add(desired, &source, search->syncing_pod);
        if (r >= 0 && search->serving_pod &&
            (search->syncing_pod || !is_preflight_finished(api, pod)))
                r = desired_pods_add(desired, &source, search->serving_pod);
        return r < 0 ? r : 0;
}

/* 1: it begins by itself, or 'pod->cover' stands for it; 0: not yet; -ENOMEM. */
static int find_adoptable_pod(ApiServerSync *api, ApiServerPod *pod, DesiredPods *desired) {
        AdoptionSearch search = { .api = api,
                                  .pod = pod,
                                  .owner = object_controller(&pod->desired->metadata) };
        int r = 0;

        if (search.owner)
                r = pod_manager_for_each_pod(api->config.pod_manager, check_adoption_candidate,
                                             &search);
        if (r < 0) {
                pod_free(search.adopted);
                return r;
        }
        if (!search.adopted)
                return search.is_blocked ? keep_blocking_pods(api, pod, &search, desired) : 1;
        log_info("Pod '%s' of the API server is running here already, as '%s'", pod->key,
                 search.adopted->metadata.name);
        pod->adopted = search.adopted;
        pod->is_adopted_current = true;
        return 1;
}

int apiserver_resolve_desired_pod(ApiServerSync *api, ApiServerPod *pod, DesiredPods *desired,
                                  const Pod **ret_desired) {
        int r = update_adopted_pod(pod);

        *ret_desired = pod->desired;
        if (r == 0 && !pod_manager_pod_source(api->config.pod_manager, pod->desired->metadata.uid))
                r = find_adoptable_pod(api, pod, desired);
        else if (r == 0) {
                pod->preflight = preflight_free(pod->preflight);
                r = 1; /* it is there */
        }
        if (r > 0 && pod->adopted)
                *ret_desired = pod->adopted;
        return r;
}

/* ---- what is said of it ---- */

char *apiserver_rename_adopted_event(const ApiServerSync *api, const char *json) {
        for (const ApiServerPod *pod = api->pods; pod; pod = pod->next)
                if (pod->adopted && strstr(json, pod->adopted->metadata.uid))
                        return event_object_retarget(json, pod->adopted->metadata.uid,
                                                     strchr(pod->key, '/') + 1,
                                                     pod_adoption_api_uid(pod->adopted));
        return NULL;
}
