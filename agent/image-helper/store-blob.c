/* SPDX-License-Identifier: Apache-2.0 */

/* Blobs of layers while they arrive from a registry. An interrupted one stays under partial/, so
 * that a retry requests only the rest; a download holds its lock. */

#include "agent/image-helper/store-private.h"
#include "common/cleanup.h"
#include "common/failpoint.h"
#include "common/file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

enum {
        PATH_SIZE = 96
};

static void partial_path(const char *digest, char ret[static PATH_SIZE]) {
        (void) snprintf(ret, PATH_SIZE, "partial/%s", digest_hex(digest));
}

static void blob_path(const char *digest, char ret[static PATH_SIZE]) {
        (void) snprintf(ret, PATH_SIZE, "blobs/sha256/%s", digest_hex(digest));
}

static void private_path(const Store *store, size_t number, char ret[static PATH_SIZE]) {
        (void) snprintf(ret, PATH_SIZE, "tmp/%s/blob-%zu", store->work_name, number);
}

static int open_whole(const Store *store, const char *digest, uint64_t size) {
        char path[PATH_SIZE];
        struct stat st;
        int fd;

        blob_path(digest, path);
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

/* -EWOULDBLOCK: a different process is downloading it. */
static int open_partial(const Store *store, const char *digest) {
        cleanup_close int fd = -EBADF;
        char path[PATH_SIZE];
        struct stat st;

        partial_path(digest, path);
        fd = openat(store->fd, path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0)
                return -errno;
        if (flock(fd, LOCK_EX | LOCK_NB) < 0 || fstat(fd, &st) < 0)
                return -errno;
        /* The previous holder of the lock may have published the file since. */
        if (st.st_nlink == 0 || !S_ISREG(st.st_mode))
                return -EWOULDBLOCK;
        return TAKE_FD(fd);
}

int store_open_blob(Store *store, const char *digest, uint64_t size, size_t number, StoreBlob *ret,
                    Error *reterr) {
        StoreBlob blob = { .fd = open_whole(store, digest, size) };
        struct stat st;

        if (blob.fd >= 0) {
                blob.is_whole = true;
                blob.length = size;
                *ret = blob;
                return 0;
        }
        blob.fd = open_partial(store, digest);
        if (blob.fd == -EWOULDBLOCK) {
                blob.is_private = true;
                blob.fd = open_private(store, number, reterr);
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

int store_commit_blob(Store *store, const char *digest, const StoreBlob *blob, Error *reterr) {
        char from[PATH_SIZE], to[PATH_SIZE];

        if (blob->is_whole || blob->is_private)
                return 0;
        partial_path(digest, from);
        blob_path(digest, to);
        FAIL_AT("store.commit-blob");
        if (renameat(store->fd, from, store->fd, to) < 0)
                return error_prefixf(reterr, -errno, "image store: %s", to);
        return 0;
}

void store_discard_blob(Store *store, const char *digest, const StoreBlob *blob) {
        char path[PATH_SIZE];

        if (blob->is_private)
                return;
        if (blob->is_whole)
                blob_path(digest, path);
        else
                partial_path(digest, path);
        (void) unlinkat(store->fd, path, 0);
}

int store_open_blob_to_read(const Store *store, const char *digest) {
        char path[PATH_SIZE];
        int fd;

        blob_path(digest, path);
        fd = openat(store->fd, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

int store_read_blob(const Store *store, const char *digest, size_t max_bytes, char **ret,
                    size_t *ret_length) {
        cleanup_free char *text = NULL;
        char path[PATH_SIZE], actual[DIGEST_SIZE];
        size_t length;
        int r;

        blob_path(digest, path);
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
