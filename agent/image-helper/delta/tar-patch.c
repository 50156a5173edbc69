/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image-helper/delta/tar-patch.h"

#include "agent/image-helper/archive/tar-name.h"
#include "common/cleanup.h"
#include "common/text.h"

#include <fcntl.h>

enum {
        VARINT_BYTES_MAX = 10,
        END_OF_OPERATIONS = 256
};

struct TarPatch {
        const LayerView *base;
        tar_patch_source_t source;
        void *userdata;
        const uint8_t *unread; /* unread operations */
        size_t n_unread;
        unsigned n_operations;
        uint64_t length; /* bytes emitted so far */
        TarPatchOperation operation;
        uint64_t left; /* bytes that the operation still emits */
        int fd;        /* source; negative: none has been opened */
        uint64_t position;
        char path[TAR_NAME_LENGTH_MAX + 1]; /* path of the source, for messages */
};

/* ---- reading operations ---- */

/* 1: there are unread bytes. 0: the end. */
static int fill_unread(TarPatch *patch, Error *reterr) {
        const void *data;
        ssize_t n;

        if (patch->n_unread > 0)
                return 1;
        n = patch->source(patch->userdata, &data, reterr);
        if (n <= 0)
                return (int) n;
        patch->unread = data;
        patch->n_unread = (size_t) n;
        return 1;
}

static int set_truncated_error(Error *reterr) {
        return error_setf(reterr, EBADMSG, "the delta ends within an operation");
}

static int read_patch_byte(TarPatch *patch, uint8_t *ret, Error *reterr) {
        int r = fill_unread(patch, reterr);

        if (r <= 0)
                return r;
        *ret = *patch->unread++;
        patch->n_unread--;
        return 1;
}

static int read_patch_bytes(TarPatch *patch, void *buffer, size_t size, Error *reterr) {
        uint8_t *to = buffer;

        while (size > 0) {
                int r = fill_unread(patch, reterr);
                size_t n;

                if (r <= 0)
                        return r < 0 ? r : set_truncated_error(reterr);
                n = MIN(size, patch->n_unread);
                memcpy(to, patch->unread, n);
                patch->unread += n;
                patch->n_unread -= n;
                to += n;
                size -= n;
        }
        return 0;
}

static int read_patch_varint(TarPatch *patch, uint64_t *ret, Error *reterr) {
        uint64_t value = 0;

        for (unsigned i = 0; i < VARINT_BYTES_MAX; i++) {
                uint8_t byte;
                int r = read_patch_byte(patch, &byte, reterr);

                if (r <= 0)
                        return r < 0 ? r : set_truncated_error(reterr);
                /* The tenth byte of a varint contributes only one bit. */
                if (i == VARINT_BYTES_MAX - 1 && byte > 1)
                        break;
                value |= (uint64_t) (byte & 0x7F) << (7 * i);
                if (byte < 0x80) {
                        *ret = value;
                        return 0;
                }
        }
        return error_setf(reterr, EBADMSG, "a number in the delta has more than 64 bits");
}

/* ---- the source ---- */

enum {
        BASE_OPEN_FLAGS = O_RDONLY | O_NONBLOCK | O_NOCTTY
};

/* Takes over a descriptor, or passes on -errno. Only a regular file can be a source. */
static int take_base_regular(int opened) {
        cleanup_close int fd = opened;
        struct stat st;

        if (fd < 0)
                return opened;
        if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
                return -ENOENT;
        return TAKE_FD(fd);
}

static int open_base_regular(const LayerView *view, const char *path) {
        struct stat st;
        int i = layer_view_find(view, path, &st);

        if (i < 0)
                return i;
        if (!S_ISREG(st.st_mode))
                return -ENOENT;
        return take_base_regular(open_without_symlinks(view->layers[i], path, BASE_OPEN_FLAGS));
}

