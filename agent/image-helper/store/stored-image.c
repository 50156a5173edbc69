/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image-helper/store/stored-image.h"

#include "common/file.h"
#include "common/image-reference.h"
#include "common/json-text.h"

#define ANNOTATION_NAME   "org.opencontainers.image.ref.name"
#define ANNOTATION_DIGEST "mainstay.image.digest"

static int read_stored_document(void *userdata, const CatalogBlob *blob, size_t max_bytes,
                                char **ret, size_t *ret_length, Error *reterr) {
        const StoredImage *stored = userdata;

        return store_read_blob(stored->store, blob->digest, max_bytes, ret, ret_length);
}

static int open_stored_layer(void *userdata, size_t i, ByteStream **ret, Error *reterr) {
        StoredImage *stored = userdata;
        const CatalogBlob *layer = &stored->image->layers[i];

        close_fd(stored->fd);
        stored->fd = store_open_blob_to_read(stored->store, layer->digest);
        return stored->fd < 0 ? stored->fd
                              : byte_stream_new_blob(stored->fd, layer->size, -EBADF, ret);
}

ImageProvider stored_image_provider(StoredImage *stored) {
        return (ImageProvider){ .read = read_stored_document,
                                .open_layer = open_stored_layer,
                                .userdata = stored };
}

bool stored_image_has_blobs(const StoredImage *stored) {
        for (size_t i = 0; i < stored->image->settings->n_diff_ids; i++) {
                cleanup_close int fd =
                        store_open_blob_to_read(stored->store, stored->image->layers[i].digest);

                if (fd < 0)
                        return false;
        }
        return true;
}

int stored_images_read_index(const Store *store, json_t **ret, Error *reterr) {
        cleanup_free char *text = NULL;
        size_t length;
        int r;

        *ret = NULL;
        r = read_file_at(store_fd(store), "index.json", MANIFEST_SIZE_MAX, &text, &length);
        if (r >= 0)
                r = document_parse(text, length, ret, reterr);
        return r < 0 && r != -ENOENT ? error_prefixf(reterr, r, "image store: index.json") : 0;
}

const char *stored_image_digest(const json_t *entry) {
        return json_text(entry, "annotations", ANNOTATION_DIGEST);
}

const json_t *stored_images_find(const json_t *index, const char *name) {
        cleanup_free char *normal = NULL;
        const json_t *item;
        size_t i;

        if (image_reference_normalise(name, &normal, NULL) == -ENOMEM)
                return NULL;

        json_array_foreach(json_object_get(index, "manifests"), i, item) {
                const json_t *annotations = json_object_get(item, "annotations");

                if (image_reference_equals(strna(json_text(annotations, ANNOTATION_NAME)),
                                           normal ? normal : name) ||
                    streq(strna(stored_image_digest(item)), name))
                        return item;
        }
        return NULL;
}
