/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/desired/pod-source.h"

#include "agent/apiserver/apiserver.h"
#include "agent/daemonset/controller.h"
#include "agent/model/adoption.h"
#include "agent/model/json.h"
#include "common/cleanup.h"

char *format_daemonset_source(const char *origin) {
        char *text;

        if (streq(origin, apiserver_daemonset_source))
                return strdup("api");
        return asprintf(&text, "file %s", origin) < 0 ? NULL : text;
}

static char *format_apiserver_source(const Pod *pod) {
        cleanup_free char *adopting = pod_adoption_api_name(pod);
        char *text;

        if (!adopting)
                return strdup("api");
        return asprintf(&text, "api (as %s)", adopting) < 0 ? NULL : text;
}

static char *format_pod_source(const char *origin, const Pod *pod) {
        const OwnerReference *owner = object_controller(&pod->metadata);
        cleanup_free char *set_source = NULL;
        char *text;

        if (streq(origin, apiserver_pod_source))
                return format_apiserver_source(pod);
        if (streq(origin, orphan_pod_source))
                return strdup("left by a DaemonSet");
        set_source = format_daemonset_source(origin);
        if (!set_source || !owner || !streq_ptr(owner->kind, "DaemonSet"))
                return TAKE_PTR(set_source);
        return asprintf(&text, "evaluated (%s)", set_source) < 0 ? NULL : text;
}

char *print_pod_with_source(const PodManager *pod_manager, const Pod *pod,
                            const PodStatus *status) {
        const char *origin = pod_manager_pod_source(pod_manager, pod->metadata.uid);
        cleanup_free char *source = origin ? format_pod_source(origin, pod) : NULL;

        return pod_to_json_from(pod, status, strna(source));
}
