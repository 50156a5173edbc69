/* SPDX-License-Identifier: Apache-2.0 */
/* The set of desired pods, sorted by name for a binary search. */

#include "agent/model/desired-pods.h"

#include "agent/model/object-identity.h"
#include "common/array.h"
#include "common/cleanup.h"

typedef struct NamespacedName {
        const char *namespace, *name;
} NamespacedName;

static int compare_pod_name(const NamespacedName *key, const DesiredPod *desired) {
        return -object_compare_name(&desired->pod->metadata, key->namespace, key->name);
}

DesiredPod *desired_pods_find(const DesiredPods *desired, const char *namespace, const char *name) {
        const NamespacedName key = { namespace, name };

        return ARRAY_FIND(&key, desired->pods.items, desired->pods.n, compare_pod_name);
}

const DesiredPod *desired_pods_find_uid(const DesiredPods *desired, const char *uid) {
        for (size_t i = 0; i < desired->pods.n; i++)
                if (object_has_uid(&desired->pods.items[i].pod->metadata, uid))
                        return &desired->pods.items[i];
        return NULL;
}

int desired_pods_add(DesiredPods *desired, const PodSource *source, const Pod *pod) {
        const NamespacedName key = { pod->metadata.namespace, pod->metadata.name };
        size_t i = ARRAY_FIND_PLACE(&key, desired->pods.items, desired->pods.n, compare_pod_name);
        DesiredPod *added;

        if (i < desired->pods.n && compare_pod_name(&key, &desired->pods.items[i]) == 0)
                return 0;
        added = ARRAY_INSERT(desired->pods.items, desired->pods.n, i);
        if (!added) {
                desired->is_incomplete = true;
                return -ENOMEM;
        }
        *added = (DesiredPod){ .source = *source, .pod = pod };
        return 1;
}

int desired_pods_add_take(DesiredPods *desired, const PodSource *source, Pod *pod) {
        int r;

        pod->metadata.source = pod_source_origin(source);
        r = desired_pods_add(desired, source, pod);

        if (r > 0)
                desired_pods_find(desired, pod->metadata.namespace, pod->metadata.name)->owned =
                        pod;
        else
                pod_free(pod);
        return r;
}

static void desired_pod_done(DesiredPod *desired) {
        pod_free(desired->owned);
        free(desired->resolved);
}

void desired_pods_done(DesiredPods *desired) {
        for (size_t i = 0; i < desired->pods.n; i++)
                desired_pod_done(&desired->pods.items[i]);
        free(desired->pods.items);
        *desired = (DesiredPods){ 0 };
}

int desired_daemonsets_add(DesiredDaemonSets *sets, const PodSource *source, const DaemonSet *set) {
        if (!ARRAY_RESERVE(sets->items, sets->n, 1))
                return -ENOMEM;
        sets->items[sets->n++] = (DesiredDaemonSet){ *source, set };
        return 0;
}

void desired_daemonsets_done(DesiredDaemonSets *sets) {
        free(sets->items);
        *sets = (DesiredDaemonSets){ 0 };
}

const ObjectMeta *actual_pod_metadata(const ActualPod *actual) {
        return actual->pod ? &actual->pod->metadata : &actual->successor->metadata;
}

const ActualPod *actual_pods_find(const ActualPods *actual, const ObjectMeta *metadata) {
        for (size_t i = 0; i < actual->n; i++) {
                const ObjectMeta *one = actual_pod_metadata(&actual->items[i]);

                if (object_compare_name(one, metadata->namespace, metadata->name) == 0)
                        return &actual->items[i];
        }
        return NULL;
}

bool actual_pod_is_current(const ActualPod *actual) {
        return actual && actual->pod && !actual->is_terminating && !actual->is_outdated;
}

void actual_pods_done(ActualPods *actual) {
        for (size_t i = 0; i < actual->n; i++)
                free(actual->items[i].stop_reason);
        free(actual->items);
        *actual = (ActualPods){ 0 };
}
