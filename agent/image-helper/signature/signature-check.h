/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Compares the signatures of an image with the requirements of the policy. The agent chooses the
 * applicable rules of the policy, and sends them with their keys (agent/image/signature-policy.h):
 *
 *     {"fingerprint": "…", "reference": "example.com/app:1", "requirements":
 *      [{"rule": "…", "keys": [{"name": "/etc/app.pub", "pem": "…"}], "identity": {"type": "…"}}]}
 */

#include "agent/image-helper/signature/sigstore-signature.h"

#include <jansson.h>

/* Whether an image with these digests (of its manifest and of an index that leads to it, terminated
 * by NULL) meets every requirement. 0; -EKEYREJECTED with a message that names the rule;
 * -ENOMEM. */
int signatures_check(const json_t *policy, const char *const *digests, const SignatureSet *set,
                     Error *reterr);
