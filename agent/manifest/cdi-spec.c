/* SPDX-License-Identifier: Apache-2.0 */

/* The rules of CDI beyond its tables: versions and the fields that each of them has, names that
 * must be unique, edits that must not be empty. Parsing ends at the first error, because a file is
 * valid as a whole or not at all. */

#include "agent/manifest/cdi-spec.h"

#include "agent/manifest/decode.h"
#include "agent/model/names.h"
#include "common/cleanup.h"

#include <errno.h>

enum {
        ANNOTATIONS_BYTES_MAX = 256 * 1024,
};

static const char *const versions[] = {
        "0.3.0", "0.4.0", "0.5.0", "0.6.0", "0.7.0", "0.8.0", "1.0.0", "1.1.0",
};

typedef struct CdiParser {
        Decoder decoder;
        const char *version; /* one of the above */
} CdiParser;

static int refuse_cdi(const CdiParser *parser, const YamlNode *node, const DecodePath *path,
                      const char *sentence) {
        return decode_error_at(&parser->decoder, node, path,
                               error_setf(parser->decoder.reterr, EINVAL, "%s", sentence));
}

/* The node of a key, or of the object if the key is absent. */
static const YamlNode *node_of(const YamlNode *object, const char *key) {
        const YamlNode *node = yaml_node_get(object, key);

        return node ? node : object;
}

static int find_cdi_version(CdiParser *parser, const YamlNode *root, const char *text) {
        const DecodePath path = { .key = "cdiVersion" };
        char word[EXCERPT_SIZE];

        text += text[0] == 'v';
        for (size_t i = 0; i < N_ELEMENTS(versions); i++)
                if (streq(versions[i], text)) {
                        parser->version = versions[i];
                        return 0;
                }
        return decode_error_at(&parser->decoder, node_of(root, path.key), &path,
                               error_setf(parser->decoder.reterr, EINVAL,
                                          "must be 0.3.0 to 0.8.0, 1.0.0 or 1.1.0, not '%s'",
                                          excerpt(word, text)));
}

/* All numbers have one digit. */
static int check_is_since(const CdiParser *parser, const char *version, const YamlNode *object,
                          const DecodePath *path) {
        if (strcmp(parser->version, version) >= 0)
                return 0;
        return decode_error_at(&parser->decoder, object, path,
                               error_setf(parser->decoder.reterr, EINVAL,
                                          "needs cdiVersion %s or later; this file has %s", version,
                                          parser->version));
}

/* A field that is present. */
static int check_key_is_since(const CdiParser *parser, const char *version, const YamlNode *object,
                              const DecodePath *parent, const char *key) {
        const DecodePath path = { .parent = parent, .key = key };
        const YamlNode *node = yaml_node_get(object, key);

        if (!node || node->kind == YAML_NODE_NULL)
                return 0;
        return check_is_since(parser, version, node, &path);
}

typedef int (*check_item_t)(const CdiParser *parser, const YamlNode *item, const DecodePath *path);

static int check_items(const CdiParser *parser, const YamlNode *edits, const DecodePath *parent,
                       const char *key, check_item_t check) {
        const DecodePath list = { .parent = parent, .key = key };
        const YamlNode *node = yaml_node_get(edits, key);

        for (size_t i = 0; node && node->kind == YAML_NODE_SEQUENCE && i < node->n; i++) {
                const DecodePath path = { .parent = &list, .index = i };
                int r = check(parser, node->items[i], &path);

                if (r < 0)
                        return r;
        }
        return 0;
}

static int check_device_node(const CdiParser *parser, const YamlNode *item,
                             const DecodePath *path) {
        return check_key_is_since(parser, "0.5.0", item, path, "hostPath");
}

static int check_cdi_mount(const CdiParser *parser, const YamlNode *item, const DecodePath *path) {
        return check_key_is_since(parser, "0.4.0", item, path, "type");
}