/* The directory's path in the tar may lead through a symbolic link of a lower layer. */
static int open_base_resolved(const LayerView *view, const char *path) {
        cleanup_free char *parent = NULL, *whole = NULL;
        char resolved[PATH_MAX];
        const char *base;
        int r = tar_name_split(path, &parent, &base);

        if (r < 0)
                return r;
        r = layer_view_resolve(view, parent, resolved, NULL);
        if (r < 0)
                return r;
        whole = text_format("%s%s%s", resolved, resolved[0] ? "/" : "", base);
        if (!whole)
                return -ENOMEM;
        return open_base_regular(view, whole);
}

/* In nearly all cases the highest layer that contains the path has the file, and the path contains
 * no links: opening it takes one call per layer, while a look-up takes four per component. If a
 * layer hides the path, or the path contains a link, opening fails, but not with -ENOENT. A file
 * below an opaque directory is also found, like a file that a layer hides. */
static int open_base_directly(const LayerView *view, const char *path) {
        int fd = -ENOENT;

        for (size_t i = 0; fd == -ENOENT && i < view->n_layers; i++)
                fd = layer_view_open_in(view, i, path, BASE_OPEN_FLAGS);
        return take_base_regular(fd);
}

/* The file that a container of the old image sees at the path; or one that a layer hides. */
static int open_base_file(const LayerView *base, const char *path) {
        int fd = open_base_directly(base, path);

        if (fd >= 0)
                return fd;
        fd = open_base_regular(base, path);
        if (fd == -ENOENT)
                fd = open_base_resolved(base, path);
        for (size_t i = 0; fd == -ENOENT && i < base->n_layers; i++)
                fd = open_base_regular(&(LayerView){ .layers = base->layers + i,
                                                     .n_layers = 1,
                                                     .lookups = base->lookups },
                                       path);
        return fd == -ENOTDIR ? -ENOENT : fd;
}

static int open_patch_source(TarPatch *patch, uint64_t size, Error *reterr) {
        cleanup_free char *clean = NULL;
        int r;

        patch->fd = close_fd(patch->fd);
        if (size == 0 || size > TAR_NAME_LENGTH_MAX)
                return error_setf(reterr, EBADMSG,
                                  "the delta names a file of the base with %llu "
                                  "bytes",
                                  (unsigned long long) size);
        r = read_patch_bytes(patch, patch->path, (size_t) size, reterr);
        if (r < 0)
                return r;
        patch->path[size] = '\0';
        if (strlen(patch->path) != size)
                return error_setf(reterr, EBADMSG, "the delta names a file of the base with a NUL");
        r = tar_name_clean(patch->path, &clean, reterr);
        if (r < 0)
                return error_prefixf(reterr, r, "a file of the base");
        if (clean[0] == '\0')
                return error_setf(reterr, EBADMSG, "the delta names the top as a file of the base");
        r = patch->fd = open_base_file(patch->base, clean);
        patch->position = 0;
        return r < 0 ? error_setf(reterr, -r, "the base's file '%s' cannot be opened: %s", clean,
                                  strerror(-r))
                     : 0;
}

static int read_patch_source(TarPatch *patch, uint8_t *to, size_t size, Error *reterr) {
        if (patch->fd < 0)
                return error_setf(reterr, EBADMSG, "the delta reads a file before it opens one");
        while (size > 0) {
                ssize_t n = pread(patch->fd, to, size, (off_t) patch->position);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return error_setf(reterr, errno, "the base's file '%s': %s", patch->path,
                                          strerror(errno));
                if (n == 0)
                        return error_setf(reterr, EBADMSG, "the base's file '%s' is too short",
                                          patch->path);
                patch->position += (uint64_t) n;
                to += n;
                size -= (size_t) n;
        }
        return 0;
}

/* ---- operations ---- */

