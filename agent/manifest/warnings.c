/* SPDX-License-Identifier: Apache-2.0 */

/* Warnings about settings that Kubernetes accepts and ignores. */

#include "agent/manifest/rules.h"

#include <stdio.h>
#include <string.h>

/* Old annotations that became fields. */
static const struct {
        const char *key;
        const char *field;
} replaced[] = {
        { "security.alpha.kubernetes.io/sysctls", "securityContext.sysctls" },
        { "security.alpha.kubernetes.io/unsafe-sysctls", "securityContext.sysctls" },
        { "scheduler.alpha.kubernetes.io/critical-pod", "priorityClassName" },
};

/* Without effect, the pod would silently lack protection. */
static int warn_of_annotation(Decoder *d, const YamlNode *map, const DecodePath *parent,
                              const Pod *pod, const char *key) {
        const DecodePath path = { .parent = parent, .key = key, .is_map_key = true };
        const char *profile = find_unset_profile_field(pod, key);
        char sentence[128] = "";

        if (profile)
                (void) snprintf(sentence, sizeof(sentence), "is ignored; use securityContext.%s",
                                profile);
        for (size_t i = 0; i < N_ELEMENTS(replaced); i++)
                if (streq(key, replaced[i].key))
                        (void) snprintf(sentence, sizeof(sentence), "is ignored; use %s",
                                        replaced[i].field);
        return sentence[0] ? decode_warn(d, yaml_node_get(map, key), &path, sentence) : 0;
}

static int warn_of_grace_period(Decoder *d, const YamlNode *spec, const DecodePath *parent) {
        static const char key[] = "terminationGracePeriodSeconds";
        const DecodePath path = { .parent = parent, .key = key };

        return decode_warn(d, yaml_node_get(spec, key), &path,
                           "is negative, which is treated as 1");
}

int pod_warn(Decoder *decoder, const YamlNode *root, const DecodePath *path, const Pod *pod) {
        const DecodePath metadata = { .parent = path, .key = "metadata" };
        const DecodePath map = { .parent = &metadata, .key = "annotations" };
        const DecodePath spec = { .parent = path, .key = "spec" };
        int r;

        for (size_t i = 0; i < pod->metadata.annotations.n; i++) {
                r = warn_of_annotation(
                        decoder, yaml_node_get(yaml_node_get(root, "metadata"), "annotations"),
                        &map, pod, pod->metadata.annotations.items[i].key);
                if (r < 0)
                        return r;
        }
        if (pod->spec.termination_grace_period_seconds.value < 0)
                return warn_of_grace_period(decoder, yaml_node_get(root, "spec"), &spec);
        return 0;
}
