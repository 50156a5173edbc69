/* SPDX-License-Identifier: Apache-2.0 */

/* Creates the controller's pod from a template: name, hash, owner, tolerations and node affinity.
 * Kubernetes hashes a dump of its own structs and generates random names; here both are computed
 * from the manifest, so that a revision yields the same pod after each restart of the agent.
 */

#include "agent/daemonset/rules/rules.h"

#include "agent/daemonset/rules/tolerations.h"
#include "agent/model/json.h"
#include "agent/model/match.h"
#include "agent/model/object-identity.h"
#include "agent/model/own-values.h"
#include "common/array.h"
#include "common/cleanup.h"
#include "common/hash.h"
#include "common/strv.h"
#include "common/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum {
        NAME_SUFFIX_LENGTH = 5,
        NAME_BASE_MAX = 58, /* so that a name is a valid host name */
};

const char revision_hash_label[] = "controller-revision-hash";

/* The alphabet has no vowels and no characters that look alike, so that the result is not a word.
 */
static const char safe_alphabet[] = "bcdfghjklmnpqrstvwxz2456789";

static unsigned hex_digit(char c) {
        return c <= '9' ? (unsigned) (c - '0') : (unsigned) (c - 'a') + 10;
}

/* 'n' characters, each from two digits of a hash. */
static void encode_safe(const char *hex, size_t n, char *ret) {
        for (size_t i = 0; i < n; i++)
                ret[i] = safe_alphabet[(hex_digit(hex[2 * i]) * 16 + hex_digit(hex[2 * i + 1])) %
                                       (sizeof(safe_alphabet) - 1)];
        ret[n] = '\0';
}

int daemonset_revision_hash(const Pod *template, char ret[REVISION_HASH_SIZE]) {
        cleanup_free char *json = object_to_json(&pod_template_schema, template);
        char hex[SHA256_HEX_SIZE];

        if (!json)
                return -ENOMEM;
        sha256_hex(json, strlen(json), hex);
        encode_safe(hex, REVISION_HASH_SIZE - 1, ret);
        return 0;
}

static int set_daemon_pod_name(Pod *pod, const DaemonSet *set, const char *hash,
                               const char *node_name) {
        cleanup_free char *key = NULL;
        char hex[SHA256_HEX_SIZE], suffix[NAME_SUFFIX_LENGTH + 1];
        size_t n = MIN(strlen(set->metadata.name), (size_t) NAME_BASE_MAX - 1);

        key = text_format("%s/%s/%s", set->metadata.uid, hash, node_name);
        if (!key)
                return -ENOMEM;
        sha256_hex(key, strlen(key), hex);
        encode_safe(hex, NAME_SUFFIX_LENGTH, suffix);
        pod->metadata.name = text_format("%.*s-%s", (int) n, set->metadata.name, suffix);
        if (!pod->metadata.name)
                return -ENOMEM;
        pod->metadata.namespace = strdup(set->metadata.namespace);
        return pod->metadata.namespace ? 0 : -ENOMEM;
}

static int set_revision_labels(Pod *pod, const char *hash, int64_t generation) {
        char number[24];
        int r;

        (void) snprintf(number, sizeof(number), "%lld", (long long) generation);
        r = string_map_set(&pod->metadata.labels, revision_hash_label, hash);
        if (r < 0)
                return r;
        return string_map_set(&pod->metadata.labels, "pod-template-generation", number);
}

static void clear_pod_owners(Pod *pod) {
        for (size_t i = 0; i < pod->metadata.owner_references.n; i++)
                schema_done(&owner_reference_schema, &pod->metadata.owner_references.items[i]);
        free(pod->metadata.owner_references.items);
        pod->metadata.owner_references.items = NULL;
        pod->metadata.owner_references.n = 0;
}

int daemonset_set_pod_owner(const DaemonSet *set, Pod *pod) {
        OwnerReference *owner;

        clear_pod_owners(pod);
        if (!set)
                return 0;
        owner = calloc(1, sizeof(*owner));
        if (!owner)
                return -ENOMEM;
        pod->metadata.owner_references.items = owner;
        pod->metadata.owner_references.n = 1;
        owner->api_version = strdup("apps/v1");
        owner->kind = strdup("DaemonSet");
        owner->name = strdup(set->metadata.name);
        owner->uid = strdup(set->metadata.uid);
        owner->controller = true;
        owner->block_owner_deletion = true;
        return owner->api_version && owner->kind && owner->name && owner->uid ? 0 : -ENOMEM;
}

