/* SPDX-License-Identifier: Apache-2.0 */

/* The processing of a file's bytes: YAML tree, then decoding, defaults, validation and identity for
 * each object. It ends at the first error: a file is valid as a whole or not at all. */

#include "agent/manifest/manifest.h"

#include "agent/manifest/decode.h"
#include "agent/manifest/foreign-kinds.h"
#include "agent/manifest/pod-rules.h"
#include "agent/model/names.h"
#include "agent/model/object-identity.h"
#include "agent/model/pod-source.h"
#include "common/array.h"
#include "common/cleanup.h"
#include "common/strv.h"

#include <assert.h>
#include <inttypes.h>

/* The limit of texts in the manifest of a pod or a DaemonSet, more than an API server stores. Its
 * record, in which each byte may become an escape of six, stays below POD_RECORD_MAX. */
#define POD_TEXT_MAX (2 * MIB)

typedef struct ManifestParser {
        Decoder decoder;
        const char *node_name;
        const char *kind;     /* kind of all objects, regardless of their manifests; NULL: as in
                               * their manifests */
        ForeignKinds foreign; /* of a manifest */
        ManifestObjects objects;
} ManifestParser;

void manifest_objects_done(ManifestObjects *objects) {
        for (size_t i = 0; i < objects->pods.n; i++)
                pod_free(objects->pods.items[i]);
        free(objects->pods.items);
        for (size_t i = 0; i < objects->data.n; i++)
                data_object_free(objects->data.items[i]);
        free(objects->data.items);
        for (size_t i = 0; i < objects->daemonsets.n; i++)
                daemonset_free(objects->daemonsets.items[i]);
        free(objects->daemonsets.items);
        strv_free(objects->warnings);
        *objects = (ManifestObjects){ 0 };
}

/* "kind" or "apiVersion" as a string; NULL if it is absent or not a string, which was reported.
 */
static const char *read_word(const Decoder *d, const YamlNode *node, const DecodePath *parent,
                             const char *key) {
        const DecodePath path = { .parent = parent, .key = key };
        const YamlNode *value = yaml_node_get(node, key);
        char text[DESCRIPTION_SIZE];
        int r;

        if (value && value->kind == YAML_NODE_STRING && value->text[0])
                return value->text;
        if (!value || yaml_node_is_empty(value))
                r = error_setf(d->reterr, EINVAL, "is required");
        else
                r = error_setf(d->reterr, EINVAL, "must be a string, not %s",
                               yaml_node_describe(value, text));
        (void) decode_error_at(d, value ? value : node, &path, r);
        return NULL;
}

/* A kind that only differs in its letters' case, or NULL. */
static const char *find_similar_kind(const char *kind) {
        static const char *const known[] = { "Pod",           "ConfigMap",    "Secret",   "List",
                                             "PriorityClass", "RuntimeClass", "DaemonSet" };

        for (size_t i = 0; i < N_ELEMENTS(known); i++)
                if (strcasecmp(kind, known[i]) == 0)
                        return known[i];
        return NULL;
}

static int refuse_kind(const Decoder *d, const YamlNode *node, const DecodePath *parent,
                       const char *kind) {
        const DecodePath path = { .parent = parent, .key = "kind" };
        const char *similar = find_similar_kind(kind), *advice;
        char text[EXCERPT_SIZE];
        int r;

        (void) excerpt(text, kind);
        if (similar)
                r = error_setf(d->reterr, EINVAL, "must be %s, not '%s'", similar, text);
        else if (kind_is_workload(kind, &advice))
                r = error_setf(d->reterr, EINVAL,
                               "is %s, which only a controller of a cluster runs; %s; a node "
                               "runs " RUNNABLE_KINDS,
                               text, advice);
        else
                r = error_setf(d->reterr, EINVAL,
                               "is %s, which a node does not run; it runs " RUNNABLE_KINDS, text);
        return decode_error_at(d, yaml_node_get(node, "kind"), &path, r);
}

static int refuse_version(const Decoder *d, const YamlNode *node, const DecodePath *parent,
                          const char *version, const char *kind, const char *expected) {
        const DecodePath path = { .parent = parent, .key = "apiVersion" };
        char text[EXCERPT_SIZE];

        return decode_error_at(d, yaml_node_get(node, "apiVersion"), &path,
                               error_setf(d->reterr, EINVAL, "must be %s for a %s, not '%s'",
                                          expected, kind, excerpt(text, version)));
}

