/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The attributes of a request that the API server authorizes: a verb and one or two subresources of
 * the node, as in the kubelet. Pure. */

#include "common/macros.h"

enum {
        SUBRESOURCES_MAX = 2
};

typedef struct RequestAttributes {
        const char *verb;                           /* "" for a method without a verb */
        const char *subresources[SUBRESOURCES_MAX]; /* permission for one of them suffices */
        size_t n_subresources;
} RequestAttributes;

/* An upgrade to a session requires "create", regardless of its method: a WebSocket handshake is a
 * GET, and permission to get a node's proxy must not permit commands. Paths with their own
 * subresource are never upgraded. */
RequestAttributes request_attributes(const char *method, const char *path, bool is_upgrade);

/* "Forbidden (user=…, verb=…, resource=nodes, subresource(s)=[…])"; the caller frees it. NULL: out
 * of memory. */
char *format_forbidden(const char *user, const RequestAttributes *attributes);