static int check_removed_key(const CdiParser *parser, const YamlNode *object,
                             const DecodePath *parent, const char *key) {
        const DecodePath path = { .parent = parent, .key = key };
        const YamlNode *node = yaml_node_get(object, key);

        if (!node || strcmp(parser->version, "1.1.0") < 0)
                return 0;
        return refuse_cdi(parser, node, &path,
                          "was removed in version 1.1.0; use enableMonitoring");
}

static int check_intel_rdt(const CdiParser *parser, const YamlNode *edits,
                           const DecodePath *parent) {
        static const char *const added[] = { "schemata", "enableMonitoring" };
        static const char *const removed[] = { "enableCMT", "enableMBM" };
        const DecodePath path = { .parent = parent, .key = "intelRdt" };
        const YamlNode *node = yaml_node_get(edits, path.key);
        int r = check_key_is_since(parser, "0.7.0", edits, parent, path.key);

        for (size_t i = 0; node && i < N_ELEMENTS(added) && r >= 0; i++)
                r = check_key_is_since(parser, "1.1.0", node, &path, added[i]);
        for (size_t i = 0; node && i < N_ELEMENTS(removed) && r >= 0; i++)
                r = check_removed_key(parser, node, &path, removed[i]);
        return r;
}

static int check_net_devices(const CdiParser *parser, const YamlNode *edits,
                             const DecodePath *parent, const CdiEdits *object) {
        const DecodePath list = { .parent = parent, .key = "netDevices" };
        int r = check_key_is_since(parser, "1.1.0", edits, parent, list.key);

        for (size_t i = 0; i < object->net_devices.n && r >= 0; i++)
                for (size_t j = 0; j < i && r >= 0; j++) {
                        const DecodePath path = { .parent = &list, .index = i };
                        const CdiNetDevice *a = &object->net_devices.items[i];
                        const CdiNetDevice *b = &object->net_devices.items[j];

                        if (streq(a->name, b->name) ||
                            streq(a->host_interface_name, b->host_interface_name))
                                r = refuse_cdi(parser, node_of(edits, list.key)->items[i], &path,
                                               "must have names that no other network device has");
                }
        return r;
}

static int check_edits(const CdiParser *parser, const YamlNode *owner, const DecodePath *parent,
                       const CdiEdits *object) {
        const DecodePath path = { .parent = parent, .key = "containerEdits" };
        const YamlNode *edits = yaml_node_get(owner, path.key);
        int r;

        if (!edits)
                return 0;
        r = check_items(parser, edits, &path, "deviceNodes", check_device_node);
        if (r >= 0)
                r = check_items(parser, edits, &path, "mounts", check_cdi_mount);
        if (r >= 0)
                r = check_intel_rdt(parser, edits, &path);
        if (r >= 0)
                r = check_key_is_since(parser, "0.7.0", edits, &path, "additionalGids");
        return r < 0 ? r : check_net_devices(parser, edits, &path, object);
}

static int check_cdi_annotations(const CdiParser *parser, const YamlNode *owner,
                                 const DecodePath *parent, const StringMap *annotations) {
        const DecodePath map = { .parent = parent, .key = "annotations" };
        size_t bytes = 0;
        int r = annotations->n > 0 ? check_is_since(parser, "0.6.0", node_of(owner, map.key), &map)
                                   : 0;

        for (size_t i = 0; i < annotations->n && r >= 0; i++) {
                const KeyValue *annotation = &annotations->items[i];
                const DecodePath path = { .parent = &map,
                                          .key = annotation->key,
                                          .is_map_key = true };

                bytes += strlen(annotation->key) + strlen(annotation->value);
                r = check_annotation_key(annotation->key, parser->decoder.reterr);
                if (r < 0)
                        r = decode_error_at(&parser->decoder,
                                            node_of(node_of(owner, map.key), annotation->key),
                                            &path, r);
        }
        if (r < 0 || bytes <= ANNOTATIONS_BYTES_MAX)
                return r;
        return refuse_cdi(parser, node_of(owner, map.key), &map, "must be at most 256 KiB");
}

static bool edits_are_empty(const CdiEdits *edits) {
        return !edits->env && edits->device_nodes.n == 0 && edits->net_devices.n == 0 &&
               edits->mounts.n == 0 && edits->hooks.n == 0 && !edits->intel_rdt &&
               edits->additional_gids.n == 0;
}

