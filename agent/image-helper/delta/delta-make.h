/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Makes a delta between two images, in the format of image-delta.h. */

#include "agent/image-helper/store/store.h"

/* An image in the store by its name or digest; or the only image of an archive, by the path of the
 * archive, which starts with a slash or a dot. */
typedef struct DeltaInput {
        const char *name;
        int fd; /* the archive, or -EBADF; borrowed */
} DeltaInput;

/* A delta as blobs. */
typedef struct DeltaArtifact {
        char *manifest; /* the manifest's text; the caller frees it */
        json_t *blobs; /* receives [{"digest": …, "size": …}, …]: the blobs that are not blobs of
                        * the image itself */
        char base[DIGEST_SIZE]; /* digest of the old image's configuration */
} DeltaArtifact;

/* Calls a function for each blob of the delta, with a file positioned at its start. Returns the
 * same as delta_make(). */
int delta_make_blobs(Store *store, const DeltaInput *old, const DeltaInput *new,
                     int (*take)(void *userdata, const char *digest, uint64_t size, int fd,
                                 Error *reterr),
                     void *userdata, DeltaArtifact *artifact, Error *reterr);

/* Writes the delta to 'fd' as an OCI layout in a tar. Unnamed files in the store hold the
 * decompressed layers of both images. 0, or -errno with a message. */
int delta_make(Store *store, const DeltaInput *old, const DeltaInput *new, int fd, Error *reterr);
