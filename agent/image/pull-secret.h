/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* imagePullSecrets as passed to mainstay-image, which parses them because they were written by
 * users of the cluster. */

#include "common/json-text.h"

typedef struct PullSecret {
        char *name;     /* name of the Secret */
        char *document; /* its value; wiped when freed */
        bool has_auths; /* it is a .dockerconfigjson, not a .dockercfg */
} PullSecret;

typedef struct PullSecretList {
        PullSecret *items;
        size_t n;
} PullSecretList;

/* Appends copies. 0 or -ENOMEM. */
int pull_secret_list_add(PullSecretList *list, const PullSecret *secret);
int pull_secret_list_extend(PullSecretList *list, const PullSecretList *from);

/* Whether both have the same values, regardless of their names. */
bool pull_secret_list_equal(const PullSecretList *a, const PullSecretList *b);

void pull_secret_list_done(PullSecretList *list);

/* For mainstay-image: the list of values, and the list of their hashes in the form in which it
 * records them. The caller frees the lists; NULL: out of memory. */
json_t *pull_secret_list_to_json(const PullSecretList *list);
json_t *pull_secret_list_hashes(const PullSecretList *list);
