/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the store keeps of an image beside its layers:
 *
 *     signatures/<digest>.json   its signatures, to check them again without a network
 *     verified/<digest>.json     where it came from, and which policies it has passed
 *
 * The agent reads the second one at each start of a container (agent/image/image-verified.h). */

#include "agent/image-helper/sigstore-signature.h"
#include "agent/image-helper/store.h"

/* Replaces the signatures. 'index_digest' is that of the index that led to the image; "" or NULL:
 * none. 0 or -errno. */
int signature_store_write(Store *store, const char *digest, const char *index_digest,
                          const SignatureSet *set, Error *reterr);

/* Reads them. 0; -ENOENT if nothing is stored, or it is damaged; -ENOMEM. */
int signature_store_read(const Store *store, const char *digest, char ret_index[DIGEST_SIZE],
                         SignatureSet *ret);

/* Records where the image came from ('origin', NULL: a registry) and adds the fingerprint of a
 * policy that it has passed (NULL: none). 0 or -errno. */
int verified_write(Store *store, const char *digest, const json_t *origin, const char *fingerprint,
                   Error *reterr);
