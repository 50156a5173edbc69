/* SPDX-License-Identifier: Apache-2.0 */
/* Selects the source that gives the reason for stopping a pod, and finds the reasons in the
 * manifest directory. */

#include "agent/desired/stop-reason.h"

#include "common/text.h"

#include <stdio.h>

/* A file stays listed while it is unreadable or broken, with the pods of its last good content. */
static char *explain_file_stop(const ManifestDirectory *manifests, const char *file) {
        const Manifest *const *list;
        size_t n = manifest_directory_list(manifests, &list);
        bool is_listed = false;
        for (size_t i = 0; i < n && !is_listed; i++)
                is_listed = streq(list[i]->file, file);
        return text_format(is_listed ? "%s no longer contains it" : "%s was removed", file);
}

static char *explain_apiserver_stop(const ApiServerPodSource *apiserver, const PodSource *source,
                                    const Pod *pod) {
        return apiserver->explain_stop ? apiserver->explain_stop(source, pod, apiserver->userdata)
                                       : strdup("there is no kubeconfig");
}

char *find_stop_reason(const DaemonSetPodSource *daemonsets, const ApiServerPodSource *apiserver,
                       const ManifestDirectory *manifests, const PodSource *source,
                       const Pod *pod) {
        char *reason = NULL;

        switch (source->kind) {
        case POD_SOURCE_FILE:
        case POD_SOURCE_URL:
        case POD_SOURCE_INDEX:
                reason = daemonsets->explain_stop(source, pod, daemonsets->userdata);
                return reason ? reason : explain_file_stop(manifests, source->name);
        case POD_SOURCE_APISERVER:
                return explain_apiserver_stop(apiserver, source, pod);
        case POD_SOURCE_APISERVER_DAEMONSET:
                reason = explain_apiserver_stop(apiserver, source, pod);
                return reason ? reason
                              : daemonsets->explain_stop(source, pod, daemonsets->userdata);
        case POD_SOURCE_ORPHAN:
        case N_POD_SOURCE_KINDS:
                return NULL;
        }
        return NULL;
}
