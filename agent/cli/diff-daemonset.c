/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cli/diff-daemonset.h"

#include "agent/cli/resources.h"
#include "agent/cli/words.h"
#include "agent/daemonset/rules/rules.h"
#include "common/json-text.h"

#include <errno.h>
#include <stdio.h>

/* A pod of the set that is not terminating, preferably one of this revision; or NULL. */
static const json_t *find_daemonset_pod(const json_t *pods, const DaemonSet *set,
                                        const char *hash) {
        const json_t *found = NULL;
        size_t i;
        json_t *pod;

        json_array_foreach(pods, i, pod) {
                if (!is_owned_by_daemonset(pod, set->metadata.name) ||
                    !streq_ptr(json_text(pod, "metadata", "namespace"), set->metadata.namespace) ||
                    json_at(pod, "metadata", "deletionTimestamp"))
                        continue;
                found = pod;
                if (streq_ptr(json_text(pod, "metadata", "labels", "controller-revision-hash"),
                              hash))
                        break;
        }
        return found;
}

static const char *explain_update_strategy(const DaemonSet *set) {
        const DaemonSetUpdateStrategy *strategy = &set->spec.update_strategy;

        if (strategy->type == DAEMONSET_ON_DELETE)
                return "when the old one is deleted (OnDelete)";
        if (int_or_percent_of_one(&strategy->rolling_update->max_surge, true) > 0)
                return "the new one starts first";
        return "the old one terminates first";
}

int diff_daemonset(const char *node, const json_t *pods, const DaemonSet *set) {
        char hash[REVISION_HASH_SIZE];
        const json_t *pod;
        int r = daemonset_revision_hash(&set->spec.template, hash);

        if (r < 0)
                return r;
        printf("daemonset %s/%s: ", set->metadata.namespace, set->metadata.name);
        pod = find_daemonset_pod(pods, set, hash);
        if (!pod) {
                printf("does not run on %s\n", node);
                return 1;
        }
        if (streq_ptr(json_text(pod, "metadata", "labels", "controller-revision-hash"), hash)) {
                printf("unchanged\n");
                return 0;
        }
        printf("is a new revision; its pod is replaced, %s\n", explain_update_strategy(set));
        return 1;
}