static int check_device(const CdiParser *parser, const CdiSpec *spec, size_t i,
                        const YamlNode *node, const DecodePath *path) {
        const DecodePath name = { .parent = path, .key = "name" };
        const DecodePath edits = { .parent = path, .key = "containerEdits" };
        const CdiDevice *device = &spec->devices.items[i];
        int r = 0;

        if (device->name[0] >= '0' && device->name[0] <= '9' &&
            strcmp(parser->version, "0.5.0") < 0)
                return refuse_cdi(parser, node_of(node, name.key), &name,
                                  "must start with a letter before cdiVersion 0.5.0");
        for (size_t j = 0; j < i; j++)
                if (streq(device->name, spec->devices.items[j].name))
                        return refuse_cdi(parser, node_of(node, name.key), &name,
                                          "is the name of another device of this file");
        if (edits_are_empty(&device->edits))
                return refuse_cdi(parser, node_of(node, edits.key), &edits, "must not be empty");
        r = check_cdi_annotations(parser, node, path, &device->annotations);
        return r < 0 ? r : check_edits(parser, node, path, &device->edits);
}

static int check_devices(const CdiParser *parser, const YamlNode *root, CdiSpec *spec) {
        const DecodePath list = { .key = "devices" };
        const YamlNode *devices = node_of(root, list.key);
        int r = 0;

        for (size_t i = 0; i < spec->devices.n && r >= 0; i++) {
                const DecodePath path = { .parent = &list, .index = i };

                spec->devices.items[i].line = devices->items[i]->line;
                spec->devices.items[i].column = devices->items[i]->column;
                r = check_device(parser, spec, i, devices->items[i], &path);
        }
        return r;
}

static int check_spec(CdiParser *parser, const YamlNode *root, CdiSpec *spec) {
        const DecodePath kind = { .key = "kind" };
        int r = find_cdi_version(parser, root, spec->version);

        if (r < 0)
                return r;
        if (strchr(strchr(spec->kind, '/'), '.') && strcmp(parser->version, "0.6.0") < 0)
                return refuse_cdi(parser, node_of(root, kind.key), &kind,
                                  "must have no '.' in its class before cdiVersion 0.6.0");
        r = check_cdi_annotations(parser, root, NULL, &spec->annotations);
        if (r >= 0)
                r = check_edits(parser, root, NULL, &spec->edits);
        return r < 0 ? r : check_devices(parser, root, spec);
}

int cdi_spec_parse(const char *file, const char *data, size_t length, CdiSpec **ret,
                   Error *reterr) {
        CdiParser parser = { .decoder = { .file = file, .mode = DECODE_CONFIG, .reterr = reterr } };
        cleanup_with(cdi_spec_freep) CdiSpec *spec = calloc(1, sizeof(*spec));
        YamlTree tree = { 0 };
        int r = spec ? yaml_tree_parse(file, data, length, &tree, reterr) : -ENOMEM;

        if (r < 0)
                return r;
        if (tree.n_documents != 1)
                r = error_setf(reterr, EINVAL, "%s: must have one document, not %zu", file,
                               tree.n_documents);
        if (r >= 0)
                r = decode_object(&parser.decoder, tree.documents[0], &cdi_spec_schema, NULL, spec);
        if (r >= 0)
                r = check_spec(&parser, tree.documents[0], spec);
        yaml_tree_done(&tree);
        free(parser.decoder.without_effect);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(spec);
        return 0;
}

bool cdi_spec_is_one(const char *data, size_t length) {
        YamlTree tree = { 0 };
        bool is_one;

        if (yaml_tree_parse("", data, length, &tree, NULL) < 0)
                return false;
        is_one = tree.n_documents > 0 && tree.documents[0]->kind == YAML_NODE_MAPPING &&
                 yaml_node_get(tree.documents[0], "cdiVersion") &&
                 !yaml_node_get(tree.documents[0], "apiVersion");
        yaml_tree_done(&tree);
        return is_one;
}
