/* SPDX-License-Identifier: Apache-2.0 */
/* The set of desired pods: sorted by name, searched by halving. */

#include "agent/model/desired-pods.h"

#include "agent/model/object-identity.h"
#include "common/cleanup.h"

/* The first index whose pod is not before the name. */
static size_t find_pod_index(const DesiredPods *desired, const char *namespace, const char *name) {
        size_t low = 0, high = desired->pods.n;

        while (low < high) {
                size_t middle = (low + high) / 2;
                const ObjectMeta *metadata = &desired->pods.items[middle].pod->metadata;

                if (object_compare_name(metadata, namespace, name) < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

DesiredPod *desired_pods_find(const DesiredPods *desired, const char *namespace, const char *name) {
        size_t i = find_pod_index(desired, namespace, name);

        if (i == desired->pods.n ||
            object_compare_name(&desired->pods.items[i].pod->metadata, namespace, name) != 0)
                return NULL;
        return &desired->pods.items[i];
}

bool desired_pods_have_uid(const DesiredPods *desired, const char *uid) {
        for (size_t i = 0; i < desired->pods.n; i++)
                if (object_has_uid(&desired->pods.items[i].pod->metadata, uid))
                        return true;
        return false;
}

int desired_pods_add(DesiredPods *desired, const PodSource *source, const Pod *pod) {
        const ObjectMeta *metadata = &pod->metadata;
        size_t i = find_pod_index(desired, metadata->namespace, metadata->name);
        DesiredPod *longer;

        if (desired_pods_find(desired, metadata->namespace, metadata->name))
                return 0;
        longer = reallocarray(desired->pods.items, desired->pods.n + 1, sizeof(*longer));
        if (!longer) {
                desired->is_incomplete = true;
                return -ENOMEM;
        }
        desired->pods.items = longer;
        memmove(&longer[i + 1], &longer[i], (desired->pods.n - i) * sizeof(*longer));
        longer[i] = (DesiredPod){ .source = *source, .pod = pod };
        desired->pods.n++;
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
        DesiredDaemonSet *longer = reallocarray(sets->items, sets->n + 1, sizeof(*longer));

        if (!longer)
                return -ENOMEM;
        sets->items = longer;
        longer[sets->n++] = (DesiredDaemonSet){ *source, set };
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
