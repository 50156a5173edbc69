/* SPDX-License-Identifier: Apache-2.0 */

/* The layer is the decompressed tar. It is copied to the place after its header, which is written
 * last, because it contains the digest as the name. */

#include "agent/image-helper/import/rootfs-import.h"

#include "agent/image-helper/archive/byte-stream.h"
#include "agent/image-helper/archive/tar-write.h"
#include "agent/image-helper/import/rootfs-check.h"
#include "agent/image-helper/import/rootfs-config.h"
#include "agent/image-helper/pull/image-config.h"
#include "agent/image-helper/store/store.h"
#include "common/architecture.h"
#include "common/text.h"

#include <fcntl.h>

#define MEDIA_TYPE_MANIFEST "application/vnd.oci.image.manifest.v1+json"
#define MEDIA_TYPE_INDEX    "application/vnd.oci.image.index.v1+json"
#define MEDIA_TYPE_CONFIG   "application/vnd.oci.image.config.v1+json"
#define MEDIA_TYPE_LAYER    "application/vnd.oci.image.layer.v1.tar"

enum {
        HEADER_SIZE = 512,
        MEMBER_NAME_SIZE = 100
};

/* The largest member that a tar can have. */
#define ROOTFS_BYTES_MAX ((UINT64_C(1) << 33) - 1)

typedef struct ImportedBlob {
        char digest[DIGEST_SIZE];
        uint64_t size;
} ImportedBlob;

static void blob_member_name(const ImportedBlob *blob, char ret[static MEMBER_NAME_SIZE]) {
        (void) snprintf(ret, MEMBER_NAME_SIZE, "blobs/sha256/%.64s", digest_hex(blob->digest));
}

static int copy_layer(const RootfsImport *import, ImportedBlob *ret, Error *reterr) {
        cleanup_with(byte_stream_freep) ByteStream *tar = NULL;
        ByteStream *packed;
        int r = byte_stream_new_pipe(import->from, &packed);

        if (r < 0)
                return r;
        r = byte_stream_new_unpacked_take(packed, &tar, reterr);
        if (r < 0)
                return r;
        byte_stream_limit(tar, ROOTFS_BYTES_MAX);
        r = byte_stream_copy(tar, import->to, reterr);
        if (r < 0)
                return r;
        ret->size = byte_stream_length(tar);
        byte_stream_digest(tar, ret->digest);
        return 0;
}

static int write_layer(const RootfsImport *import, ImportedBlob *ret, Error *reterr) {
        char name[MEMBER_NAME_SIZE];
        int r;

        if (lseek(import->to, HEADER_SIZE, SEEK_SET) < 0)
                return -errno;
        r = copy_layer(import, ret, reterr);
        if (r < 0)
                return r;
        if (lseek(import->to, HEADER_SIZE, SEEK_SET) < 0)
                return -errno;
        r = rootfs_tar_check(import->to, reterr);
        if (r < 0)
                return r;
        if (lseek(import->to, 0, SEEK_END) < 0)
                return -errno;
        r = tar_write_padding(import->to, ret->size);
        if (r < 0)
                return r;
        if (lseek(import->to, 0, SEEK_SET) < 0)
                return -errno;
        blob_member_name(ret, name);
        r = tar_write_header(import->to, name, ret->size);
        if (r < 0)
                return r;
        return lseek(import->to, 0, SEEK_END) < 0 ? -errno : 0;
}

static int write_json_member(int fd, const char *name, const json_t *document, ImportedBlob *ret) {
        cleanup_free char *text = document ? json_to_text(document, JSON_COMPACT) : NULL;
        char member[MEMBER_NAME_SIZE];

        if (!text)
                return -ENOMEM;
        if (ret) {
                ret->size = strlen(text);
                digest_of(text, strlen(text), ret->digest);
                blob_member_name(ret, member);
        }
        return tar_write_file(fd, ret ? member : name, text, strlen(text));
}

