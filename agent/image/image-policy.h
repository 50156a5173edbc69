/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The policy file, and its requirements for an image. The file is read again when it has changed;
 * the keys that it refers to are read each time. */

#include "agent/image/signature-policy.h"

#include "common/file-stamp.h"

typedef struct ImagePolicy {
        const char *path; /* borrowed */
        bool is_required; /* true: a missing file is an error; false: it permits all images */
        bool is_read;
        FileStamp stamp;  /* stamp of the file when it was read */
        json_t *document; /* NULL: invalid */
        Error error;      /* the reason */
} ImagePolicy;

void image_policy_done(ImagePolicy *policy);

/* The requirements for an image with the name that a pod uses. 0 with a document for mainstay-image
 * (image-helper/signature/signature-check.h), which the caller frees, or with NULL if any image is
 * accepted; -EKEYREJECTED with a message, "SignatureValidationFailed: …", if no image is accepted,
 * or the policy cannot be read; -ENOMEM. */
int image_policy_demand(ImagePolicy *policy, const ImageOrigin *origin, const char *reference,
                        json_t **ret, Error *reterr);
