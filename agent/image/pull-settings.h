/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The settings of mainstay-image for a pull: imagePullSecrets, mirrors, proxies, and the
 * requirements for the signatures of the image. */

#include "agent/image/pull-secret.h"
#include "agent/image/signature-policy.h"
#include "agent/model/config.h"

typedef struct PullDemand {
        json_t *document; /* of image_policy_demand(); NULL: any image is accepted */
        const ImageOrigin *origin;
        json_t *source;  /* of a signed index that has the image; NULL: a registry has it */
        json_t *access;  /* of image_access_to_json(); NULL: nothing is pulled */
        bool is_offline; /* no registry is queried for signatures */
} PullDemand;

/* The source for mainstay-image: where the index is from, and the directory in which it lies. NULL:
 * none is configured, or no memory. */
json_t *pull_source_to_json(const MainstayConfig *config, const char *fleet, const char *directory);

/* A memory file with the settings of a pull, because they contain passwords. 'config' may be NULL:
 * defaults; A descriptor that the caller closes, or -errno.
 */
int pull_settings_open(const MainstayConfig *config, const char *reference,
                       const PullSecretList *secrets, const PullDemand *demand);
