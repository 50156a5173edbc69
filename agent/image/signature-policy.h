/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The signature policy of the node, containers-policy.json(5): determines which images may run, and
 * with which keys they must be signed. The policy belongs to the administrator; signatures are
 * untrusted and are read only by mainstay-image. */

#include "common/error.h"

#include <jansson.h>

/* Reads a policy strictly: an unknown, missing or duplicate member makes it invalid. 0, or -EINVAL
 * with a message that names the place; the caller frees the document. Pure. */
int signature_policy_parse(const char *text, size_t length, json_t **ret, Error *reterr);

/* The origin of an image. */
typedef struct ImageOrigin {
        const char *transport; /* "docker", "docker-archive", "oci-archive" */
        const char *path;      /* path of the archive; NULL for "docker" */
        const char *fleet;     /* fleet whose signed index names it; NULL: none */
} ImageOrigin;

/* The list of requirements that applies to an image, which is the most specific one: for its
 * reference, a prefix of the reference, a domain ("*.example.com"), its transport, or the default.
 * 'ret_place' is the name of the list in messages, freed by the caller. 0 or -ENOMEM. Pure. */
int signature_policy_find(const json_t *policy, const ImageOrigin *origin, const char *reference,
                          const json_t **ret_requirements, char **ret_place);

/* The scopes for other names of an image's registry with which a client reaches the same server:
 * with and without the port of plain HTTP ("localhost:80"), and "localhost", "127.0.0.1" and
 * "[::1]" for a loopback address. Their requirements must be met as well. Returns an object of
 * lists by their names in messages, which the caller frees. 0 or -ENOMEM. Pure. */
int signature_policy_find_aliases(const json_t *policy, const ImageOrigin *origin,
                                  const char *reference, json_t **ret);
