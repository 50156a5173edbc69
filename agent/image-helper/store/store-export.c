/* SPDX-License-Identifier: Apache-2.0 */

/* Blobs are copied unchanged, so that digests stay valid. */

#include "agent/image-helper/store/store-export.h"
#include "common/json-text.h"

#include "agent/image-helper/archive/tar-write.h"
#include "agent/image-helper/store/stored-image.h"

#include <sys/stat.h>

#define PATH_SIZE       128
#define ANNOTATION_NAME "org.opencontainers.image.ref.name"

static int write_blob(const Store *store, const char *digest, int fd, Error *reterr) {
        cleanup_close int from = -EBADF;
        char path[PATH_SIZE];
        struct stat st;

        (void) snprintf(path, sizeof(path), "blobs/sha256/%s", digest_hex(digest));
        from = store_open_blob_to_read(store, digest);
        if (from == -ENOENT)
                return error_setf(reterr, ENOENT,
                                  "only the unpacked layers are in the store, as the image came "
                                  "from an archive, or as a delta: use the archive");
        if (from < 0)
                return from;
        if (fstat(from, &st) < 0)
                return -errno;
        return tar_write_from(fd, path, from, (uint64_t) st.st_size);
}

/* index.json of the archive: only this image, with its name. */
static int write_export_index(const json_t *item, int fd) {
        const char *name = json_text(item, "annotations", ANNOTATION_NAME);
        cleanup_json json_t *index = json_pack(
                "{s:i, s:s, s:[{s:O, s:O, s:O, s:{s:s, s:s}}]}", "schemaVersion", 2, "mediaType",
                "application/vnd.oci.image.index.v1+json", "manifests", "mediaType",
                json_object_get(item, "mediaType"), "digest", json_object_get(item, "digest"),
                "size", json_object_get(item, "size"), "annotations", ANNOTATION_NAME, strna(name),
                "io.containerd.image.name", strna(name));
        cleanup_free char *text = index ? json_to_text(index, JSON_COMPACT) : NULL;

        return text ? tar_write_file(fd, "index.json", text, strlen(text)) : -ENOMEM;
}

static int write_blobs(const Store *store, const char *digest, int fd, Error *reterr) {
        cleanup_json json_t *manifest = NULL;
        cleanup_free char *text = NULL;
        const json_t *layers, *layer;
        const char *config;
        size_t length, i;
        int r;

        r = store_read_blob(store, digest, MANIFEST_SIZE_MAX, &text, &length);
        if (r < 0)
                return r;
        r = document_parse(text, length, &manifest, reterr);
        if (r < 0)
                return r;
        config = json_text(manifest, "config", "digest");
        layers = json_object_get(manifest, "layers");
        if (!config || !digest_is_valid(config))
                return -EBADMSG;
        /* Largest first, so that a missing one is noticed before much has been written. */
        json_array_foreach(layers, i, layer) {
                const char *name = json_text(layer, "digest");

                r = name && digest_is_valid(name) ? write_blob(store, name, fd, reterr) : -EBADMSG;
                if (r < 0)
                        return r;
        }
        r = write_blob(store, config, fd, reterr);
        return r < 0 ? r : write_blob(store, digest, fd, reterr);
}

static int write_image_archive(const Store *store, const json_t *item, const char *digest, int fd,
                               Error *reterr) {
        int r = write_blobs(store, digest, fd, reterr);

        if (r < 0)
                return r;
        r = tar_write_file(fd, "oci-layout", OCI_LAYOUT, strlen(OCI_LAYOUT));
        if (r < 0)
                return r;
        r = write_export_index(item, fd);
        if (r < 0)
                return r;
        return tar_write_end(fd);
}

int store_export(Store *store, const char *name, int fd, Error *reterr) {
        cleanup_json json_t *index = NULL;
        const json_t *item;
        const char *digest;
        int r;

        r = stored_images_read_index(store, &index, reterr);
        if (r < 0)
                return r;
        item = stored_images_find(index, name);
        digest = json_text(item, "digest");
        if (!digest || !digest_is_valid(digest))
                return error_setf(reterr, ENOENT, "image '%.256s' is not in the store", name);
        r = write_image_archive(store, item, digest, fd, reterr);
        return r < 0 ? error_prefixf(reterr, r, "cannot be exported") : 0;
}
