/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a request asks of the API server's authorization: a verb and one or two subresources of the
 * node, as the kubelet has them. Pure. */

#include "common/macros.h"

enum {
        SUBRESOURCES_MAX = 2
};

typedef struct RequestAttributes {
        const char *verb;                           /* "" for a method without one */
        const char *subresources[SUBRESOURCES_MAX]; /* one that is granted suffices */
        size_t n_subresources;
} RequestAttributes;

/* An upgrade to a session asks for "create", whatever its method: a WebSocket is a GET, and
 * the permission to get a node's proxy must not permit commands. Paths with a subresource of their
 * own are never upgraded. */
RequestAttributes request_attributes(const char *method, const char *path, bool is_upgrade);

/* "Forbidden (user=…, verb=…, resource=nodes, subresource(s)=[…])"; the caller frees it. NULL: out
 * of memory. */
char *format_forbidden(const char *user, const RequestAttributes *attributes);
