/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the pod to adopt, and keeps it in sync with the API server's pod. */

#include "agent/apiserver/daemonset-pod-adoption.h"

#include "agent/kubeclient/event-object.h"
#include "agent/model/edit-plan.h"
#include "agent/model/object-identity.h"
#include "agent/model/pod-adoption.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "common/text.h"

/* ---- the search ---- */

static bool is_of_same_daemonset(const AdoptionSearch *search, const AdoptionCandidate *candidate) {
        return search->is_of_daemonset && candidate->is_evaluated_here &&
               !pod_is_of_api(candidate->pod) &&
               object_controlling_daemonset(&candidate->pod->metadata) &&
               objects_have_same_controller(&candidate->pod->metadata, &search->desired->metadata);
}

/* The pod was adopted by an older API pod with the same name. */
static bool was_adopted_before(const AdoptionSearch *search, const Pod *local_pod) {
        const ObjectMeta *desired = &search->desired->metadata;
        cleanup_free char *name = pod_adoption_api_name(local_pod);

        return name && object_has_name(desired, local_pod->metadata.namespace, name);
}

/* A pod that is not Ready may need something that only the API server's pod has: a service account
 * token. */
static bool is_pod_running_ready(const PodStatus *status) {
        return status->phase == POD_RUNNING && status->conditions[CONDITION_READY].is_true;
}

int adoption_search_check(AdoptionSearch *search, const AdoptionCandidate *candidate) {
        bool is_same_daemonset = is_of_same_daemonset(search, candidate);
        int r;

        if (candidate->is_adopted_elsewhere ||
            (!is_same_daemonset && !was_adopted_before(search, candidate->pod)))
                return 0;
        search->is_blocked = true;
        if (!is_same_daemonset || candidate->status->deletion_time > 0 || search->adopted)
                return 0;
        if (candidate->status->is_syncing) {
                search->syncing_pod = candidate->pod;
                return 0;
        }
        if (!is_pod_running_ready(candidate->status))
                return 0;
        r = pod_adoption_make(candidate->pod, search->desired, EDIT_IN_PLACE, &search->adopted);
        if (r == 0)
                search->serving_pod = candidate->pod;
        return r < 0 ? r : 0;
}

/* ---- the adopted pod ---- */

int adopted_pod_update(ApiServerPod *pod) {
        BoundPod *bound = &pod->bound;
        Pod *next = NULL;
        int r = 0;

        if (!bound->adopted || bound->is_adopted_current)
                return bound->adopted != NULL;
        if (object_has_uid(&bound->desired->metadata, pod_adoption_api_uid(bound->adopted)))
                r = pod_adoption_make(bound->adopted, bound->desired, EDIT_RESTART_CONTAINER,
                                      &next);
        if (r < 0)
                return r;
        if (r == 0) {
                log_info("Adopted pod '%s' no longer matches pod '%s' of the API server; it is "
                         "stopped and replaced by that pod",
                         bound->adopted->metadata.name, pod->key);
                local_pod_clear(&pod->local);
        }
        pod_free(bound->adopted);
        bound->adopted = next;
        bound->is_adopted_current = r > 0;
        return r;
}

int adopted_pod_restore(PodTable *pods, const Pod *adopted) {
        cleanup_with(pod_freep) Pod *adopting = NULL, *copy = NULL;
        ApiServerPod *pod;
        int r = pod_adoption_restore_api_pod(adopted, &adopting);

        if (r < 0)
                return r;
        r = pod_copy(adopted, &copy);
        if (r < 0)
                return r;
        pod = pod_table_get(pods, adopting->metadata.namespace, adopting->metadata.name);
        if (!pod)
                return -ENOMEM;
        if (pod->bound.desired) /* the API pod has its own record, so this one was stopping */
                return 0;
        pod->bound.desired = pod->bound.owned = TAKE_PTR(adopting);
        pod->bound.adopted = TAKE_PTR(copy);
        pod->bound.is_adopted_current = true;
        return 0;
}

ApiServerPod *adopted_pod_find_entry(const PodTable *pods, const Pod *local_pod) {
        cleanup_free char *name = pod_adoption_api_name(local_pod), *key = NULL;
        ApiServerPod *pod;

        key = name ? text_format("%s/%s", local_pod->metadata.namespace, name) : NULL;
        if (!key)
                return NULL;
        pod = pod_table_find(pods, key);
        if (!pod || !pod->bound.adopted ||
            !objects_are_same(&pod->bound.adopted->metadata, &local_pod->metadata))
                return NULL;
        return pod;
}

const char *adopted_pod_reported_uid(const ApiServerPod *pod, const Pod *local_pod) {
        const Pod *adopted = pod->bound.adopted;
        bool is_adopted = adopted && objects_are_same(&adopted->metadata, &local_pod->metadata);

        return is_adopted ? pod_adoption_api_uid(adopted) : local_pod->metadata.uid;
}

char *adopted_pod_rename_event(const PodTable *pods, const char *json) {
        for (const ApiServerPod *pod = pods->first; pod; pod = pod->next) {
                const Pod *adopted = pod->bound.adopted;

                if (adopted && strstr(json, adopted->metadata.uid))
                        return event_object_retarget(json, adopted->metadata.uid, pod->name,
                                                     pod_adoption_api_uid(adopted));
        }
        return NULL;
}
