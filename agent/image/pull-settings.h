/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The settings of mainstay-image for a pull: imagePullSecrets, mirrors, proxies, and the
 * requirements for the image's signatures. */

#include "agent/image/pull-secret.h"
#include "agent/image/signature-policy.h"
#include "agent/model/config.h"

typedef struct PullDemand {
        json_t *document; /* from image_policy_demand(); NULL: any image is accepted */
        const ImageOrigin *origin;
        json_t *source;  /* source of the signed index that contains the image; NULL: a registry */
        json_t *access;  /* from image_access_to_json(); NULL: not a pull */
        bool is_offline; /* do not query registries for signatures */
} PullDemand;

/* The source for mainstay-image: the origin and the directory of the index. NULL: not configured,
 * or out of memory. */
json_t *pull_source_to_json(const MainstayConfig *config, const char *fleet, const char *directory);

/* A memory file with the settings of a pull, because they contain passwords. 'config' may be NULL:
 * defaults. Returns a descriptor that the caller closes, or -errno.
 */
int pull_settings_open(const MainstayConfig *config, const char *reference,
                       const PullSecretList *secrets, const PullDemand *demand);
