/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/model/own-keys.h"

#include "common/json-text.h"
#include "common/macros.h"

#include <string.h>

/* Users of an API server must not control these keys: units of the machine wait for bootstrap and
 * critical pods, and an update of the machine is rolled back if these pods are not ready; the
 * journal belongs to the machine; the order of pods decides when pods from manifests start and
 * stop; and only pods from manifests are rolled back. The deadline on a DaemonSet of an API server
 * applies only to the pods of that DaemonSet. */
const OwnKeyInfo own_keys[N_OWN_KEYS] = {
        [OWN_KEY_AFTER] = { "mainstay.dev/after" },
        [OWN_KEY_BOOTSTRAP] = { "mainstay.dev/bootstrap" },
        [OWN_KEY_CRITICAL] = { "mainstay.dev/critical", .may_be_label = true },
        [OWN_KEY_JOURNAL_LOGS] = { "mainstay.dev/journal-logs" },
        [OWN_KEY_PROGRESS_DEADLINE] = { "mainstay.dev/progress-deadline-seconds" },
        [OWN_KEY_ENCRYPTED_KEYS] = { "mainstay.dev/encrypted-keys" },
        [OWN_KEY_ENCRYPTED_FOR] = { "mainstay.dev/encrypted-for" },
        [OWN_KEY_COVERS] = { "mainstay.dev/covers", .of_any_pod = true, .is_agents = true },
        [OWN_KEY_ROLLED_BACK] = { "mainstay.dev/rolled-back", .is_agents = true },
        [OWN_KEY_SOURCE] = { "mainstay.dev/source", .of_any_pod = true, .is_agents = true },
        [OWN_KEY_NODE_LABELS] = { "mainstay.dev/own-labels" },
        [OWN_KEY_NODE_TAINTS] = { "mainstay.dev/own-taints" },
        [OWN_KEY_API_SERVER] = { "mainstay.dev/api-server" },
        [OWN_KEY_API_SERVER_ERROR] = { "mainstay.dev/api-server-last-error" },
        [OWN_KEY_DAEMONSETS_BY] = { "mainstay.dev/daemonsets-by" },
        [OWN_KEY_LANDLOCK] = { "mainstay.dev/landlock" },
        [OWN_KEY_SECRETS_AT_REST] = { "mainstay.dev/secrets-at-rest" },
        [OWN_KEY_SETTINGS_WITHOUT_EFFECT] = { "mainstay.dev/settings-without-effect" },
};

const char *own_key_name(OwnKey key) {
        return own_keys[key].name;
}

bool own_key_is_agents(const char *key) {
        for (OwnKey i = 0; i < N_OWN_KEYS; i++)
                if (own_keys[i].is_agents && streq(own_keys[i].name, key))
                        return true;
        return false;
}

/* See print_pod_source(). The agent replaces any text that the source of the pod has written there.
 */
static bool is_of_manifest(const json_t *pod) {
        static const char *const starts[] = { "file ",
                                              "url",
                                              "index ",
                                              "evaluated (file ",
                                              "evaluated (url",
                                              "evaluated (index ",
                                              "left by a DaemonSet" };
        const char *source = own_json_value(pod, OWN_KEY_SOURCE);

        for (size_t i = 0; source && i < N_ELEMENTS(starts); i++)
                if (strncmp(source, starts[i], strlen(starts[i])) == 0)
                        return true;
        return false;
}

const char *own_json_value(const json_t *object, OwnKey key) {
        return json_text(object, "metadata", "annotations", own_keys[key].name);
}

static bool counts_in_json(const json_t *pod, OwnKey key) {
        return own_keys[key].of_any_pod || is_of_manifest(pod);
}

const char *own_pod_json_value(const json_t *pod, OwnKey key) {
        return counts_in_json(pod, key) ? own_json_value(pod, key) : NULL;
}

bool own_pod_json_is_true(const json_t *pod, OwnKey key) {
        const char *label = own_keys[key].may_be_label
                                    ? json_text(pod, "metadata", "labels", own_keys[key].name)
                                    : NULL;

        return streq_ptr(own_pod_json_value(pod, key), "true") ||
               (streq_ptr(label, "true") && counts_in_json(pod, key));
}

json_t *own_pod_json_annotations(const json_t *pod) {
        json_t *annotations = json_object();

        for (OwnKey key = 0; annotations && key < N_OWN_KEYS; key++) {
                const char *value = own_pod_json_value(pod, key);

                if (value && own_json_set_new(annotations, key, json_string(value)) < 0) {
                        json_decref(annotations);
                        return NULL;
                }
        }
        return annotations;
}

int own_json_set_new(json_t *annotations, OwnKey key, json_t *value) {
        return json_object_set_new(annotations, own_keys[key].name, value);
}
