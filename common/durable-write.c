/* SPDX-License-Identifier: Apache-2.0 */
#include "common/durable-write.h"

#include "common/cleanup.h"
#include "common/failpoint.h"
#include "common/file.h"

#include <fcntl.h>
#include <stdint.h>
#include <sys/file.h>
#include <sys/stat.h>

enum {
        BESIDE_SIZE = 256 + 8,
};

typedef struct DurableWriteJob {
        const DurableFile *files;
        size_t n;
        char beside[DURABLE_WRITE_FILES_MAX][BESIDE_SIZE];
} DurableWriteJob;

/* ---- the child: must not call functions whose locks a thread could hold ---- */

static int write_temporary_synced(int dir_fd, const DurableFile *file, const char *beside) {
        cleanup_close int fd = -EBADF;
        int r;

        if (!file->text)
                return unlink_if_present_at(dir_fd, file->name);
        fd = openat(dir_fd, beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
                    file->mode);
        if (fd < 0)
                return -errno;
        if (fchmod(fd, file->mode) < 0)
                return -errno;
        FAIL_AT("durable.write");
        r = write_all(fd, file->text, strlen(file->text));
        if (r < 0)
                return r;
        FAIL_AT("durable.sync");
        if (fsync(fd) < 0)
                return -errno;
        FAIL_AT("durable.rename");
        if (renameat(dir_fd, beside, dir_fd, file->name) < 0)
                return -errno;
        return 0;
}

static int durable_write_run(int dir_fd, const void *userdata) {
        const DurableWriteJob *work = userdata;

        /* The child of an agent that was killed may still be writing. */
        while (flock(dir_fd, LOCK_EX) < 0)
                if (errno != EINTR)
                        return -errno;
        for (size_t i = 0; i < work->n; i++) {
                int r = write_temporary_synced(dir_fd, &work->files[i], work->beside[i]);

                if (r < 0)
                        return r;
        }
        FAIL_AT("durable.sync-directory");
        return fsync(dir_fd) < 0 ? -errno : 0;
}

/* ---- the parent ---- */

static int prepare_durable_write(const DurableFile *files, size_t n, DurableWriteJob *ret) {
        if (n > DURABLE_WRITE_FILES_MAX)
                return -E2BIG;
        for (size_t i = 0; i < n; i++) {
                if (!files[i].name[0] || strchr(files[i].name, '/') ||
                    strlen(files[i].name) > DURABLE_WRITE_NAME_MAX)
                        return -EINVAL;
                (void) snprintf(ret->beside[i], BESIDE_SIZE, ".%s", files[i].name);
        }
        ret->files = files;
        ret->n = n;
        return 0;
}

int durable_write_start(sd_event *event, const char *directory, const DurableFile *files, size_t n,
                        forked_task_done_t done, void *userdata, ForkedTask **ret) {
        DurableWriteJob work;
        cleanup_close int dir_fd = -EBADF;
        int r = prepare_durable_write(files, n, &work);

        if (r < 0)
                return r;
        dir_fd = open_directory_at(AT_FDCWD, directory, 0700);
        return dir_fd < 0 ? dir_fd
                          : forked_task_start(event, durable_write_run, dir_fd, &work, done,
                                              userdata, ret);
}

int durable_write_now(const char *directory, const DurableFile *files, size_t n) {
        DurableWriteJob work;
        cleanup_close int dir_fd = -EBADF;
        int r = prepare_durable_write(files, n, &work);

        if (r < 0)
                return r;
        dir_fd = open_directory_at(AT_FDCWD, directory, 0700);
        return dir_fd < 0 ? dir_fd : durable_write_run(dir_fd, &work);
}
