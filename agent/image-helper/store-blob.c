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
#include <time.h>

enum {
        PATH_SIZE = 96,
        PARTIAL_AGE_SEC = 7 * 24 * 60 * 60
};

static void partial_path(const char *hex, char ret[static PATH_SIZE]) {
        (void) snprintf(ret, PATH_SIZE, "partial/%.64s", hex);
}

static void blob_path(const char *hex, char ret[static PATH_SIZE]) {
        (void) snprintf(ret, PATH_SIZE, "blobs/sha256/%.64s", hex);
}

static void private_path(const Store *store, size_t number, char ret[static PATH_SIZE]) {
        (void) snprintf(ret, PATH_SIZE, "tmp/%s/blob-%zu", store->work_name, number);
}

static int open_whole(const Store *store, const char *digest, uint64_t size) {
        char path[PATH_SIZE];
        struct stat st;
        int fd;

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

/* -EWOULDBLOCK: a different process is downloading it, or has just published it. */
static int open_partial(const Store *store, const char *hex, int flags) {
        cleanup_close int fd = -EBADF;
        struct stat st, current;
        char path[PATH_SIZE];

        partial_path(hex, path);
        fd = openat(store->fd, path, flags | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0)
                return -errno;
        if (flock(fd, LOCK_EX | LOCK_NB) < 0 || fstat(fd, &st) < 0)
                return -errno;
        /* The previous holder of the lock may have renamed or removed the file since. */
        if (fstatat(store->fd, path, &current, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode) ||
            st.st_dev != current.st_dev || st.st_ino != current.st_ino)
                return -EWOULDBLOCK;
        return TAKE_FD(fd);
}

void store_sweep_partial_blob(const Store *store, const char *hex) {
        cleanup_close int fd = open_partial(store, hex, O_RDONLY);
        char partial[PATH_SIZE], whole[PATH_SIZE];
        struct stat st;

        if (fd < 0)
                return;
        partial_path(hex, partial);
        blob_path(hex, whole);
        if (faccessat(store->fd, whole, F_OK, AT_SYMLINK_NOFOLLOW) >= 0 ||
            (fstat(fd, &st) >= 0 && st.st_mtime <= time(NULL) - PARTIAL_AGE_SEC))
                (void) unlinkat(store->fd, partial, 0);
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
        blob.fd = open_partial(store, digest_hex(digest), O_RDWR | O_CREAT);
        if (blob.fd == -EWOULDBLOCK) {
                blob.is_private = true;
                blob.number = number;
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

        if (blob->is_whole)
                return 0;
        if (blob->is_private)
                private_path(store, blob->number, from);
        else
                partial_path(digest_hex(digest), from);
        blob_path(digest_hex(digest), to);
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
                blob_path(digest_hex(digest), path);
        else
                partial_path(digest_hex(digest), path);
        (void) unlinkat(store->fd, path, 0);
}

int store_open_blob_to_read(const Store *store, const char *digest) {
        char path[PATH_SIZE];
        int fd;

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
