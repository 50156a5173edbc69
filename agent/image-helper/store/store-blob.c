/* SPDX-License-Identifier: Apache-2.0 */

/* Blobs of layers while they arrive from a registry. An interrupted one stays in partial/, so that
 * a retry requests only the rest; a download holds a lock on it. Its name contains the domain of
 * the pull, because the size of an existing part would reveal to a registry which images others
 * have. */

#include "agent/image-helper/archive/byte-stream.h"
#include "agent/image-helper/store/store-private.h"
#include "common/cleanup.h"
#include "common/failpoint.h"
#include "common/file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

enum {
        PATH_SIZE = 96,
        PARTIAL_AGE_SEC = 7 * 24 * 60 * 60
};

static void partial_name(const Store *store, const char *digest, char ret[static PATH_SIZE]) {
        (void) snprintf(ret, PATH_SIZE, "%.64s.%s", digest_hex(digest),
                        store->view ? store_view_domain(store->view) : "0");
}

static void partial_path(const char *name, char ret[static PATH_SIZE]) {
        (void) snprintf(ret, PATH_SIZE, "partial/%.85s", name);
}

static void blob_path(const char *hex, char ret[static PATH_SIZE]) {
        (void) snprintf(ret, PATH_SIZE, "blobs/sha256/%.64s", hex);
}

static void private_path(const Store *store, size_t number, char ret[static PATH_SIZE]) {
        (void) snprintf(ret, PATH_SIZE, "tmp/%s/blob-%zu", store->work_name, number);
}

static bool is_blob_visible(const Store *store, const char *digest) {
        return !store->view || store_view_has_blob(store->view, digest);
}

