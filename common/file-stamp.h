/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The stat() data of a file, to detect without reading it whether it is still the file that was
 * read. A file that is written twice within the resolution of the kernel's clock keeps the same
 * stamp. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

typedef struct FileStamp {
        dev_t device;
        ino_t inode; /* 0: no file */
        off_t size;
        int64_t modified_nsec; /* since 1970 */
        int64_t changed_nsec;  /* of the inode (st_ctim) */
} FileStamp;

FileStamp file_stamp_of(const struct stat *st);

/* True if both are stamps of the same, unchanged file. */
bool file_stamps_match(const FileStamp *a, const FileStamp *b);
