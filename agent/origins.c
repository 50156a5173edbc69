/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/origins.h"

#include "agent/cluster.h"
#include "agent/daemons.h"
#include "agent/model/cover.h"
#include "agent/model/json.h"
#include "common/cleanup.h"

char *origin_of_set(const char *origin) {
        char *text;

        if (streq(origin, cluster_origin))
                return strdup("api");
        return asprintf(&text, "file %s", origin) < 0 ? NULL : text;
}

static char *origin_of_api(const Pod *pod) {
        cleanup_free char *covered = cover_name(pod);
        char *text;

        if (!covered)
                return strdup("api");
        return asprintf(&text, "api (as %s)", covered) < 0 ? NULL : text;
}

static char *origin_of_pod(const char *origin, const Pod *pod) {
        const OwnerReference *owner = object_controller(&pod->metadata);
        cleanup_free char *of_set = NULL;
        char *text;

        if (streq(origin, cluster_file))
                return origin_of_api(pod);
        if (streq(origin, orphan_file))
                return strdup("left by a DaemonSet");
        of_set = origin_of_set(origin);
        if (!of_set || !owner || !streq_ptr(owner->kind, "DaemonSet"))
                return TAKE_PTR(of_set);
        return asprintf(&text, "evaluated (%s)", of_set) < 0 ? NULL : text;
}

char *origin_print_pod(const Supervisor *supervisor, const Pod *pod, const PodStatus *status) {
        const char *origin = supervisor_origin(supervisor, pod->metadata.uid);
        cleanup_free char *source = origin ? origin_of_pod(origin, pod) : NULL;

        return pod_to_json_from(pod, status, strna(source));
}
