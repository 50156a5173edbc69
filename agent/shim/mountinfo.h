/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The mounts of this process's mount namespace, from /proc/self/mountinfo. */

#include "common/macros.h"

typedef struct MountInfo {
        char *data;
        char *cursor;
} MountInfo;

typedef struct MountPoint {
        const char *path; /* valid until the next call */
        bool shared;
} MountPoint;

/* 0 or -errno. */
int mountinfo_load(MountInfo *ret);

/* The next mount; false after the last one. */
bool mountinfo_next(MountInfo *info, MountPoint *ret);
void mountinfo_done(MountInfo *info);
#define cleanup_mountinfo cleanup_with(mountinfo_done)

/* True if 'path' is 'root' or below it. Both are absolute, without "." and "..". */
bool path_is_beneath(const char *path, const char *root);
