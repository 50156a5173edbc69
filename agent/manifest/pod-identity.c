/* SPDX-License-Identifier: Apache-2.0 */

/* The identity of a static pod: UID, name and annotations. The kubelet's UID includes a hash of the
 * file's path, so that renaming the file restarts the pod. Here the UID is a hash of node, name and
 * spec. */

#include "agent/manifest/pod-rules.h"
#include "agent/model/own-values.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/text.h"

#include <ctype.h>

static int set_static_pod_name(Pod *pod, const char *node_name) {
        char *name = text_format("%s-%s", pod->metadata.name, node_name);

        if (!name)
                return -ENOMEM;
        for (char *p = name + strlen(pod->metadata.name); *p; p++)
                *p = (char) tolower((unsigned char) *p);
        free(pod->metadata.name);
        pod->metadata.name = name;

        name = strdup(node_name);
        if (!name)
                return -ENOMEM;
        free(pod->spec.node_name);
        pod->spec.node_name = name;
        return 0;
}

static int set_config_source_annotations(Pod *pod, const PodSource *source) {
        char seen[RFC3339_SIZE];
        int r = string_map_set(&pod->metadata.annotations, "kubernetes.io/config.seen",
                               format_rfc3339_nano(seen, now_realtime_usec()));

        return r < 0 ? r : pod_set_source(pod, source);
}

int pod_set_identity(Pod *pod, const char *node_name, const PodSource *source) {
        int r;

        own_values_forget_agents(&pod->metadata);
        r = set_static_pod_name(pod, node_name);
        if (r < 0)
                return r;
        r = pod_set_uid(pod);
        if (r < 0)
                return r;
        r = pod_set_config_hash(pod);
        if (r < 0)
                return r;
        return set_config_source_annotations(pod, source);
}

int pod_set_api_identity(Pod *pod, Error *reterr) {
        static const PodSource source = { .kind = POD_SOURCE_APISERVER };

        if (!pod->metadata.uid)
                return error_setf(reterr, EINVAL, "metadata.uid: is required");
        own_values_forget_agents(&pod->metadata);
        return set_config_source_annotations(pod, &source);
}
