/* SPDX-License-Identifier: Apache-2.0 */
#include "common/file-stamp.h"

static int64_t timespec_to_nsec(const struct timespec *time) {
        return time->tv_sec * INT64_C(1000000000) + time->tv_nsec;
}

FileStamp file_stamp_of(const struct stat *st) {
        return (FileStamp){
                .device = st->st_dev,
                .inode = st->st_ino,
                .size = st->st_size,
                .modified_nsec = timespec_to_nsec(&st->st_mtim),
                .changed_nsec = timespec_to_nsec(&st->st_ctim),
        };
}

bool file_stamps_match(const FileStamp *a, const FileStamp *b) {
        return a->device == b->device && a->inode == b->inode && a->size == b->size &&
               a->modified_nsec == b->modified_nsec && a->changed_nsec == b->changed_nsec;
}
