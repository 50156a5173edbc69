/* SPDX-License-Identifier: Apache-2.0 */

/* The affinity annotation of Kubernetes before 1.6, whose value is the JSON of today's field. */

#include "agent/manifest/pod-rules.h"
#include "agent/model/schema.h"
#include "common/cleanup.h"
#include "common/strv.h"

static const char affinity_key[] = "scheduler.alpha.kubernetes.io/affinity";

static int decode_affinity(const char *text, Affinity *affinity, Error *reterr) {
        Decoder decoder = { .file = "affinity", .mode = DECODE_MANIFEST, .reterr = reterr };
        cleanup_with(yaml_tree_done) YamlTree tree = { 0 };
        int r = yaml_tree_parse(decoder.file, text, strlen(text), &tree, reterr);

        if (r < 0)
                return r;
        if (tree.n_documents != 1)
                return error_setf(reterr, EINVAL, "must be one object of JSON");
        r = decode_object(&decoder, tree.documents[0], &affinity_schema, NULL, affinity);
        if (r >= 0 && decoder.n_warnings > 0)
                r = error_setf(reterr, EINVAL, "%s", decoder.warnings[0]);
        strv_free(decoder.warnings);
        return r;
}

static int refuse_annotation(const Decoder *decoder, const YamlNode *root, const DecodePath *path,
                             int r) {
        const DecodePath metadata = { .parent = path, .key = "metadata" };
        const DecodePath annotations = { .parent = &metadata, .key = "annotations" };
        const DecodePath key = {
                .parent = &annotations,
                .key = affinity_key,
                .is_map_key = true,
        };
        const YamlNode *node = yaml_node_get(yaml_node_get(root, "metadata"), "annotations");

        return decode_error_at(decoder, yaml_node_get(node, affinity_key), &key, r);
}

int pod_take_affinity_annotation(const Decoder *decoder, const YamlNode *root,
                                 const DecodePath *path, Pod *pod) {
        const char *text = string_map_get(&pod->metadata.annotations, affinity_key);
        Affinity *affinity;
        int r;

        if (!text || !text[0] || pod->spec.affinity)
                return 0;
        affinity = calloc(1, sizeof(*affinity));
        if (!affinity)
                return -ENOMEM;
        r = decode_affinity(text, affinity, decoder->reterr);
        if (r >= 0) {
                pod->spec.affinity = affinity;
                return 0;
        }
        schema_done(&affinity_schema, affinity);
        free(affinity);
        return r == -ENOMEM ? r : refuse_annotation(decoder, root, path, r);
}
