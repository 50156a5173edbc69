/* SPDX-License-Identifier: Apache-2.0 */
/* Computes which labels and taints of a Node are local and which are external, and the patch
 * between configured and reported ones. */

#include "agent/kubeclient/node-local-labels.h"

#include "agent/kubeclient/json-string.h"
#include "agent/model/match.h"
#include "agent/model/names.h"
#include "agent/model/own-keys.h"
#include "agent/model/pod.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/json-text.h"
#include "common/text.h"

/* ---- labels that a node may set on itself ---- */

static const char *const allowed_labels[] = {
        "kubernetes.io/hostname",
        "kubernetes.io/os",
        "kubernetes.io/arch",
        "kubernetes.io/instance-type",
        "beta.kubernetes.io/os",
        "beta.kubernetes.io/arch",
        "beta.kubernetes.io/instance-type",
        "node.kubernetes.io/instance-type",
        "topology.kubernetes.io/region",
        "topology.kubernetes.io/zone",
        "failure-domain.beta.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/zone",
};

static bool ends_domain(const char *domain, size_t length, const char *end) {
        size_t n = strlen(end);

        return length >= n && strncmp(domain + length - n, end, n) == 0 &&
               (length == n || domain[length - n - 1] == '.');
}

bool node_label_is_self_assignable(const char *key) {
        const char *slash = strchr(key, '/');
        size_t length = slash ? (size_t) (slash - key) : 0;

        for (size_t i = 0; i < N_ELEMENTS(allowed_labels); i++)
                if (streq(key, allowed_labels[i]))
                        return true;
        if (!slash || ends_domain(key, length, "kubelet.kubernetes.io") ||
            ends_domain(key, length, "node.kubernetes.io"))
                return true;
        return !ends_domain(key, length, "kubernetes.io") && !ends_domain(key, length, "k8s.io");
}

/* ---- annotations: local labels and taints ---- */

/* "a=b,c=d" */
static void set_list_annotation(json_t *annotations, OwnKey key, char *text) {
        if (text && text[0])
                (void) own_json_set_new(annotations, key, json_string(text));
        free(text);
}

static char *format_label_list(const json_t *labels) {
        char *text = NULL;
        size_t length;
        FILE *out = open_memstream(&text, &length);
        const char *key, *comma = "";
        json_t *value;

        if (!out)
                return NULL;
        json_object_foreach((json_t *) (uintptr_t) labels, key, value) {
                fprintf(out, "%s%s=%s", comma, key, json_string_value(value));
                comma = ",";
        }
        return memstream_finish(out, &text);
}

static void format_listed_taint(const Taint *taint, FILE *out) {
        char buffer[TAINT_SIZE];

        fprintf(out, "%s%s", ftell(out) > 0 ? "," : "", taint_format(taint, buffer));
}

static char *format_taint_list(const TaintList *taints) {
        char *text = NULL;
        size_t length;
        FILE *out = open_memstream(&text, &length);

        if (!out)
                return NULL;
        for (size_t i = 0; i < taints->n; i++)
                format_listed_taint(&taints->items[i], out);
        return memstream_finish(out, &text);
}

/* Reads such a list. */
static json_t *read_list_annotation(const json_t *node, OwnKey key) {
        const char *text = own_json_value(node, key);
        cleanup_free char *copy = text ? strdup(text) : NULL;
        json_t *array = json_array();
        char *rest = copy, *item;

        while ((item = strsep(&rest, ",")))
                (void) json_array_append_new(array, json_string(item));
        return array;
}

static bool has_listed_text(const json_t *array, const char *text) {
        size_t i;
        json_t *item;

        json_array_foreach(array, i, item)
                if (streq(strna(json_string_value(item)), text))
                        return true;
        return false;
}

static bool is_label_listed(const json_t *array, const char *key, const char *value) {
        cleanup_free char *text = text_format("%s=%s", key, value);

        if (!text)
                return true; /* in doubt the label counts as external and is not changed */
        return has_listed_text(array, text);
}

json_t *node_local_labels_to_json(const NodeLabelsTaints *own) {
        json_t *labels = json_object();

        for (size_t i = 0; i < own->labels.n; i++)
                if (node_label_is_self_assignable(own->labels.items[i].key))
                        (void) json_object_set_new(labels, own->labels.items[i].key,
                                                   json_string(own->labels.items[i].value));
        return labels;
}

