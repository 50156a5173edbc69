/* SPDX-License-Identifier: Apache-2.0 */

/* What Kubernetes accepts although it does not do what is written: as it warns of it, so do we. */

#include "agent/manifest/rules.h"

#include <string.h>

/* Annotations of old that became fields; who relies on one of them is not protected by it. */
static const struct {
        const char *prefix;
        const char *sentence;
} annotations[] = {
        { "container.apparmor.security.beta.kubernetes.io/",
          "has no effect; use securityContext.appArmorProfile" },
        { "container.seccomp.security.alpha.kubernetes.io/",
          "has no effect; use securityContext.seccompProfile" },
        { "seccomp.security.alpha.kubernetes.io/",
          "has no effect; use securityContext.seccompProfile" },
        { "security.alpha.kubernetes.io/sysctls", "has no effect; use securityContext.sysctls" },
        { "security.alpha.kubernetes.io/unsafe-sysctls",
          "has no effect; use securityContext.sysctls" },
        { "scheduler.alpha.kubernetes.io/critical-pod", "has no effect; use priorityClassName" },
};

static int warn_of_annotation(Decoder *d, const Node *map, const DecodePath *parent,
                              const char *key) {
        const DecodePath path = { .parent = parent, .key = key, .is_map_key = true };

        for (size_t i = 0; i < N_ELEMENTS(annotations); i++)
                if (strncmp(key, annotations[i].prefix, strlen(annotations[i].prefix)) == 0)
                        return decode_warn(d, node_get(map, key), &path, annotations[i].sentence);
        return 0;
}

static int warn_of_grace_period(Decoder *d, const Node *spec, const DecodePath *parent) {
        static const char key[] = "terminationGracePeriodSeconds";
        const DecodePath path = { .parent = parent, .key = key };

        return decode_warn(d, node_get(spec, key), &path, "is negative, which is taken for 1");
}

int pod_warn(Decoder *decoder, const Node *root, const DecodePath *path, const Pod *pod) {
        const DecodePath metadata = { .parent = path, .key = "metadata" };
        const DecodePath map = { .parent = &metadata, .key = "annotations" };
        const DecodePath spec = { .parent = path, .key = "spec" };
        int r = 0;

        for (size_t i = 0; r >= 0 && i < pod->metadata.annotations.n; i++)
                r = warn_of_annotation(decoder, node_get(node_get(root, "metadata"), "annotations"),
                                       &map, pod->metadata.annotations.items[i].key);
        if (r >= 0 && pod->spec.termination_grace_period_seconds.value < 0)
                r = warn_of_grace_period(decoder, node_get(root, "spec"), &spec);
        return r;
}
