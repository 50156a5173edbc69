/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A directory for unpacked files, next to a file that must not change. Both are removed at exit.
 */

#include "tests/fuzz/fuzz.h"

#include "common/cleanup.h"
#include "common/file.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static char canary_directory[] = "/tmp/mainstay-fuzz-XXXXXX";
static struct stat canary_before;

static void remove_canary(void) {
        (void) remove_tree_at(AT_FDCWD, canary_directory);
}

/* Returns the directory, which the first call creates. */
static inline const char *lay_canary(void) {
        static bool is_laid;
        cleanup_free char *path = NULL;
        cleanup_close int fd = -EBADF;

        if (is_laid)
                return canary_directory;
        assert(mkdtemp(canary_directory) && atexit(remove_canary) == 0);
        path = path_join(canary_directory, "canary");
        assert(path);
        fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        assert(fd >= 0 && write_all(fd, "untouched", 9) >= 0 && fstat(fd, &canary_before) >= 0);
        is_laid = true;
        return canary_directory;
}

/* The file is unchanged, and only files with these names are next to it. */
static inline void expect_canary(const char *first, const char *second) {
        cleanup_closedir DIR *dir = opendir(canary_directory);
        struct dirent *entry;
        struct stat st;

        assert(dir && fstatat(dirfd(dir), "canary", &st, AT_SYMLINK_NOFOLLOW) >= 0);
        assert(st.st_ino == canary_before.st_ino && st.st_mode == canary_before.st_mode &&
               st.st_uid == canary_before.st_uid && st.st_size == canary_before.st_size &&
               st.st_nlink == canary_before.st_nlink &&
               st.st_mtim.tv_sec == canary_before.st_mtim.tv_sec &&
               st.st_mtim.tv_nsec == canary_before.st_mtim.tv_nsec);
        while ((entry = readdir(dir)))
                assert(streq(entry->d_name, ".") || streq(entry->d_name, "..") ||
                       streq(entry->d_name, "canary") || streq(entry->d_name, first) ||
                       streq(entry->d_name, second));
}

/* A file in memory, at its start. */
static inline int open_fuzz_file(const uint8_t *data, size_t size) {
        int fd = memfd_create("input", MFD_CLOEXEC);

        assert(fd >= 0 && write_all(fd, (const char *) data, size) >= 0 &&
               lseek(fd, 0, SEEK_SET) == 0);
        return fd;
}
