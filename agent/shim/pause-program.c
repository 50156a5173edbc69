/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shim/pause-program.h"

#include "common/cleanup.h"
#include "common/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

/* The build creates this file. */
__asm__(".pushsection .rodata\n"
        ".balign 16\n"
        "mainstay_pause_start:\n"
        ".incbin \"" MAINSTAY_PAUSE_PROGRAM "\"\n"
        "mainstay_pause_end:\n"
        ".byte 0\n"
        ".popsection\n");
extern const char mainstay_pause_start[], mainstay_pause_end[];

static int create_program_file(void) {
        static const char name[] = "mainstay-pause";
        int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);

        if (fd < 0 && errno == EINVAL) /* before Linux 6.3, all memfds are executable */
                fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
        return fd < 0 ? -errno : fd;
}

int pause_program_open(void) {
        cleanup_close int fd = create_program_file();
        int r;

        if (fd < 0)
                return fd;
        r = write_all(fd, mainstay_pause_start,
                      (size_t) (mainstay_pause_end - mainstay_pause_start));
        if (r < 0)
                return r;
        /* Unreadable for the user that executes it, so that the kernel makes the process
         * undumpable. */
        if (fchmod(fd, 0111) < 0 ||
            fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0)
                return -errno;
        return TAKE_FD(fd);
}
