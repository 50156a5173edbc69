/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The stored data of an image in addition to its layers:
 *
 *     signatures/<digest>.json   the image's signatures, to check them again offline, and the
 *                                 index to which some of them belong
 *     verified/<digest>.json     the image's origin and index, the policies that it has passed,
 *                                 and the pods that may use it
 *
 * The agent reads the second file at each start of a container (agent/image/image-admission.c). */

#include "agent/image-helper/signature/sigstore-signature.h"
#include "agent/image-helper/store/store.h"

/* Inserts the signatures before the stored ones; the last ones are dropped if there would be too
 * many to read back. 'index_digest' is the digest of the index that led to the image; NULL: no
 * index is known. 0 or -errno. */
int signature_store_write(Store *store, const char *digest, const char *index_digest,
                          const SignatureSet *set, Error *reterr);

/* Reads the signatures. 0; -ENOENT if nothing is stored, or it is damaged; -ENOMEM. */
int signature_store_read(const Store *store, const char *digest, SignatureSet *ret);

/* The digest of the index through which the image was last pulled. 0; -ENOENT if none is known;
 * -ENOMEM. */
int signature_store_read_index(const Store *store, const char *digest, char ret[DIGEST_SIZE]);

/* The updates of an image's record. */
typedef struct VerifiedUpdate {
        const json_t *origin;     /* the archive that contained it; NULL: a registry */
        const char *index_digest; /* of the index that led to it; NULL: keep the recorded one */
        const char *fingerprint;  /* of a policy that it has passed; NULL: none */
        const char *repository;   /* from which it was pulled; NULL: it was not pulled */
        const char *secret_hash;  /* of the Secret whose credentials were used; NULL: the node's
                                     credentials or none, so that every pod may use the image */
} VerifiedUpdate;

/* 0 or -errno with a message. */
int verified_write(Store *store, const char *digest, const VerifiedUpdate *update, Error *reterr);
