/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The data of an image in the store in addition to its layers:
 *
 *     signatures/<digest>.json   its signatures, to check them again without a network, and the
 *                                 index that some of them are of
 *     verified/<digest>.json     where it came from, by which index, which policies it has passed,
 *                                 and which pods may use it
 *
 * The agent reads the second one at each start of a container (agent/image/image-admission.c). */

#include "agent/image-helper/signature/sigstore-signature.h"
#include "agent/image-helper/store/store.h"

/* Puts the signatures before those that are stored; the last ones are omitted if they are too many
 * to be read again. 'index_digest' is that of the index that led to the image; NULL: none is
 * known. 0 or -errno. */
int signature_store_write(Store *store, const char *digest, const char *index_digest,
                          const SignatureSet *set, Error *reterr);

/* Reads them. 0; -ENOENT if nothing is stored, or it is damaged; -ENOMEM. */
int signature_store_read(const Store *store, const char *digest, SignatureSet *ret);

/* The index that led to the image, when it was last pulled by one. 0; -ENOENT if none is known;
 * -ENOMEM. */
int signature_store_read_index(const Store *store, const char *digest, char ret[DIGEST_SIZE]);

/* The additions to the record of an image. */
typedef struct VerifiedUpdate {
        const json_t *origin;     /* the archive that it came from; NULL: a registry */
        const char *index_digest; /* of the index that led to it; NULL: the one that is recorded */
        const char *fingerprint;  /* of a policy that it has passed; NULL: none */
        const char *repository;   /* that it was pulled from; NULL: it was not pulled */
        const char *secret_hash;  /* of the Secret with whose credentials; NULL: with the node's or
                                     none, which every pod may use */
} VerifiedUpdate;

/* 0 or -errno with a message. */
int verified_write(Store *store, const char *digest, const VerifiedUpdate *update, Error *reterr);
