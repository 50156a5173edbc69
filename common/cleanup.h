/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Cleanup attributes for variables, named as adjectives, which determine how the contents are freed
 * when a variable goes out of scope. */

#include "common/macros.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static inline void freep(void *pointer_to_pointer) {
        void *p;

        memcpy(&p, pointer_to_pointer, sizeof(p));
        free(p);
}

/* Closes the descriptor and keeps errno; returns -EBADF, for 'fd = close_fd(fd)'. close() is never
 * retried: on Linux the descriptor is closed regardless of the result. */
static inline int close_fd(int fd) {
        if (fd >= 0) {
                int saved = errno;
                (void) close(fd);
                errno = saved;
        }
        return -EBADF;
}

static inline void close_fdp(int *fd) {
        close_fd(*fd);
}

static inline void closedirp(DIR **dir) {
        if (*dir)
                closedir(*dir);
}

static inline void fclosep(FILE **file) {
        if (*file)
                fclose(*file);
}

#define cleanup_free     cleanup_with(freep)
#define cleanup_close    cleanup_with(close_fdp)
#define cleanup_closedir cleanup_with(closedirp)
#define cleanup_fclose   cleanup_with(fclosep)
