/* SPDX-License-Identifier: Apache-2.0 */

/* Blobs are copied unchanged, so that digests stay valid. Headers are written here: plain ustar,
 * without any data of this machine. */

#include "agent/image-helper/store-export.h"

#include "agent/image-helper/document.h"
#include "agent/image-helper/store-private.h"
#include "common/file.h"

#include <fcntl.h>
#include <sys/stat.h>

enum {
        BLOCK = 512,
        BUFFER_SIZE = 256 * 1024,
        PATH_SIZE = 128
};

#define SIZE_MAX_USTAR    (UINT64_C(1) << 33)
#define ANNOTATION_NAME   "org.opencontainers.image.ref.name"
#define ANNOTATION_DIGEST "mainstay.image.digest"

static const char zeros[2 * BLOCK];

static int write_tar_header(int fd, const char *name, uint64_t size) {
        char header[BLOCK + 1] = { 0 };
        unsigned sum = 0;

        if (size >= SIZE_MAX_USTAR)
                return -EFBIG;
        (void) snprintf(header, 100, "%s", name);
        (void) snprintf(header + 100, 8, "%07o", 0644U);
        (void) snprintf(header + 108, 8, "%07o", 0U);
        (void) snprintf(header + 116, 8, "%07o", 0U);
        (void) snprintf(header + 124, 12, "%011llo", (unsigned long long) size);
        (void) snprintf(header + 136, 12, "%011o", 0U);
        memset(header + 148, ' ', 8);
        header[156] = '0';
        memcpy(header + 257, "ustar\00000", 8);
        for (size_t i = 0; i < BLOCK; i++)
                sum += (unsigned char) header[i];
        (void) snprintf(header + 148, 8, "%06o", sum);
        return write_all(fd, header, BLOCK);
}

static int write_tar_padding(int fd, uint64_t size) {
        size_t rest = (size_t) (size % BLOCK);

        return rest == 0 ? 0 : write_all(fd, zeros, BLOCK - rest);
}

static int write_tar_text(int fd, const char *name, const char *text) {
        int r = write_tar_header(fd, name, strlen(text));

        if (r < 0)
                return r;
        r = write_all(fd, text, strlen(text));
        if (r < 0)
                return r;
        return write_tar_padding(fd, strlen(text));
}

static int copy_blob_bytes(int from, int to, uint64_t size) {
        static char buffer[BUFFER_SIZE];

        while (size > 0) {
                ssize_t n = read(from, buffer, (size_t) MIN(size, (uint64_t) sizeof(buffer)));
                int r;

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return n < 0 ? -errno : -EBADMSG;
                r = write_all(to, buffer, (size_t) n);
                if (r < 0)
                        return r;
                size -= (uint64_t) n;
        }
        return 0;
}

static int write_blob(const Store *store, const char *digest, int fd, Error *reterr) {
        cleanup_close int from = -EBADF;
        char path[PATH_SIZE];
        struct stat st;
        int r;

        (void) snprintf(path, sizeof(path), "blobs/sha256/%s", digest_hex(digest));
        from = openat(store->fd, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        if (from < 0)
                return errno == ENOENT ? error_setf(reterr, ENOENT,
                                                    "only the unpacked layers are in the store, as "
                                                    "the image came from "
                                                    "an archive: use that archive")
                                       : -errno;
        if (fstat(from, &st) < 0)
                return -errno;
        r = write_tar_header(fd, path, (uint64_t) st.st_size);
        if (r < 0)
                return r;
        r = copy_blob_bytes(from, fd, (uint64_t) st.st_size);
        if (r < 0)
                return r;
        return write_tar_padding(fd, (uint64_t) st.st_size);
}

static const json_t *find_index_entry(const json_t *index, const char *name) {
        const json_t *item;
        size_t i;

        json_array_foreach(json_object_get(index, "manifests"), i, item) {
                const json_t *annotations = json_object_get(item, "annotations");

                if (streq(strna(document_string(annotations, ANNOTATION_NAME)), name) ||
                    streq(strna(document_string(annotations, ANNOTATION_DIGEST)), name))
                        return item;
        }
        return NULL;
}

/* index.json of the archive: the one image, by its name. */
static int write_export_index(const json_t *item, int fd) {
        const char *name = document_string(json_object_get(item, "annotations"), ANNOTATION_NAME);
        cleanup_json json_t *index = json_pack(
                "{s:i, s:s, s:[{s:O, s:O, s:O, s:{s:s, s:s}}]}", "schemaVersion", 2, "mediaType",
                "application/vnd.oci.image.index.v1+json", "manifests", "mediaType",
                json_object_get(item, "mediaType"), "digest", json_object_get(item, "digest"),
                "size", json_object_get(item, "size"), "annotations", ANNOTATION_NAME, strna(name),
                "io.containerd.image.name", strna(name));
        cleanup_free char *text = index ? json_dumps(index, JSON_COMPACT) : NULL;

        return text ? write_tar_text(fd, "index.json", text) : -ENOMEM;
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
        config = document_string(json_object_get(manifest, "config"), "digest");
        layers = json_object_get(manifest, "layers");
        if (!config || !digest_is_valid(config))
                return -EBADMSG;
        /* The largest first: a missing one is noticed before much is written. */
        json_array_foreach(layers, i, layer) {
                const char *name = document_string(layer, "digest");

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
        r = write_tar_text(fd, "oci-layout", "{\"imageLayoutVersion\":\"1.0.0\"}");
        if (r < 0)
                return r;
        r = write_export_index(item, fd);
        if (r < 0)
                return r;
        return write_all(fd, zeros, sizeof(zeros));
}

int store_export(Store *store, const char *name, int fd, Error *reterr) {
        cleanup_json json_t *index = NULL;
        cleanup_free char *text = NULL;
        const json_t *item;
        const char *digest;
        size_t length;
        int r;

        r = read_file_at(store->fd, "index.json", MANIFEST_SIZE_MAX, &text, &length);
        if (r >= 0)
                r = document_parse(text, length, &index, reterr);
        if (r < 0 && r != -ENOENT)
                return error_prefixf(reterr, r, "image store: index.json");
        item = find_index_entry(index, name);
        digest = document_string(item, "digest");
        if (!digest || !digest_is_valid(digest))
                return error_setf(reterr, ENOENT, "image '%.256s' is not in the store", name);
        r = write_image_archive(store, item, digest, fd, reterr);
        return r < 0 ? error_prefixf(reterr, r, "cannot be exported") : 0;
}
