/* SPDX-License-Identifier: Apache-2.0 */
#include "common/file-sync.h"

#include "common/child.h"
#include "common/cleanup.h"
#include "common/file.h"

#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum {
        BESIDE_SIZE = 256 + 8,
};

struct FileSync {
        sd_event_source *end;
        file_sync_done_t done;
        void *userdata;
};

/* ---- the child, in which nothing may be called that another thread could hold ---- */

static int remove_file(int dir_fd, const char *name) {
        return unlinkat(dir_fd, name, 0) < 0 && errno != ENOENT ? -errno : 0;
}

static int write_synced(int dir_fd, const FileText *file, const char *beside) {
        int fd, r;

        if (!file->text)
                return remove_file(dir_fd, file->name);
        fd = openat(dir_fd, beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
                    file->mode);
        if (fd < 0)
                return -errno;
        r = fchmod(fd, file->mode) < 0 ? -errno : write_all(fd, file->text, strlen(file->text));
        if (r >= 0 && fsync(fd) < 0)
                r = -errno;
        close(fd);
        if (r >= 0 && renameat(dir_fd, beside, dir_fd, file->name) < 0)
                r = -errno;
        return r;
}

/* What the parent closes must be closed, be this disk as slow as it will. */
static void close_others(int fd) {
        (void) close_range(fd + 1, ~0U, 0);
        if (fd > 3)
                (void) close_range(3, (unsigned) fd - 1, 0);
}

static void run(int dir_fd, const FileText *files, char (*beside)[BESIDE_SIZE], size_t n) {
        int r = 0;

        close_others(dir_fd);
        for (size_t i = 0; i < n && r >= 0; i++)
                r = write_synced(dir_fd, &files[i], beside[i]);
        if (r >= 0 && fsync(dir_fd) < 0)
                r = -errno;
        _exit(-r & 0xff); /* no errno is larger */
}

/* ---- the parent ---- */

static int on_end(sd_event_source *source, const siginfo_t *si, void *userdata) {
        FileSync *sync = userdata;
        int r = si->si_code == CLD_EXITED ? -si->si_status : -EIO;

        if (!sync) /* forgotten: the loop's own, and nobody's from here on */
                return sd_event_source_set_floating(source, false);
        sync->end = sd_event_source_disable_unref(sync->end);
        sync->done(r, sync->userdata);
        free(sync);
        return 0;
}

static int check_files(const FileText *files, size_t n, char (*ret_beside)[BESIDE_SIZE]) {
        if (n > FILE_SYNC_MAX)
                return -E2BIG;
        for (size_t i = 0; i < n; i++) {
                if (!files[i].name[0] || strchr(files[i].name, '/') || strlen(files[i].name) > 250)
                        return -EINVAL;
                (void) snprintf(ret_beside[i], BESIDE_SIZE, ".%s", files[i].name);
        }
        return 0;
}

static int start(sd_event *event, int dir_fd, const FileText *files, char (*beside)[BESIDE_SIZE],
                 size_t n, FileSync *sync) {
        pid_t pid = fork();
        int r;

        if (pid < 0)
                return -errno;
        if (pid == 0)
                run(dir_fd, files, beside, n);
        r = sd_event_add_child(event, &sync->end, pid, WEXITED, on_end, sync);
        if (r >= 0)
                r = child_watch_for_good(sync->end);
        if (r < 0) {
                sync->end = sd_event_source_disable_unref(sync->end);
                (void) waitpid(pid, NULL, 0);
        }
        return r;
}

int file_sync_start(sd_event *event, const char *directory, const FileText *files, size_t n,
                    file_sync_done_t done, void *userdata, FileSync **ret) {
        char beside[FILE_SYNC_MAX][BESIDE_SIZE];
        cleanup_close int dir_fd = -EBADF;
        FileSync *sync;
        int r = check_files(files, n, beside);

        if (r < 0)
                return r;
        dir_fd = open_directory_at(AT_FDCWD, directory, 0700);
        if (dir_fd < 0)
                return dir_fd;
        sync = calloc(1, sizeof(*sync));
        if (!sync)
                return -ENOMEM;
        *sync = (FileSync){ .done = done, .userdata = userdata };
        r = start(event, dir_fd, files, beside, n, sync);
        if (r < 0) {
                free(sync);
                return r;
        }
        *ret = sync;
        return 0;
}

FileSync *file_sync_free(FileSync *sync) {
        if (!sync)
                return NULL;
        (void) sd_event_source_set_userdata(sync->end, NULL);
        (void) sd_event_source_set_floating(sync->end, true);
        sd_event_source_unref(sync->end);
        free(sync);
        return NULL;
}
