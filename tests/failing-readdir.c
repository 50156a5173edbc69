/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/failing-readdir.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>

int readdir_calls_left = -1;
bool readdir_has_failed;

#if defined(_FILE_OFFSET_BITS) && _FILE_OFFSET_BITS == 64 && !defined(__LP64__)
#define READDIR "readdir64"
#else
#define READDIR "readdir"
#endif

/* The function that the linker calls readdir. */
struct dirent *failing_readdir(DIR *dir) __asm__(READDIR);

struct dirent *failing_readdir(DIR *dir) {
        static struct dirent *(*next)(DIR *);

        if (!next)
                *(void **) &next = dlsym(RTLD_NEXT, READDIR);
        if (readdir_calls_left > 0)
                readdir_calls_left--;
        else if (readdir_calls_left == 0) {
                readdir_has_failed = true;
                errno = EIO;
                return NULL;
        }
        return next(dir);
}