json_t *node_local_annotations_to_json(const NodeLabelsTaints *own) {
        cleanup_json json_t *labels = node_local_labels_to_json(own);
        json_t *annotations = json_object();

        set_list_annotation(annotations, OWN_KEY_NODE_LABELS, format_label_list(labels));
        set_list_annotation(annotations, OWN_KEY_NODE_TAINTS, format_taint_list(&own->taints));
        return annotations;
}

json_t *node_local_taints_to_json(const NodeLabelsTaints *own) {
        json_t *array = json_array();

        for (size_t i = 0; i < own->taints.n; i++) {
                const Taint *taint = &own->taints.items[i];

                (void) json_array_append_new(
                        array, json_pack("{s:s, s:s*, s:s, s:s*}", "key", taint->key, "value",
                                         taint->value, "effect", taint_effect_names[taint->effect],
                                         "timeAdded", taint->time_added));
        }
        if (json_array_size(array) > 0)
                return array;
        json_decref(array);
        return NULL;
}

/* ---- external labels and taints ---- */

static int read_external_labels(const json_t *node, NodeLabelsTaints *external) {
        json_t *labels = json_object_get(json_object_get(node, "metadata"), "labels"), *value;
        cleanup_json json_t *listed = read_list_annotation(node, OWN_KEY_NODE_LABELS);
        const char *key;
        int r = 0;

        json_object_foreach(labels, key, value) {
                const char *text = json_string_value(value);

                if (r < 0 || !text || check_label_key(key, NULL) < 0 ||
                    check_label_value(text, NULL) < 0 || is_label_listed(listed, key, text))
                        continue;
                r = string_map_set(&external->labels, key, text);
        }
        return r;
}

/* The node lifecycle controller sets these from the node's conditions. */
static bool is_condition_taint(const char *key) {
        if (TEXT_IS_ANY_OF(key, "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable",
                           "node.kubernetes.io/network-unavailable"))
                return true;
        for (NodeCondition c = 0; c < N_NODE_CONDITIONS; c++)
                if (streq_ptr(key, node_conditions[c].taint))
                        return true;
        return false;
}

static int parse_taint_json(const json_t *json, Taint *taint) {
        const char *effect = json_text(json, "effect");
        int r = json_copy_string(json, "key", &taint->key);

        if (r < 0)
                return r;
        r = json_copy_string(json, "value", &taint->value);
        if (r < 0)
                return r;
        r = json_copy_string(json, "timeAdded", &taint->time_added);
        if (r < 0)
                return r;
        for (size_t i = 1; i < N_TAINT_EFFECTS; i++)
                if (streq(strna(effect), taint_effect_names[i]))
                        taint->effect = (TaintEffect) i;
        if (taint->value && !taint->value[0]) {
                free(taint->value);
                taint->value = NULL;
        }
        return 0;
}

/* A taint with an unknown effect is ignored. */
static bool is_valid_taint(const Taint *taint) {
        return taint->key && taint->effect != TAINT_EFFECT_UNSET &&
               check_label_key(taint->key, NULL) >= 0 &&
               check_label_value(strna(taint->value), NULL) >= 0 &&
               (!taint->time_added || check_time(taint->time_added, NULL) >= 0);
}

/* All taints of the server's Node, local and external. */
static int read_all_taints(const json_t *node, TaintList *ret) {
        const json_t *array = json_object_get(json_object_get(node, "spec"), "taints"), *item;
        size_t i;

        ret->items = calloc(json_array_size(array) + 1, sizeof(Taint));
        if (!ret->items)
                return -ENOMEM;
        json_array_foreach(array, i, item) {
                Taint *taint = &ret->items[ret->n++];
                int r = parse_taint_json(item, taint);

                if (r < 0)
                        return r;
                if (!is_valid_taint(taint))
                        schema_done(&taint_schema, &ret->items[--ret->n]);
        }
        return 0;
}

static bool is_taint_listed(const json_t *listed, const Taint *taint) {
        char buffer[TAINT_SIZE];

        return has_listed_text(listed, taint_format(taint, buffer));
}

static void filter_taints(NodeLabelsTaints *labels_taints, const json_t *listed,
                          bool keeps_listed) {
        size_t n = 0;

        for (size_t i = 0; i < labels_taints->taints.n; i++) {
                Taint *taint = &labels_taints->taints.items[i];

                if (is_taint_listed(listed, taint) == keeps_listed &&
                    !is_condition_taint(taint->key))
                        labels_taints->taints.items[n++] = *taint;
                else
                        schema_done(&taint_schema, taint);
        }
        labels_taints->taints.n = n;
}

