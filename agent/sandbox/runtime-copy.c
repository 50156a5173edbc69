/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sandbox/runtime-copy.h"

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/event-source.h"
#include "common/failpoint.h"
#include "common/file-stamp.h"
#include "common/file.h"
#include "common/program-path.h"
#include "common/selinux.h"
#include "common/strv.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

#define RELEASE_USEC          (5 * USEC_PER_SEC)
#define RELEASE_ACCURACY_USEC USEC_PER_SEC

enum {
        SIZE_MAX_BYTES = 64 * 1024 * 1024,
        /* runc and crun expect exactly these. */
        SEALS = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE,
};

struct RuntimeCopy {
        sd_event_source *release_timer;
        char *program;   /* of which it is a copy */
        FileStamp stamp; /* of the program */
        int fd;          /* < 0: there is no copy */
};

static void release_copy(RuntimeCopy *copy) {
        copy->fd = close_fd(copy->fd);
        free(TAKE_PTR(copy->program));
}

static int on_release_timer(sd_event_source *timer, uint64_t usec, void *userdata) {
        release_copy(userdata);
        return 0;
}

int runtime_copy_new(sd_event *event, RuntimeCopy **ret) {
        RuntimeCopy *copy = calloc(1, sizeof(*copy));
        int r;

        if (!copy)
                return -ENOMEM;
        copy->fd = -EBADF;
        r = event_add_disabled_timer(event, &copy->release_timer, CLOCK_MONOTONIC,
                                     RELEASE_ACCURACY_USEC, on_release_timer, copy);
        *ret = r < 0 ? runtime_copy_free(copy) : copy;
        return r;
}

RuntimeCopy *runtime_copy_free(RuntimeCopy *copy) {
        if (!copy)
                return NULL;
        release_copy(copy);
        sd_event_source_disable_unref(copy->release_timer);
        free(copy);
        return NULL;
}

/* The first file with this name that may be executed, as for the shim. */
static int open_program(const char *program) {
        const char *directories = program_directories();
        int r;

        if (strchr(program, '/'))
                return open(program, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
        do {
                cleanup_free char *path = NULL;

                r = program_path_next(&directories, program, &path);
                if (r > 0 && access(path, X_OK) == 0)
                        return open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
        } while (r > 0);
        return -1;
}

/* A script could not be executed by a descriptor that is closed by execve(2). */
static bool is_elf(int fd) {
        char magic[SELFMAG];

        return pread(fd, magic, sizeof(magic), 0) == SELFMAG && memcmp(magic, ELFMAG, SELFMAG) == 0;
}

/* Before Linux 6.3 there was no flag, and every memfd was executable. */
static int create_executable_memfd(void) {
        int fd = memfd_create("runtime", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);

        return fd < 0 && errno == EINVAL ? memfd_create("runtime", MFD_CLOEXEC | MFD_ALLOW_SEALING)
                                         : fd;
}

static int copy_program(int fd, off_t size) {
        cleanup_close int copy = create_executable_memfd();
        struct stat st;
        int r;

        if (copy < 0)
                return -errno;
        r = copy_to_end(fd, copy);
        if (r < 0)
                return r;
        if (fstat(copy, &st) < 0 || fchmod(copy, 0555) < 0 || fcntl(copy, F_ADD_SEALS, SEALS) < 0)
                return -errno;
        return st.st_size == size ? TAKE_FD(copy) : -ESTALE;
}

static int renew_copy(RuntimeCopy *copy, const char *program) {
        cleanup_close int fd = open_program(program);
        FileStamp stamp;
        struct stat st;

        if (fd < 0 || fstat(fd, &st) < 0)
                return -ENOENT;
        stamp = file_stamp_of(&st);
        if (copy->fd >= 0 && streq(copy->program, program) &&
            file_stamps_match(&copy->stamp, &stamp))
                return 0;
        release_copy(copy);
        if (!S_ISREG(st.st_mode) || (st.st_mode & 0111) == 0 || st.st_size > SIZE_MAX_BYTES ||
            !is_elf(fd))
                return -ENOEXEC;
        copy->program = strdup(program);
        if (!copy->program)
                return -ENOMEM;
        copy->stamp = stamp;
        copy->fd = copy_program(fd, st.st_size);
        return MIN(copy->fd, 0);
}

int runtime_copy_get(RuntimeCopy *copy, const char *program) {
        int r;

        FAIL_AT("runtime.copy");
        if (selinux_is_enabled())
                return -EOPNOTSUPP;
        r = renew_copy(copy, program);
        if (r < 0)
                return r;
        r = event_timer_arm(copy->release_timer, RELEASE_USEC);
        if (r < 0)
                release_copy(copy);
        return r < 0 ? r : copy->fd;
}