static bool has_toleration(const TolerationList *list, const Toleration *toleration) {
        for (size_t i = 0; i < list->n; i++)
                if (schema_equal(&toleration_schema, &list->items[i], toleration))
                        return true;
        return false;
}

/* The list is in tolerations.c. */
static int add_automatic_tolerations(Pod *pod, const DaemonSet *set) {
        TolerationList *list = &pod->spec.tolerations;
        const Toleration *toleration;

        for (size_t i = 0; (toleration = daemonset_automatic_toleration(set, i)); i++) {
                Toleration *added;
                int r;

                if (has_toleration(list, toleration))
                        continue;
                added = ARRAY_APPEND(list->items, list->n);
                if (!added)
                        return -ENOMEM;
                r = schema_copy(&toleration_schema, added, toleration);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* A single new item for a list that pod_free() frees, or NULL. */
static void *new_single_item(void *items_at, size_t *n, size_t size) {
        void *item = calloc(1, size);

        memcpy(items_at, &item, sizeof(item));
        *n = item ? 1 : 0;
        return item;
}

static NodeAffinity *get_node_affinity(Pod *pod) {
        if (!pod->spec.affinity)
                pod->spec.affinity = calloc(1, sizeof(*pod->spec.affinity));
        if (pod->spec.affinity && !pod->spec.affinity->node_affinity)
                pod->spec.affinity->node_affinity =
                        calloc(1, sizeof(*pod->spec.affinity->node_affinity));
        return pod->spec.affinity ? pod->spec.affinity->node_affinity : NULL;
}

/* The required node affinity has already been evaluated, and is replaced by this node's name. */
static int set_node_name_affinity(Pod *pod, const char *node_name) {
        NodeAffinity *affinity = get_node_affinity(pod);
        SelectorRequirement *field;
        NodeSelectorTerm *term;

        if (!affinity)
                return -ENOMEM;
        if (affinity->required)
                schema_done(&node_selector_schema, affinity->required);
        else
                affinity->required = calloc(1, sizeof(*affinity->required));
        if (!affinity->required)
                return -ENOMEM;
        term = new_single_item(&affinity->required->terms.items, &affinity->required->terms.n,
                               sizeof(*term));
        field = term ? new_single_item(&term->match_fields.items, &term->match_fields.n,
                                       sizeof(*field))
                     : NULL;
        if (!field)
                return -ENOMEM;
        field->key = strdup("metadata.name");
        field->op = SELECTOR_IN;
        return field->key ? strv_append(&field->values, node_name) : -ENOMEM;
}

static int bind_pod_to_node(Pod *pod, const char *node_name) {
        char *name = strdup(node_name);

        if (!name)
                return -ENOMEM;
        free(pod->spec.node_name);
        pod->spec.node_name = name;
        return pod_set_uid(pod);
}

/* The kubelet's annotations, which a template must not contain. */
static void remove_agent_annotations(StringMap *annotations) {
        for (size_t i = annotations->n; i > 0; i--)
                if (is_agent_annotation(annotations->items[i - 1].key))
                        string_map_remove(annotations, annotations->items[i - 1].key);
}

int daemonset_make_pod(const DaemonSet *set, const Pod *template, const char *hash,
                       int64_t generation, const char *node_name, Pod **ret) {
        cleanup_with(pod_freep) Pod *pod = calloc(1, sizeof(*pod));
        int r;

        if (!pod)
                return -ENOMEM;
        r = schema_copy(&pod_template_schema, pod, template);
        if (r < 0)
                return r;
        pod->metadata.source = set->metadata.source;
        own_values_forget_agents(&pod->metadata);
        remove_agent_annotations(&pod->metadata.annotations);
        r = set_daemon_pod_name(pod, set, hash, node_name);
        if (r < 0)
                return r;
        r = set_revision_labels(pod, hash, generation);
        if (r < 0)
                return r;
        r = daemonset_set_pod_owner(set, pod);
        if (r < 0)
                return r;
        r = add_automatic_tolerations(pod, set);
        if (r < 0)
                return r;
        r = set_node_name_affinity(pod, node_name);
        if (r < 0)
                return r;
        r = bind_pod_to_node(pod, node_name);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(pod);
        return 0;
}

bool daemonset_selects_pod(const DaemonSet *set, const Pod *pod) {
        return objects_share_namespace(&set->metadata, &pod->metadata) &&
               label_selector_matches(set->spec.selector, &pod->metadata.labels);
}

bool daemonset_controls_pod(const DaemonSet *set, const Pod *pod) {
        const ObjectIdentity identity = object_identity(&set->metadata);

        return object_is_controlled_by_daemonset(&pod->metadata, &identity) &&
               daemonset_selects_pod(set, pod);
}
