/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image-helper/source/source-store.h"

#include "common/file.h"
#include "common/json-text.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
        STATE_BYTES_MAX = 256 * 1024,
        STATE_PATH_SIZE = 32
};

int source_store_open(const char *path, SourceStore *ret, Error *reterr) {
        int fd = open_directory_at(AT_FDCWD, path, 0700);

        if (fd < 0)
                return error_prefixf(reterr, fd, "%s", path);
        *ret = SOURCE_STORE_NULL;
        ret->fd = fd;
        return 0;
}

void source_store_done(SourceStore *store) {
        close_fd(store->manifests_fd);
        close_fd(store->next_fd);
        close_fd(store->fd);
        *store = SOURCE_STORE_NULL;
}

static const char *make_state_path(char path[STATE_PATH_SIZE], const char *which) {
        (void) snprintf(path, STATE_PATH_SIZE, "%s/source.json", which);
        return path;
}

json_t *source_store_read_state(const SourceStore *store, const char *which) {
        char path[STATE_PATH_SIZE];
        cleanup_free char *text = NULL;
        json_t *state = NULL;
        size_t length;

        if (read_file_at(store->fd, make_state_path(path, which), STATE_BYTES_MAX, &text, &length) <
                    0 ||
            document_parse(text, length, &state, NULL) < 0)
                return NULL;
        return state;
}

int source_store_write_state(const SourceStore *store, const char *which, const json_t *state) {
        cleanup_close int fd = openat(store->fd, which, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        char *text = fd < 0 ? NULL : json_to_text(state, JSON_COMPACT);
        int r = fd < 0 ? -errno : -ENOMEM;

        if (text)
                r = write_file_atomic_at(fd, "source.json", text, strlen(text), 0600);
        free(text);
        return r;
}

/* ---- "next" ---- */

static int open_new_directory(int dir_fd, const char *name) {
        if (mkdirat(dir_fd, name, 0700) < 0)
                return -errno;
        return open_beneath(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
}

int source_store_begin(SourceStore *store, Error *reterr) {
        int r = remove_tree_at(store->fd, "next");

        if (r < 0)
                return error_prefixf(reterr, r, "next");
        r = store->next_fd = open_new_directory(store->fd, "next");
        if (r < 0)
                return error_prefixf(reterr, r, "next");
        r = store->manifests_fd = open_new_directory(store->next_fd, "manifests");
        return r < 0 ? error_prefixf(reterr, r, "next") : 0;
}

static int write_synced_file(int dir_fd, const char *name, const void *data, size_t length) {
        cleanup_close int fd =
                openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        int r = fd < 0 ? -errno : write_all(fd, data, length);

        if (r < 0)
                return r;
        return fsync(fd) < 0 ? -errno : 0;
}

int source_store_add(const SourceStore *store, bool is_manifest, const char *name, const void *data,
                     size_t length, Error *reterr) {
        int r = write_synced_file(is_manifest ? store->manifests_fd : store->next_fd, name, data,
                                  length);

        return r < 0 ? error_prefixf(reterr, r, "%s", name) : 0;
}

int source_store_read(const SourceStore *store, bool is_manifest, const char *name,
                      uint64_t size_max, char **ret_data, size_t *ret_length) {
        cleanup_close int fd =
                open_beneath(store->fd, is_manifest ? "current/manifests" : "current",
                             O_RDONLY | O_DIRECTORY, 0);

        return fd < 0 ? fd : read_file_at(fd, name, size_max, ret_data, ret_length);
}

/* ---- downloads ---- */

int source_store_open_part(const SourceStore *store, const char *sha256, Error *reterr) {
        cleanup_close int parts = open_directory_at(store->fd, "parts", 0700);
        int fd = parts < 0 ? -1
                           : openat(parts, sha256, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

        return fd < 0 ? error_prefixf(reterr, -errno, "parts") : fd;
}

void source_store_remove_part(const SourceStore *store, const char *sha256) {
        cleanup_close int parts = openat(store->fd, "parts", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        if (parts >= 0)
                (void) unlinkat(parts, sha256, 0);
}

void source_store_sweep_parts(const SourceStore *store,
                              bool (*is_wanted)(const char *sha256, const void *userdata),
                              const void *userdata) {
        int fd = openat(store->fd, "parts", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        cleanup_closedir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
        const struct dirent *entry;

        if (!dir) {
                close_fd(fd);
                return;
        }
        while ((entry = readdir(dir)))
                if (entry->d_name[0] != '.' && !is_wanted(entry->d_name, userdata))
                        (void) unlinkat(dirfd(dir), entry->d_name, 0);
}

int source_store_finish(SourceStore *store, const json_t *state, Error *reterr) {
        char *text = json_to_text(state, JSON_COMPACT);
        int r = text ? source_store_add(store, false, "source.json", text, strlen(text), reterr)
                     : -ENOMEM;

        free(text);
        if (r < 0)
                return r;
        if (fsync(store->manifests_fd) < 0 || fsync(store->next_fd) < 0 || fsync(store->fd) < 0)
                return error_prefixf(reterr, -errno, "next");
        return 0;
}
