/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/desired/index-objects.h"

#include "agent/manifest/reader.h"
#include "common/array.h"
#include "common/cleanup.h"
#include "common/strv.h"

void index_objects_done(IndexObjects *objects) {
        for (size_t i = 0; i < objects->manifests.n; i++)
                manifest_objects_done(&objects->manifests.items[i]);
        free(objects->manifests.items);
        *objects = (IndexObjects){ 0 };
}

static int read_index_manifest(int dir_fd, const char *file, const char *node_name,
                               IndexObjects *ret) {
        ManifestObjects *objects;
        cleanup_free char *data = NULL;
        ManifestStamp stamp = { 0 };
        size_t length;
        int r;

        r = read_manifest_file(dir_fd, file, &stamp, &data, &length, NULL);
        if (r != 0)
                return r;
        objects = ARRAY_APPEND(ret->manifests.items, ret->manifests.n);
        if (!objects)
                return -ENOMEM;
        return manifest_parse(file, data, length, node_name, objects, NULL);
}

int index_objects_read(int dir_fd, const char *node_name, IndexObjects *ret) {
        cleanup_strv char **files = NULL;
        int r = list_manifest_files(dir_fd, &files);

        strv_foreach(file, files) {
                if (r >= 0)
                        r = read_index_manifest(dir_fd, *file, node_name, ret);
        }
        return r;
}

void index_objects_foreach_pod(const IndexObjects *objects,
                               void (*each)(const Pod *pod, void *userdata), void *userdata) {
        for (size_t i = 0; i < objects->manifests.n; i++) {
                const ManifestObjects *one = &objects->manifests.items[i];

                for (size_t j = 0; j < one->pods.n; j++)
                        each(one->pods.items[j], userdata);
                for (size_t j = 0; j < one->daemonsets.n; j++)
                        each(&one->daemonsets.items[j]->spec.template, userdata);
        }
}