/* Operations that emit something are carried out later, block by block. */
static int start_patch_operation(TarPatch *patch, uint8_t operation, uint64_t size, Error *reterr) {
        switch ((TarPatchOperation) operation) {
        case TAR_PATCH_OPEN:
                return open_patch_source(patch, size, reterr);
        case TAR_PATCH_SEEK:
                if (size > INT64_MAX / 2)
                        return error_setf(reterr, EBADMSG, "the delta seeks beyond any file");
                patch->position = size;
                return 0;
        case TAR_PATCH_DATA:
        case TAR_PATCH_COPY:
        case TAR_PATCH_ADD_DATA:
                if (size > TAR_PATCH_OUTPUT_MAX - patch->length)
                        return error_setf(reterr, EFBIG, "the delta makes more than %llu bytes",
                                          (unsigned long long) TAR_PATCH_OUTPUT_MAX);
                patch->operation = (TarPatchOperation) operation;
                patch->left = size;
                patch->length += size;
                return 0;
        }
        return error_setf(reterr, EBADMSG, "the delta has the unknown operation %u", operation);
}

/* 1: an operation has been started. 0: the end of the delta. */
static int next_patch_operation(TarPatch *patch, Error *reterr) {
        uint8_t operation;
        uint64_t size;
        int r = read_patch_byte(patch, &operation, reterr);

        if (r <= 0)
                return r;
        if (++patch->n_operations > TAR_PATCH_OPERATIONS_MAX)
                return error_setf(reterr, E2BIG, "the delta has more than %d operations",
                                  TAR_PATCH_OPERATIONS_MAX);
        r = read_patch_varint(patch, &size, reterr);
        if (r < 0)
                return r;
        r = start_patch_operation(patch, operation, size, reterr);
        return r < 0 ? r : 1;
}

static int add_patch_data(TarPatch *patch, uint8_t *block, size_t size, Error *reterr) {
        int r = read_patch_source(patch, block, size, reterr);

        while (r >= 0 && size > 0) {
                size_t n;

                r = fill_unread(patch, reterr);
                if (r <= 0)
                        return r < 0 ? r : set_truncated_error(reterr);
                n = MIN(size, patch->n_unread);
                for (size_t i = 0; i < n; i++)
                        block[i] = (uint8_t) (block[i] + patch->unread[i]);
                patch->unread += n;
                patch->n_unread -= n;
                block += n;
                size -= n;
        }
        return MIN(r, 0);
}

static int emit_patch_bytes(TarPatch *patch, uint8_t *block, size_t size, Error *reterr) {
        switch (patch->operation) {
        case TAR_PATCH_COPY:
                return read_patch_source(patch, block, size, reterr);
        case TAR_PATCH_ADD_DATA:
                return add_patch_data(patch, block, size, reterr);
        default:
                return read_patch_bytes(patch, block, size, reterr);
        }
}

ssize_t tar_patch_read(TarPatch *patch, void *block, size_t size, Error *reterr) {
        uint8_t *to = block;
        size_t done = 0;

        while (done < size) {
                size_t n;
                int r = 1;

                if (patch->left == 0)
                        r = next_patch_operation(patch, reterr);
                if (r < 0)
                        return r;
                if (r == 0)
                        break;
                n = (size_t) MIN(patch->left, (uint64_t) (size - done));
                r = emit_patch_bytes(patch, to + done, n, reterr);
                if (r < 0)
                        return r;
                patch->left -= n;
                done += n;
        }
        return (ssize_t) done;
}

TarPatch *tar_patch_new(const LayerView *base, tar_patch_source_t source, void *userdata) {
        TarPatch *patch = calloc(1, sizeof(*patch));

        if (!patch)
                return NULL;
        patch->base = base;
        patch->source = source;
        patch->userdata = userdata;
        patch->fd = -EBADF;
        return patch;
}

TarPatch *tar_patch_free(TarPatch *patch) {
        if (!patch)
                return NULL;
        close_fd(patch->fd);
        free(patch);
        return NULL;
}
