/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Makes a delta between two images, in the format of image-delta.h. */

#include "agent/image-helper/store/store.h"

/* An image of the store by its name or digest; or the only image of an archive, by its path, which
 * starts with a slash or a dot. */
typedef struct DeltaInput {
        const char *name;
        int fd; /* of the archive, or -EBADF; borrowed */
} DeltaInput;

/* A delta as blobs. */
typedef struct DeltaArtifact {
        char *manifest; /* its text; the caller frees it */
        json_t *blobs;  /* [{"digest": …, "size": …}, …] are added: those that differ from the
                           image's own */
        char base[DIGEST_SIZE]; /* of the old image's configuration */
} DeltaArtifact;

/* Has each blob of the delta taken by a function: bytes of a file, from its start. Likewise. */
int delta_make_blobs(Store *store, const DeltaInput *old, const DeltaInput *new,
                     int (*take)(void *userdata, const char *digest, uint64_t size, int fd,
                                 Error *reterr),
                     void *userdata, DeltaArtifact *artifact, Error *reterr);

/* Writes the delta as an OCI layout in a tar to 'fd'. Unnamed files in the store take the layers of
 * both images, decompressed. 0, or -errno with a message. */
int delta_make(Store *store, const DeltaInput *old, const DeltaInput *new, int fd, Error *reterr);