/* The text of a record does not contain the source, so the reader of the record passes it. */
static ObjectSource parsed_source(const Decoder *decoder) {
        const PodSource file = pod_source_of_file(decoder->file);

        return decoder->mode == DECODE_API ? OBJECT_SOURCE_APISERVER : pod_source_origin(&file);
}

/* Decodes only. */
static int decode_pod(Decoder *d, const YamlNode *node, const DecodePath *path, Pod **ret) {
        cleanup_with(pod_freep) Pod *pod = calloc(1, sizeof(*pod));
        int r;

        if (!pod)
                return -ENOMEM;
        r = decode_object(d, node, &pod_schema, path, pod);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(pod);
        return 0;
}

static int refuse_duplicate_object(const ManifestParser *parser, const YamlNode *node,
                                   const DecodePath *parent, const char *kind,
                                   const ObjectMeta *twin) {
        const DecodePath metadata = { .parent = parent, .key = "metadata" };
        const DecodePath path = { .parent = &metadata, .key = "name" };
        const YamlNode *value = yaml_node_get(yaml_node_get(node, "metadata"), "name");
        char text[EXCERPT_SIZE];
        /* The name in the file, without the node suffix of a pod. */
        int r = error_setf(parser->decoder.reterr, EINVAL,
                           "%s %s%s%s is defined twice in this file", kind, twin->namespace,
                           twin->namespace[0] ? "/" : "", excerpt(text, value->text));

        return decode_error_at(&parser->decoder, value, &path, r);
}

static int add_pod(ManifestParser *parser, Pod *pod) {
        if (!ARRAY_RESERVE(parser->objects.pods.items, parser->objects.pods.n, 1))
                return -ENOMEM;
        parser->objects.pods.items[parser->objects.pods.n++] = pod;
        return 0;
}

static bool has_duplicate_pod(const ManifestParser *parser, const Pod *pod) {
        for (size_t i = 0; i < parser->objects.pods.n; i++) {
                if (objects_share_name(&parser->objects.pods.items[i]->metadata, &pod->metadata))
                        return true;
        }
        return false;
}

/* An API server has applied the defaults of the pod and validated it, and has given it a name and a
 * UID. Only the fields on which this node relies are validated again. */
static int complete_api_pod(ManifestParser *parser, const YamlNode *node, const DecodePath *path,
                            Pod *pod) {
        int r = pod_take_old_forms(&parser->decoder, node, path, pod);

        if (r < 0)
                return r;
        r = pod_set_defaults(pod);
        if (r < 0)
                return r;
        r = pod_validate_template(&parser->decoder, node, path, pod);
        if (r < 0)
                return r;
        return pod_set_api_identity(pod, parser->decoder.reterr);
}

static int complete_pod(ManifestParser *parser, const YamlNode *node, const DecodePath *path,
                        Pod *pod) {
        Decoder *d = &parser->decoder;
        const PodSource source = pod_source_of_file(d->file);
        size_t n_errors = decode_count_errors(d);
        int r = pod_take_old_forms(d, node, path, pod);

        if (r < 0)
                return r;
        r = pod_warn(d, node, path, pod);
        if (r < 0)
                return r;
        r = pod_set_defaults(pod);
        if (r < 0)
                return r;
        r = decode_result(d, n_errors, pod_validate(d, node, path, pod, parser->node_name));
        if (r < 0)
                return r;
        return pod_set_identity(pod, parser->node_name, &source);
}

static int check_text_size(const ManifestParser *parser, const YamlNode *node,
                           const DecodePath *path) {
        const Decoder *d = &parser->decoder;

        if (node->bytes <= POD_TEXT_MAX || d->mode != DECODE_MANIFEST)
                return 0;
        return decode_error_at(d, node, path,
                               error_setf(d->reterr, EINVAL,
                                          "must be at most %zu MiB, not %" PRIu32 " bytes",
                                          POD_TEXT_MAX / MIB, node->bytes));
}

