/* SPDX-License-Identifier: Apache-2.0 */

/* Older forms of a pod that an API server accepts and converts to current ones: the old name of
 * serviceAccountName, volumes without a source, annotations that became fields. */

#include "agent/manifest/pod-rules.h"
#include "agent/manifest/spelling.h"
#include "agent/model/names.h"
#include "agent/model/schema.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
        KEYS_MAX = 16, /* number of a volume's keys that are checked */
};

/* The new name wins, regardless of the value of the old one. */
static int take_service_account(const Decoder *d, const YamlNode *spec_node,
                                const DecodePath *parent, PodSpec *spec) {
        static const char key[] = "serviceAccount";
        const DecodePath path = { .parent = parent, .key = key };
        const YamlNode *node = spec_node ? yaml_node_get(spec_node, key) : NULL;
        int r;

        if (!node || yaml_node_is_empty(node) || spec->service_account_name)
                return 0;
        r = node->kind == YAML_NODE_STRING ? check_dns_subdomain(node->text, d->reterr)
                                           : error_setf(d->reterr, EINVAL, "must be a string");
        if (r < 0)
                return decode_error_at(d, node, &path, r);
        spec->service_account_name = strdup(node->text);
        return spec->service_account_name ? 0 : -ENOMEM;
}

/* For example hostpath, whose files would be missing in the container. */
static bool has_misspelled_source(const YamlNode *volume) {
        for (size_t i = 0; volume->kind == YAML_NODE_MAPPING && i < MIN(volume->n, KEYS_MAX); i++) {
                const char *key = yaml_node_key(volume, i)->text;
                const char *hint = suggest_field_key(&volume_schema, key);

                if (hint && !streq(hint, key) && !streq(hint, "emptyDir") && !streq(hint, "name"))
                        return true;
        }
        return false;
}

/* Treated like a volume without a source or with an unknown one, because published files contain
 * empty-dir. */
static int take_empty_volume(Decoder *d, const YamlNode *volumes, const DecodePath *parent,
                             size_t i, Volume *volume) {
        const DecodePath path = { .parent = parent, .index = i };

        if (volume_count_sources(volume) > 0 || !volume->name ||
            has_misspelled_source(volumes->items[i]))
                return 0;
        volume->empty_dir = calloc(1, sizeof(*volume->empty_dir));
        if (!volume->empty_dir)
                return -ENOMEM;
        if (d->mode != DECODE_MANIFEST)
                return 0;
        return decode_warn(d, volumes->items[i], &path,
                           "has no source, so it is an emptyDir; write 'emptyDir: {}'");
}

static int take_empty_volumes(Decoder *d, const YamlNode *spec_node, const DecodePath *parent,
                              Pod *pod) {
        const DecodePath path = { .parent = parent, .key = "volumes" };
        const YamlNode *volumes = spec_node ? yaml_node_get(spec_node, "volumes") : NULL;
        int r = 0;

        if (!volumes || volumes->kind != YAML_NODE_SEQUENCE)
                return 0;
        for (size_t i = 0; i < pod->spec.volumes.n && i < volumes->n && r >= 0; i++)
                r = take_empty_volume(d, volumes, &path, i, &pod->spec.volumes.items[i]);
        return r;
}

int pod_take_old_forms(Decoder *d, const YamlNode *root, const DecodePath *path, Pod *pod) {
        const DecodePath spec = { .parent = path, .key = "spec" };
        const YamlNode *spec_node = yaml_node_get(root, "spec");
        int r = decode_keep_error(d, pod_take_affinity_annotation(d, root, path, pod));

        if (r < 0)
                return r;
        r = decode_keep_error(d, take_service_account(d, spec_node, &spec, &pod->spec));
        if (r < 0)
                return r;
        r = pod_take_app_armor_annotations(pod);
        return r < 0 ? r : take_empty_volumes(d, spec_node, &spec, pod);
}
