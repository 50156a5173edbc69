/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The files of a volume that the agent writes, and their atomic exchange while containers read
 * them: all at once, as in the kubelet.
 *
 *     ..2026_11_20_14_18_27.004711-<hash>/     the files, as they are now
 *     ..data -> ..2026_11_20_14_18_27.004711-<hash>
 *     key -> ..data/key
 *
 * A new set is written next to the old one; "..data" is renamed to it; the old one is removed. */

#include "agent/model/pod.h"
#include "common/error.h"

#include <sys/types.h>

typedef struct FileProjection {
        char *path;
        char *bytes;
        size_t length;
        mode_t mode;
        size_t order; /* if two files have the same path, the later one is used */
} FileProjection;

typedef struct VolumePayload {
        LIST_OF(FileProjection) files;
        char **hidden; /* names in the volume that are mount points: no links are created for
                        * them */
        int64_t group; /* group that owns the files and may read them; < 0: root */
} VolumePayload;

/* Adds a copy. If two files have the same path, the later one is used. 0 or -ENOMEM. */
int volume_payload_add(VolumePayload *payload, const char *path, const void *bytes, size_t length,
                       mode_t mode);
void volume_payload_done(VolumePayload *payload);

/* Makes the directory contain exactly these files. 'rewrite': do not assume that existing content
 * matches the hash in its name, for example after a power failure. 1 if files were written, 0 if
 * they were up to date, or -errno. */
int atomic_writer_write(int dir_fd, VolumePayload *payload, bool rewrite);