static int open_whole(const Store *store, const char *digest, uint64_t size) {
        char path[PATH_SIZE];
        struct stat st;
        int fd;

        if (!is_blob_visible(store, digest))
                return -ENOENT;
        blob_path(digest_hex(digest), path);
        fd = openat(store->fd, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        if (fstat(fd, &st) >= 0 && S_ISREG(st.st_mode) && (uint64_t) st.st_size == size)
                return fd;
        close_fd(fd);
        return -ENOENT;
}

static int open_private(Store *store, size_t number, Error *reterr) {
        char path[PATH_SIZE];
        int r = store_work_fd(store, reterr), fd;

        if (r < 0)
                return r;
        private_path(store, number, path);
        fd = openat(store->fd, path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        return fd < 0 ? error_prefixf(reterr, -errno, "image store: %s", path) : fd;
}

/* -EWOULDBLOCK: another process is downloading it, or has just published it. */
static int open_partial(const Store *store, const char *name, int flags) {
        cleanup_close int fd = -EBADF;
        struct stat st, current;
        char path[PATH_SIZE];

        partial_path(name, path);
        fd = openat(store->fd, path, flags | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0)
                return -errno;
        if (flock(fd, LOCK_EX | LOCK_NB) < 0 || fstat(fd, &st) < 0)
                return -errno;
        /* The previous holder of the lock may have renamed or removed the file. */
        if (fstatat(store->fd, path, &current, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode) ||
            st.st_dev != current.st_dev || st.st_ino != current.st_ino)
                return -EWOULDBLOCK;
        return TAKE_FD(fd);
}

void store_sweep_partial_blob(const Store *store, const char *name) {
        cleanup_close int fd = open_partial(store, name, O_RDONLY);
        char path[PATH_SIZE];
        struct stat st;

        if (fd < 0)
                return;
        partial_path(name, path);
        /* A file whose name has no domain was written by an earlier version, and no pull resumes
         * it. Whether others have the complete blob must not matter, because the registry sees
         * which part is resumed. */
        if (!strchr(name, '.') ||
            (fstat(fd, &st) >= 0 && st.st_mtime <= time(NULL) - PARTIAL_AGE_SEC))
                (void) unlinkat(store->fd, path, 0);
}

void store_discard_part(const Store *store, const char *digest) {
        cleanup_close int fd = -EBADF;
        char name[PATH_SIZE], path[PATH_SIZE];

        partial_name(store, digest, name);
        fd = open_partial(store, name, O_RDONLY);
        partial_path(name, path);
        if (fd >= 0)
                (void) unlinkat(store->fd, path, 0);
}

int store_open_blob(Store *store, const StoreBlobName *name, StoreBlob *ret, Error *reterr) {
        uint64_t size = name->size;
        StoreBlob blob = { .fd = name->is_temporary ? -ENOENT
                                                    : open_whole(store, name->digest, size) };
        char part[PATH_SIZE];
        struct stat st;

        if (blob.fd >= 0) {
                store_discard_part(store, name->digest);
                blob.is_whole = true;
                blob.length = size;
                *ret = blob;
                return 0;
        }
        partial_name(store, name->digest, part);
        blob.fd = open_partial(store, part, O_RDWR | O_CREAT);
        if (blob.fd == -EWOULDBLOCK) {
                blob.is_private = true;
                blob.number = name->number;
                blob.fd = open_private(store, name->number, reterr);
        }
        if (blob.fd < 0)
                return error_prefixf(reterr, blob.fd, "image store: partial");
        if (fstat(blob.fd, &st) < 0 ||
            ((uint64_t) st.st_size > size && ftruncate(blob.fd, 0) < 0)) {
                close_fd(blob.fd);
                return -errno;
        }
        blob.length = (uint64_t) st.st_size > size ? 0 : (uint64_t) st.st_size;
        *ret = blob;
        return 0;
}

/* The path of a blob before it is published. */
static void arriving_path(const Store *store, const char *digest, const StoreBlob *blob,
                          char ret[static PATH_SIZE]) {
        char name[PATH_SIZE];

        if (blob->is_private) {
                private_path(store, blob->number, ret);
                return;
        }
        partial_name(store, digest, name);
        partial_path(name, ret);
}

int store_commit_blob(Store *store, const char *digest, const StoreBlob *blob, Error *reterr) {
        char from[PATH_SIZE], to[PATH_SIZE];

        if (blob->is_whole)
                return 0;
        arriving_path(store, digest, blob, from);
        blob_path(digest_hex(digest), to);
        FAIL_AT("store.commit-blob");
        if (renameat(store->fd, from, store->fd, to) < 0)
                return error_prefixf(reterr, -errno, "image store: %s", to);
        return 0;
}

/* Hashes the blob, because other images may use it, and their records do not prove that it is
 * intact. */
static bool is_blob_damaged(const char *digest, const StoreBlob *blob) {
        cleanup_with(byte_stream_freep) ByteStream *stream = NULL;
        char actual[DIGEST_SIZE];

        if (byte_stream_new_blob(blob->fd, blob->length, -EBADF, &stream) < 0 ||
            byte_stream_drain(stream, NULL) < 0)
                return false;
        byte_stream_digest(stream, actual);
        return !streq(actual, digest);
}

void store_discard_blob(Store *store, const char *digest, const StoreBlob *blob) {
        char path[PATH_SIZE];

        if (blob->is_private || (blob->is_whole && !is_blob_damaged(digest, blob)))
                return;
        if (blob->is_whole)
                blob_path(digest_hex(digest), path);
        else
                arriving_path(store, digest, blob, path);
        (void) unlinkat(store->fd, path, 0);
}

int store_open_blob_to_read(const Store *store, const char *digest) {
        char path[PATH_SIZE];
        int fd;

        if (!is_blob_visible(store, digest))
                return -ENOENT;
        blob_path(digest_hex(digest), path);
        fd = openat(store->fd, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

int store_read_blob(const Store *store, const char *digest, size_t max_bytes, char **ret,
                    size_t *ret_length) {
        cleanup_free char *text = NULL;
        char path[PATH_SIZE], actual[DIGEST_SIZE];
        size_t length;
        int r;

        if (!is_blob_visible(store, digest))
                return -ENOENT;
        blob_path(digest_hex(digest), path);
        r = read_file_at(store->fd, path, max_bytes, &text, &length);
        if (r < 0)
                return r;
        digest_of(text, length, actual);
        if (!streq(actual, digest))
                return -EBADMSG;
        *ret = TAKE_PTR(text);
        *ret_length = length;
        return 0;
}