/* Content that the agent would refuse is refused here. */
static int check_config(const json_t *document, Error *reterr) {
        cleanup_with(image_config_freep) ImageConfig *config = NULL;
        cleanup_free char *text = json_to_text(document, JSON_COMPACT);

        return text ? image_config_parse(text, strlen(text), &config, reterr) : -ENOMEM;
}

static int make_config(const RootfsImport *import, const ImportedBlob *layer, json_t **ret,
                       Error *reterr) {
        cleanup_json json_t *config = json_object(), *document = NULL;
        char variant[16];

        if (!config)
                return -ENOMEM;
        for (char *const *change = import->changes; change && *change; change++) {
                int r = rootfs_config_apply(config, *change, reterr);

                if (r < 0)
                        return error_prefixf(reterr, r, "--config");
        }
        (void) snprintf(variant, sizeof(variant), "v%u", machine_variant());
        document = json_pack("{s:s, s:s, s:s*, s:O, s:{s:s, s:[s]}}", "architecture",
                             machine_architecture(), "os", "linux", "variant",
                             machine_variant() > 0 ? variant : NULL, "config", config, "rootfs",
                             "type", "layers", "diff_ids", layer->digest);
        if (!document)
                return -ENOMEM;
        *ret = TAKE_PTR(document);
        return check_config(*ret, reterr);
}

static json_t *make_rootfs_manifest(const ImportedBlob *config, const ImportedBlob *layer) {
        return json_pack("{s:i, s:s, s:{s:s, s:s, s:I}, s:[{s:s, s:s, s:I}]}", "schemaVersion", 2,
                         "mediaType", MEDIA_TYPE_MANIFEST, "config", "mediaType", MEDIA_TYPE_CONFIG,
                         "digest", config->digest, "size", (json_int_t) config->size, "layers",
                         "mediaType", MEDIA_TYPE_LAYER, "digest", layer->digest, "size",
                         (json_int_t) layer->size);
}

static json_t *make_index(const char *name, const ImportedBlob *manifest) {
        return json_pack(
                "{s:i, s:s, s:[{s:s, s:s, s:I, s:{s:s, s:s}}]}", "schemaVersion", 2, "mediaType",
                MEDIA_TYPE_INDEX, "manifests", "mediaType", MEDIA_TYPE_MANIFEST, "digest",
                manifest->digest, "size", (json_int_t) manifest->size, "annotations",
                "org.opencontainers.image.ref.name", name, "io.containerd.image.name", name);
}

static int write_documents(const RootfsImport *import, const json_t *config,
                           const ImportedBlob *layer) {
        cleanup_json json_t *manifest = NULL, *index = NULL;
        ImportedBlob config_blob, manifest_blob;
        int r = write_json_member(import->to, NULL, config, &config_blob);

        if (r < 0)
                return r;
        manifest = make_rootfs_manifest(&config_blob, layer);
        r = write_json_member(import->to, NULL, manifest, &manifest_blob);
        if (r < 0)
                return r;
        r = tar_write_file(import->to, "oci-layout", OCI_LAYOUT, strlen(OCI_LAYOUT));
        if (r < 0)
                return r;
        index = make_index(import->name, &manifest_blob);
        r = write_json_member(import->to, "index.json", index, NULL);
        return r < 0 ? r : tar_write_end(import->to);
}

int rootfs_import(const RootfsImport *import, Error *reterr) {
        cleanup_json json_t *config = NULL;
        ImportedBlob layer = { .digest = DIGEST_PREFIX
                               "0000000000000000000000000000000000000000000000000000000000000000" };
        int r;

        /* Applies the changes of the configuration first, so that a mistake in them is found before
         * a large tar is read. */
        r = make_config(import, &layer, &config, reterr);
        if (r < 0)
                return r;
        r = write_layer(import, &layer, reterr);
        if (r < 0)
                return r;
        config = (json_decref(config), NULL);
        r = make_config(import, &layer, &config, reterr);
        return r < 0 ? r : write_documents(import, config, &layer);
}
