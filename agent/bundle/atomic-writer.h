/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The files of a volume that we write, and the way they are exchanged under the eyes of their
 * readers: all at once, as the kubelet does it.
 *
 *     ..2026_11_20_14_18_27.004711-<hash>/     the files, as they are now
 *     ..data -> ..2026_11_20_14_18_27.004711-<hash>
 *     key -> ..data/key
 *
 * A new set is written beside the old one; "..data" is renamed to it; the old one is removed. */

#include "agent/model/pod.h"
#include "common/error.h"

#include <sys/types.h>

typedef struct FileProjection {
        char *path;
        char *bytes;
        size_t length;
        mode_t mode;
        size_t order; /* of two with the same path the later one is meant */
} FileProjection;

typedef struct VolumePayload {
        LIST_OF(FileProjection) files;
        int64_t group; /* whose the files are, readable for it; < 0: root's */
} VolumePayload;

/* Adds a copy; of what has the same path the last is meant. 0 or -ENOMEM. */
int volume_payload_add(VolumePayload *payload, const char *path, const void *bytes, size_t length,
                       mode_t mode);
void volume_payload_done(VolumePayload *payload);

/* Makes the directory hold just these files; 'anew' where what lies there is not trusted to be what
 * its name says, as after a power cut. 1 where it was written, 0 where it held them, or -errno. */
int atomic_writer_write(int dir_fd, VolumePayload *payload, bool rewrite);