static int parse_pod(ManifestParser *parser, const YamlNode *node, const DecodePath *path) {
        cleanup_with(pod_freep) Pod *pod = NULL;
        int r = check_text_size(parser, node, path);

        if (r < 0)
                return r;
        r = decode_pod(&parser->decoder, node, path, &pod);
        if (r < 0)
                return r;
        pod->metadata.source = parsed_source(&parser->decoder);
        r = parser->decoder.mode == DECODE_API ? complete_api_pod(parser, node, path, pod)
                                               : complete_pod(parser, node, path, pod);
        if (r < 0)
                return r;
        if (has_duplicate_pod(parser, pod))
                return refuse_duplicate_object(parser, node, path, "pod", &pod->metadata);
        r = add_pod(parser, pod);
        if (r < 0)
                return r;
        pod = NULL;
        return 0;
}

static bool has_duplicate_daemonset(const ManifestParser *parser, const DaemonSet *set) {
        for (size_t i = 0; i < parser->objects.daemonsets.n; i++) {
                if (objects_share_name(&parser->objects.daemonsets.items[i]->metadata,
                                       &set->metadata))
                        return true;
        }
        return false;
}

static int parse_daemonset(ManifestParser *parser, const YamlNode *node, const DecodePath *path) {
        cleanup_with(daemonset_freep) DaemonSet *set = NULL;
        int r = check_text_size(parser, node, path);

        if (r < 0)
                return r;
        r = daemonset_parse(&parser->decoder, node, path, parser->node_name, &set);
        if (r < 0)
                return r;
        set->metadata.source = parsed_source(&parser->decoder);
        if (has_duplicate_daemonset(parser, set))
                return refuse_duplicate_object(parser, node, path, "daemonset", &set->metadata);
        if (!ARRAY_RESERVE(parser->objects.daemonsets.items, parser->objects.daemonsets.n, 1))
                return -ENOMEM;
        parser->objects.daemonsets.items[parser->objects.daemonsets.n++] = TAKE_PTR(set);
        return 0;
}

static bool has_duplicate_data_object(const ManifestParser *parser, const DataObject *object) {
        for (size_t i = 0; i < parser->objects.data.n; i++) {
                const DataObject *other = parser->objects.data.items[i];

                if (other->kind == object->kind &&
                    objects_share_name(&other->metadata, &object->metadata))
                        return true;
        }
        return false;
}

static bool has_default_class(const ManifestParser *parser) {
        for (size_t i = 0; i < parser->objects.data.n; i++)
                if (parser->objects.data.items[i]->priority.global_default)
                        return true;
        return false;
}

static int refuse_second_default(const ManifestParser *parser, const YamlNode *node,
                                 const DecodePath *parent) {
        const DecodePath path = { .parent = parent, .key = "globalDefault" };
        int r = error_setf(parser->decoder.reterr, EINVAL,
                           "may be true in only one PriorityClass, but two in this file set it");

        return decode_error_at(&parser->decoder, yaml_node_get(node, "globalDefault"), &path, r);
}

static int parse_data_object(ManifestParser *parser, const YamlNode *node, const DecodePath *path,
                             ObjectKind kind) {
        cleanup_with(data_object_freep) DataObject *object = NULL;
        int r;

        if (object_kind_is_api_only(kind))
                r = storage_object_parse(&parser->decoder, node, path, kind, &object);
        else if (object_kind_is_cluster_wide(kind))
                r = class_object_parse(&parser->decoder, node, path, kind, &object);
        else
                r = data_object_parse(&parser->decoder, node, path, kind, &object);
        if (r < 0)
                return r;
        object->metadata.source = parsed_source(&parser->decoder);
        if (has_duplicate_data_object(parser, object))
                return refuse_duplicate_object(parser, node, path, object_kind_words[kind],
                                               &object->metadata);
        if (object->priority.global_default && has_default_class(parser))
                return refuse_second_default(parser, node, path);
        if (!ARRAY_RESERVE(parser->objects.data.items, parser->objects.data.n, 1))
                return -ENOMEM;
        parser->objects.data.items[parser->objects.data.n++] = TAKE_PTR(object);
        return 0;
}

static int parse_object(ManifestParser *parser, const YamlNode *node, const DecodePath *path);
static int parse_kind(ManifestParser *parser, const YamlNode *node, const DecodePath *path,
                      const char *version, const char *kind);

