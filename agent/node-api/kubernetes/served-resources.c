/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node-api/kubernetes/served-resources.h"

#include "agent/node-api/kubernetes/metrics-objects.h"

#include <stdio.h>

#define NAMES(...) ((const char *const[]){ __VA_ARGS__, NULL })
#define NO_NAMES   ((const char *const[]){ NULL })

/* Kinds that never have objects on a lone node. They are served so that clients that list them get
 * an empty list, and clients that create them get the reason why that is impossible. */
#define NEVER_HERE(group, version, plural, singular, kind, short_names, table)                 \
        {                                                                                      \
                group, version, plural, singular, kind, short_names, NAMES("all"), NULL, NULL, \
                        true, NULL, false, table                                               \
        }

/* clang-format off */
const ServedResource served_resources[] = {
        { "", "v1", "pods", "pod", "Pod", NAMES("po"), NAMES("all"),
          NAMES("spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName",
                "spec.hostNetwork", "status.phase", "status.podIP", "status.nominatedNodeName"),
          NAMES("attach", "ephemeralcontainers", "eviction", "exec", "log", "portforward"), true, "/pods", true, &pod_table_kind },
        { "", "v1", "nodes", "node", "Node", NAMES("no"), NO_NAMES, NAMES("spec.unschedulable"), NAMES("proxy"),
          false, "/node", true, &node_table_kind },
        { "", "v1", "events", "event", "Event", NAMES("ev"), NO_NAMES,
          NAMES("involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid",
                "involvedObject.apiVersion", "involvedObject.resourceVersion", "involvedObject.fieldPath",
                "reason", "reportingComponent", "source", "type"),
          NULL, true, "/events", true, &event_table_kind },
        { "", "v1", "namespaces", "namespace", "Namespace", NAMES("ns"), NO_NAMES, NAMES("status.phase"), NULL,
          false, "/pods", true, &namespace_table_kind },
        { "", "v1", "configmaps", "configmap", "ConfigMap", NAMES("cm"), NO_NAMES, NULL, NULL,
          true, "/configmaps", true, &config_map_table_kind },
        { "", "v1", "secrets", "secret", "Secret", NO_NAMES, NO_NAMES, NAMES("type"), NULL,
          true, "/secrets", true, &secret_table_kind },
        NEVER_HERE("", "v1", "replicationcontrollers", "replicationcontroller", "ReplicationController", NAMES("rc"), &name_table_kind),
        NEVER_HERE("", "v1", "services", "service", "Service", NAMES("svc"), &service_table_kind),
        { "apps", "v1", "daemonsets", "daemonset", "DaemonSet", NAMES("ds"), NAMES("all"), NULL, NULL,
          true, "/daemonsets", true, &daemonset_table_kind },
        { "apps", "v1", "controllerrevisions", "controllerrevision", "ControllerRevision", NO_NAMES, NO_NAMES, NULL, NULL,
          true, "/revisions", true, &controller_revision_table_kind },
        NEVER_HERE("apps", "v1", "deployments", "deployment", "Deployment", NAMES("deploy"), &name_table_kind),
        NEVER_HERE("apps", "v1", "replicasets", "replicaset", "ReplicaSet", NAMES("rs"), &name_table_kind),
        NEVER_HERE("apps", "v1", "statefulsets", "statefulset", "StatefulSet", NAMES("sts"), &name_table_kind),
        NEVER_HERE("batch", "v1", "cronjobs", "cronjob", "CronJob", NAMES("cj"), &name_table_kind),
        NEVER_HERE("batch", "v1", "jobs", "job", "Job", NO_NAMES, &name_table_kind),
        { "scheduling.k8s.io", "v1", "priorityclasses", "priorityclass", "PriorityClass", NAMES("pc"), NO_NAMES, NULL, NULL,
          false, "/priorityclasses", true, &priority_class_table_kind },
        { "node.k8s.io", "v1", "runtimeclasses", "runtimeclass", "RuntimeClass", NO_NAMES, NO_NAMES, NULL, NULL,
          false, "/runtimeclasses", true, &runtime_class_table_kind },
        { "coordination.k8s.io", "v1", "leases", "lease", "Lease", NO_NAMES, NO_NAMES, NULL, NULL,
          true, "/node", false, &lease_table_kind },
        { "policy", "v1", "poddisruptionbudgets", "poddisruptionbudget", "PodDisruptionBudget", NAMES("pdb"), NO_NAMES, NULL, NULL,
          true, NULL, false, &disruption_budget_table_kind },
        { METRICS_GROUP, "v1beta1", "nodes", "node", "NodeMetrics", NO_NAMES, NO_NAMES, NULL, NULL,
          false, "/stats/summary?only_cpu_and_memory=true", false, &name_table_kind, "/node" },
        { METRICS_GROUP, "v1beta1", "pods", "pod", "PodMetrics", NO_NAMES, NO_NAMES, NULL, NULL,
          true, "/stats/summary?only_cpu_and_memory=true", false, &name_table_kind, "/pods" },
};
/* clang-format on */

const size_t n_served_resources = N_ELEMENTS(served_resources);
_Static_assert(N_ELEMENTS(served_resources) <= SERVED_RESOURCES_MAX,
               "more than SERVED_RESOURCES_MAX");

const ServedResource *find_served_resource(const ResourcePath *path) {
        for (size_t i = 0; i < n_served_resources; i++)
                if (streq(served_resources[i].group, path->group) &&
                    streq(served_resources[i].version, path->version) &&
                    streq_ptr(served_resources[i].plural, path->resource))
                        return &served_resources[i];
        return NULL;
}

const char *const *served_verbs(const ServedResource *resource, const char *subresource) {
        static const char *const reading[] = { "get", "list", "watch", NULL };
        static const char *const of_pods[] = { "delete", "get", "list", "watch", NULL };
        static const char *const of_daemonsets[] = { "get", "list", "patch", "watch", NULL };
        static const char *const of_sessions[] = { "create", "get", NULL };
        static const char *const of_logs[] = { "get", NULL };
        static const char *const of_ephemeral[] = { "patch", "update", NULL };
        static const char *const of_eviction[] = { "create", NULL };
        static const char *const none[] = { NULL };
        bool is_pods = streq(resource->plural, "pods") && !resource->group[0];

        if (!subresource)
                return is_pods                                 ? of_pods
                       : streq(resource->plural, "daemonsets") ? of_daemonsets
                                                               : reading;
        if (streq(subresource, "proxy"))
                return of_sessions;
        if (!is_pods)
                return none;
        if (streq(subresource, "log"))
                return of_logs;
        if (streq(subresource, "eviction"))
                return of_eviction;
        return streq(subresource, "ephemeralcontainers") ? of_ephemeral : of_sessions;
}

const char *served_api_version(const ServedResource *resource, char buffer[API_VERSION_SIZE]) {
        (void) snprintf(buffer, API_VERSION_SIZE, "%s%s%s", resource->group,
                        resource->group[0] ? "/" : "", resource->version);
        return buffer;
}
