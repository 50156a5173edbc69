/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The "signedIdentity" of containers-policy.json(5): the name for which a signature must have been
 * made. */

#include "common/error.h"

#include <jansson.h>

/* 'identity' is the object in the policy, which the agent has validated; 'image' the complete
 * reference that the pod names; 'reference' the signed one, NULL if the signature names no image.
 * 0; -EKEYREJECTED with a message; -ENOMEM.
 *
 * A signature without a name (cosign 3 signs only a digest) is accepted by matchRepository, and by
 * matchRepoDigestOrExact for an image that the pod names by its digest. */
int signed_identity_check(const json_t *identity, const char *image, const char *reference,
                          Error *reterr);