int node_external_labels_parse(const json_t *node, NodeLabelsTaints *ret) {
        cleanup_with(node_labels_taints_done) NodeLabelsTaints external = { 0 };
        cleanup_json json_t *listed = read_list_annotation(node, OWN_KEY_NODE_TAINTS);
        int r = read_external_labels(node, &external);

        if (r < 0)
                return r;
        r = read_all_taints(node, &external.taints);
        if (r < 0)
                return r;
        filter_taints(&external, listed, /* keeps_listed= */ false);
        *ret = external;
        external = (NodeLabelsTaints){ 0 };
        return 0;
}

/* ---- differences ---- */

static void add_changed_texts(const json_t *before, const json_t *wanted, json_t *patch) {
        const char *key;
        json_t *value;

        json_object_foreach((json_t *) (uintptr_t) wanted, key, value)
                if (!json_equal(json_object_get(before, key), value))
                        (void) json_object_set(patch, key, value);
}

/* The local labels, and null for former local labels whose value has not been changed since. */
static json_t *diff_local_labels(const json_t *node, const json_t *wanted) {
        const json_t *before = json_object_get(json_object_get(node, "metadata"), "labels");
        cleanup_json json_t *listed = read_list_annotation(node, OWN_KEY_NODE_LABELS);
        json_t *patch = json_object(), *value;
        const char *key;

        add_changed_texts(before, wanted, patch);
        json_object_foreach((json_t *) (uintptr_t) before, key, value)
                if (!json_object_get(wanted, key) &&
                    is_label_listed(listed, key, strna(json_string_value(value))))
                        (void) json_object_set_new(patch, key, json_null());
        return patch;
}

/* A local taint that was removed at the server is not local if it appears again. */
static char *format_kept_taints(const json_t *node) {
        cleanup_json json_t *listed = read_list_annotation(node, OWN_KEY_NODE_TAINTS);
        cleanup_with(node_labels_taints_done) NodeLabelsTaints labels_taints = { 0 };

        if (read_all_taints(node, &labels_taints.taints) < 0)
                return NULL;
        filter_taints(&labels_taints, listed, /* keeps_listed= */ true);
        return format_taint_list(&labels_taints.taints);
}

static json_t *diff_list_annotations(const json_t *node, const json_t *labels) {
        const json_t *before = json_object_get(json_object_get(node, "metadata"), "annotations");
        cleanup_json json_t *wanted = json_object();
        json_t *patch = json_object();

        set_list_annotation(wanted, OWN_KEY_NODE_LABELS, format_label_list(labels));
        set_list_annotation(wanted, OWN_KEY_NODE_TAINTS, format_kept_taints(node));
        add_changed_texts(before, wanted, patch);
        if (!json_object_get(wanted, own_key_name(OWN_KEY_NODE_TAINTS)) &&
            json_object_get(before, own_key_name(OWN_KEY_NODE_TAINTS)))
                (void) own_json_set_new(patch, OWN_KEY_NODE_TAINTS, json_null());
        return patch;
}

static void set_metadata_if_any(json_t *object, const char *key, json_t *value) {
        if (json_object_size(value) > 0)
                (void) json_object_set_new(object, key, value);
        else
                json_decref(value);
}

json_t *node_local_metadata_patch(const json_t *node, const NodeLabelsTaints *own) {
        cleanup_json json_t *labels = node_local_labels_to_json(own);
        json_t *patch = json_object();

        set_metadata_if_any(patch, "labels", diff_local_labels(node, labels));
        set_metadata_if_any(patch, "annotations", diff_list_annotations(node, labels));
        return patch;
}

/* If the list of 'before' has another value for the label, this node has changed it, because of its
 * configuration. */
void node_local_labels_find_restored(const json_t *before, const json_t *after,
                                     void (*on_restored)(const char *key, const char *found,
                                                         const char *value, void *userdata),
                                     void *userdata) {
        json_t *had = json_object_get(json_object_get(before, "metadata"), "labels");
        json_t *has = json_object_get(json_object_get(after, "metadata"), "labels"), *value;
        cleanup_json json_t *listed_before = read_list_annotation(before, OWN_KEY_NODE_LABELS);
        cleanup_json json_t *listed = read_list_annotation(after, OWN_KEY_NODE_LABELS);
        const char *key;

        json_object_foreach(has, key, value) {
                const char *found = json_text(had, key);
                const char *text = json_string_value(value);

                if (!text || streq_ptr(found, text) || !is_label_listed(listed, key, text) ||
                    !is_label_listed(listed_before, key, text))
                        continue;
                on_restored(key, found, text, userdata);
        }
}