/* The items of a typed list may omit fields that the list contains. */
static int parse_list_item(ManifestParser *parser, const YamlNode *node, const DecodePath *path,
                           const char *item_kind) {
        return item_kind && node->kind == YAML_NODE_MAPPING && !yaml_node_get(node, "kind")
                       ? parse_kind(parser, node, path, NULL, item_kind)
                       : parse_object(parser, node, path);
}

static int parse_list(ManifestParser *parser, const YamlNode *node, const DecodePath *parent,
                      const char *item_kind) {
        const DecodePath path = { .parent = parent, .key = "items" };
        const YamlNode *items = yaml_node_get(node, "items");
        char text[DESCRIPTION_SIZE];

        if (!items || items->kind == YAML_NODE_NULL)
                return 0;
        if (items->kind != YAML_NODE_SEQUENCE)
                return decode_error_at(&parser->decoder, items, &path,
                                       error_setf(parser->decoder.reterr, EINVAL,
                                                  "must be a list, not %s",
                                                  yaml_node_describe(items, text)));
        for (size_t i = 0; i < items->n; i++) {
                const DecodePath item = { .parent = &path, .index = i };
                int r = parse_list_item(parser, items->items[i], &item, item_kind);

                r = decode_keep_error(&parser->decoder, r);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* The kubelet accepts a PodList only from a URL. */
static const struct {
        const char *kind;
        const char *version;
        const char *item_kind; /* NULL: of any kind */
} lists[] = {
        { "List", "v1", NULL },
        { "PodList", "v1", "Pod" },
        { "DaemonSetList", "apps/v1", "DaemonSet" },
        { "ConfigMapList", "v1", "ConfigMap" },
        { "SecretList", "v1", "Secret" },
        { "PriorityClassList", "scheduling.k8s.io/v1", "PriorityClass" },
        { "RuntimeClassList", "node.k8s.io/v1", "RuntimeClass" },
};

/* The row of a kind, or N_ELEMENTS(lists). */
static size_t find_list(const char *kind) {
        size_t i = 0;

        while (i < N_ELEMENTS(lists) && !streq(lists[i].kind, kind))
                i++;
        return i;
}

/* An object of another kind, or of another version. */
static int skip_or_refuse(ManifestParser *parser, const YamlNode *node, const DecodePath *path,
                          const char *version, const char *kind) {
        if (parser->decoder.mode != DECODE_API && version &&
            foreign_kinds_can_skip(&parser->foreign, version, kind))
                return foreign_kinds_skip(&parser->foreign, version, kind);
        return refuse_kind(&parser->decoder, node, path, kind);
}

static int parse_kind(ManifestParser *parser, const YamlNode *node, const DecodePath *path,
                      const char *version, const char *kind) {
        size_t list = find_list(kind);
        bool is_list = list < N_ELEMENTS(lists);
        const char *expected = is_list ? lists[list].version : streq(kind, "Pod") ? "v1" : NULL;
        ObjectKind data = 0;

        parser->decoder.hides_values =
                streq(kind, "Secret") || streq(kind, "SecretList") || streq(kind, "List");
        parser->decoder.has_misplaced = false;
        if (streq(kind, "DaemonSet") && parser->decoder.mode == DECODE_MANIFEST &&
            daemonset_is_for_windows(node))
                return foreign_kinds_skip(&parser->foreign, version, "DaemonSet for Windows");
        if (streq(kind, "DaemonSet"))
                return parse_daemonset(parser, node, path);
        while (data < N_OBJECT_KINDS && !streq(kind, object_kind_names[data]))
                data++;
        if (data < N_OBJECT_KINDS && (!version || streq(version, object_kind_versions[data])) &&
            (!object_kind_is_api_only(data) || parser->decoder.mode == DECODE_API))
                return parse_data_object(parser, node, path, data);
        if (!expected || (version && foreign_kinds_can_skip(&parser->foreign, version, kind) &&
                          !streq(version, expected)))
                return skip_or_refuse(parser, node, path, version, kind);
        if (version && !streq(version, expected))
                return refuse_version(&parser->decoder, node, path, version, kind, expected);
        return is_list ? parse_list(parser, node, path, lists[list].item_kind)
                       : parse_pod(parser, node, path);
}

static int parse_object(ManifestParser *parser, const YamlNode *node, const DecodePath *path) {
        Decoder *d = &parser->decoder;
        const char *version, *kind;
        char text[DESCRIPTION_SIZE];

        d->hides_values = true; /* until its kind is known */
        if (node->kind != YAML_NODE_MAPPING)
                return decode_error_at(d, node, path,
                                       error_setf(d->reterr, EINVAL,
                                                  "must be an object with kind and apiVersion, not "
                                                  "%s",
                                                  yaml_node_describe(node, text)));
        if (parser->kind)
                return parse_kind(parser, node, path, NULL, parser->kind);
        version = read_word(d, node, path, "apiVersion");
        kind = version ? read_word(d, node, path, "kind") : NULL;
        if (!kind)
                return -EINVAL;
        return parse_kind(parser, node, path, version, kind);
}

size_t manifest_objects_count(const ManifestObjects *objects) {
        return objects->pods.n + objects->data.n + objects->daemonsets.n;
}

/* One warning for everything that was omitted. */
static int warn_of_skipped_kinds(ManifestParser *parser) {
        cleanup_free char *sentence = NULL;

        if (!parser->foreign.skipped)
                return 0;
        sentence = foreign_kinds_explain(&parser->foreign);
        return sentence ? decode_warn_of_file(&parser->decoder, sentence) : -ENOMEM;
}

static int parse_documents(ManifestParser *parser, const YamlTree *tree) {
        int r = foreign_kinds_find(tree, &parser->foreign);

        if (r < 0)
                return r;
        for (size_t i = 0; i < tree->n_documents; i++) {
                r = 0;
                if (tree->documents[i]->kind != YAML_NODE_NULL)
                        r = parse_object(parser, tree->documents[i], NULL);
                r = decode_keep_error(&parser->decoder, r);
                if (r < 0)
                        return r;
        }
        r = warn_of_skipped_kinds(parser);
        if (r < 0)
                return r;
        if (decode_has_errors(&parser->decoder))
                return -EINVAL;
        if (manifest_objects_count(&parser->objects) == 0 && !parser->foreign.skipped)
                return error_setf(parser->decoder.reterr, EINVAL, "%s: holds no object",
                                  parser->decoder.file);
        return decode_take_warnings(&parser->decoder, &parser->objects.warnings);
}

static int parse_manifest_file(ManifestParser *parser, const char *data, size_t length,
                               ManifestObjects *ret) {
        YamlTree tree = { 0 };
        int r = yaml_tree_parse(parser->decoder.file, data, length, &tree, parser->decoder.reterr);

        if (r >= 0)
                r = parse_documents(parser, &tree);
        foreign_kinds_done(&parser->foreign);
        yaml_tree_done(&tree);
        if (r < 0) {
                manifest_objects_done(&parser->objects);
                (void) decode_take_warnings(&parser->decoder, &parser->objects.warnings);
        }
        strv_free(parser->decoder.warnings);
        *ret = parser->objects;
        return r;
}

int manifest_parse(const char *file, const char *data, size_t length, const char *node_name,
                   ManifestObjects *ret, Error *reterr) {
        ManifestParser parser = {
                .decoder = { .file = file, .mode = DECODE_MANIFEST, .reterr = reterr },
                .node_name = node_name,
        };

        return parse_manifest_file(&parser, data, length, ret);
}

int manifest_validate(const char *file, const char *data, size_t length, const char *node_name,
                      ManifestObjects *ret, char ***ret_errors) {
        cleanup_error Error error = ERROR_NULL;
        DecodeErrors errors = { 0 };
        ManifestParser parser = {
                .decoder = { .file = file,
                             .mode = DECODE_MANIFEST,
                             .errors = &errors,
                             .reterr = &error },
                .node_name = node_name,
        };
        int r = parse_manifest_file(&parser, data, length, ret), kept = 0;

        if (r < 0 && error.message) /* of the file as a whole */
                kept = strv_append(&errors.messages, error.message);
        if (kept >= 0)
                kept = decode_take_errors(&parser.decoder, ret_errors);
        if (kept < 0)
                strv_free(errors.messages);
        return kept < 0 ? kept : r;
}

int manifest_parse_api(const char *place, const char *kind, const char *data, size_t length,
                       const char *node_name, ManifestObjects *ret, Error *reterr) {
        ManifestParser parser = {
                .decoder = { .file = place, .mode = DECODE_API, .reterr = reterr },
                .node_name = node_name,
                .kind = kind,
        };

        return parse_manifest_file(&parser, data, length, ret);
}

/* Paths and cgroups are named after these fields, so a record without them is invalid. */
static int check_record(const Pod *pod, Error *reterr) {
        assert(pod);
        if (!pod->metadata.namespace || !pod->metadata.uid)
                return error_setf(reterr, EINVAL, "is not a record of a pod: it has no %s",
                                  pod->metadata.uid ? "namespace" : "UID");
        return 0;
}

/* Defaults are applied, because a newer version may define more of them. */
static int decode_record(Decoder *decoder, const YamlTree *tree, Pod **ret) {
        int r;

        if (tree->n_documents != 1)
                return error_setf(decoder->reterr, EINVAL, "is not a record of a pod");
        r = decode_pod(decoder, tree->documents[0], NULL, ret);
        if (r < 0)
                return r;
        r = check_record(*ret, decoder->reterr);
        if (r < 0)
                return r;
        return pod_set_defaults(*ret);
}

int manifest_parse_record(const char *data, size_t length, Pod **ret, Error *reterr) {
        cleanup_with(pod_freep) Pod *pod = NULL;
        Decoder decoder = { .file = "record", .mode = DECODE_RECORD, .reterr = reterr };
        cleanup_with(yaml_tree_done) YamlTree tree = { 0 };
        int r = yaml_tree_parse(decoder.file, data, length, &tree, reterr);

        if (r < 0)
                return r;
        r = decode_record(&decoder, &tree, &pod);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(pod);
        return 0;
}

int manifest_parse_changed_record(const char *data, size_t length, Pod **ret, Error *reterr) {
        cleanup_with(pod_freep) Pod *pod = NULL;
        Decoder decoder = { .mode = DECODE_RECORD, .reterr = reterr };
        cleanup_with(yaml_tree_done) YamlTree tree = { 0 };
        int r = yaml_tree_parse("pod", data, length, &tree, reterr);

        if (r < 0)
                return r;
        r = decode_record(&decoder, &tree, &pod);
        if (r < 0)
                return r;
        r = pod_validate_template(&decoder, tree.documents[0], NULL, pod);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(pod);
        return 0;
}

/* The only document in one of the agent's records, parsed by its schema. */
static int parse_own_record(const char *what, const char *data, size_t length, const Schema *schema,
                            void *ret, Error *reterr) {
        Decoder decoder = { .file = what, .mode = DECODE_RECORD, .reterr = reterr };
        YamlTree tree = { 0 };
        int r = yaml_tree_parse(decoder.file, data, length, &tree, reterr);

        if (r < 0)
                return r;
        if (tree.n_documents == 1)
                r = decode_object(&decoder, tree.documents[0], schema, NULL, ret);
        else
                r = error_setf(reterr, EINVAL, "is not a %s", what);
        yaml_tree_done(&tree);
        return r;
}

int manifest_parse_template(const char *data, size_t length, Pod *ret, Error *reterr) {
        Pod template = { 0 };
        int r = parse_own_record("template", data, length, &pod_template_schema, &template, reterr);

        if (r < 0)
                schema_done(&pod_template_schema, &template);
        else
                *ret = template;
        return r;
}

int manifest_parse_daemonset(const char *data, size_t length, DaemonSet **ret, Error *reterr) {
        cleanup_with(daemonset_freep) DaemonSet *set = calloc(1, sizeof(*set));
        int r = set ? parse_own_record("daemonset", data, length, &daemonset_schema, set, reterr)
                    : -ENOMEM;

        if (r < 0)
                return r;
        if (!set->metadata.name || !set->metadata.namespace || !set->metadata.uid ||
            !set->spec.selector ||
            (set->spec.update_strategy.type == DAEMONSET_ROLLING_UPDATE &&
             !set->spec.update_strategy.rolling_update))
                return error_setf(reterr, EINVAL, "is not a record of a DaemonSet");
        *ret = TAKE_PTR(set);
        return 0;
}
