/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/desired/rollout-store.h"

#include "common/checksummed.h"
#include "common/cleanup.h"
#include "common/failpoint.h"
#include "common/file.h"
#include "common/fsync-queue.h"
#include "common/hash.h"
#include "common/log.h"
#include "common/text.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

enum {
        ROLLOUT_BYTES_MAX = 16 * 1024 * 1024,
        KEY_LENGTH = 32 /* hex digits of the hash of a name */
};

static const char record_name[] = "record";
static const char *const record_names[] = { record_name, NULL };

struct RolloutStore {
        char *path;
        FsyncQueue *sync;
};

int rollout_store_new(sd_event *event, const char *state_dir, RolloutStore **ret) {
        cleanup_with(rollout_store_freep) RolloutStore *store = calloc(1, sizeof(*store));
        int r;

        if (!store)
                return -ENOMEM;
        store->path = path_join(state_dir, "rollouts");
        if (!store->path)
                return -ENOMEM;
        r = fsync_queue_new(event, store->path, record_names, &store->sync);
        if (r < 0)
                return r;
        fsync_queue_keep_synced(store->sync, record_name);
        *ret = TAKE_PTR(store);
        return 0;
}

RolloutStore *rollout_store_free(RolloutStore *store) {
        if (!store)
                return NULL;
        fsync_queue_free(store->sync);
        free(store->path);
        free(store);
        return NULL;
}

/* The directory of a pod's history below the common one. */
static int hash_pod_name(const RolloutHistory *history, char ret[SHA256_HEX_SIZE]) {
        cleanup_free char *name = path_join(history->namespace, history->name);

        if (!name)
                return -ENOMEM;
        sha256_hex(name, strlen(name), ret);
        ret[KEY_LENGTH] = '\0';
        return 0;
}

static int open_store(const RolloutStore *store) {
        int fd = open(store->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

        return fd < 0 ? -errno : fd;
}

/* ---- write ---- */

static int write_rollout_history(RolloutStore *store, const RolloutHistory *history) {
        cleanup_free char *text = rollout_history_format(history);
        cleanup_close int base_fd = -EBADF, fd = -EBADF;
        char key[SHA256_HEX_SIZE];
        int r = text ? hash_pod_name(history, key) : -ENOMEM;

        if (r < 0)
                return r;
        if (strlen(text) + SHA256_HEX_SIZE > ROLLOUT_BYTES_MAX)
                return -E2BIG;
        FAIL_AT("rollout.write");
        base_fd = open_directory_at(AT_FDCWD, store->path, 0700);
        if (base_fd < 0)
                return base_fd;
        fd = open_directory_at(base_fd, key, 0700);
        r = fd < 0 ? fd : checksummed_write_at(fd, record_name, text, 0600);
        if (r < 0)
                return r;
        fsync_queue_add(store->sync, key);
        DIE_AT("rollout.written");
        return 0;
}

void rollout_store_write(RolloutStore *store, const RolloutHistory *history) {
        int r = write_rollout_history(store, history);

        if (r < 0)
                (void) log_error_errno(r, "Cannot write the rollout of pod '%s/%s' in %s",
                                       history->namespace, history->name, store->path);
}

void rollout_store_remove(const RolloutStore *store, const RolloutHistory *history) {
        cleanup_close int fd = open_store(store);
        char key[SHA256_HEX_SIZE];
        int r = fd < 0 ? fd : hash_pod_name(history, key);

        if (r >= 0)
                fsync_queue_remove(store->sync, key);
        else if (r != -ENOENT)
                (void) log_error_errno(r, "Cannot remove the rollout of pod '%s/%s' in %s",
                                       history->namespace, history->name, store->path);
}

/* ---- load ---- */

static int load_rollout_history(const RolloutStore *store, int base_fd, const char *key,
                                int (*each)(RolloutHistory *, void *), void *userdata) {
        cleanup_close int fd =
                openat(base_fd, key, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        RolloutHistory history = { 0 };
        cleanup_free char *text = NULL, *path = NULL;
        int r;

        if (fd < 0)
                return 0;
        path = text_format("%s/%s/%s", store->path, key, record_name);
        if (!path)
                return -ENOMEM;
        r = checksummed_load_at(fd, record_name, ROLLOUT_BYTES_MAX, path,
                                "the last ready revision is unknown", &text);
        if (r <= 0)
                return r;
        r = rollout_history_parse(text, &history);
        if (r == -EBADMSG) {
                log_error("%s is damaged, setting it aside; the last ready revision is unknown",
                          path);
                checksummed_set_aside_at(fd, record_name);
        }
        return r < 0 ? (r == -ENOMEM ? r : 0) : each(&history, userdata);
}

int rollout_store_load(const RolloutStore *store,
                       int (*each)(RolloutHistory *history, void *userdata), void *userdata) {
        int fd = open_store(store), r;
        cleanup_closedir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
        const struct dirent *entry;

        if (!dir) {
                close_fd(fd);
                if (fd < 0 && fd != -ENOENT)
                        (void) log_error_errno(fd, "Cannot read %s", store->path);
                return 0;
        }
        while ((r = read_directory_entry(dir, &entry)) > 0) {
                if (strlen(entry->d_name) != KEY_LENGTH)
                        continue;
                r = load_rollout_history(store, dirfd(dir), entry->d_name, each, userdata);
                if (r < 0)
                        return r;
        }
        if (r < 0)
                (void) log_error_errno(r, "Cannot list %s", store->path);
        return 0;
}
