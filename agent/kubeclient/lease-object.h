/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The Lease of a node as JSON (coordination.k8s.io/v1), as in the kubelet. Pure. */

#include <stdint.h>

enum {
        LEASE_SECONDS = 40, /* time after which the node is considered lost */
};

#define LEASE_NAMESPACE "kube-node-lease"

/* The body that creates it. 'now' is realtime. The caller frees it; NULL: out of memory. */
char *lease_object_new(const char *node_name, const char *node_uid, uint64_t now);

/* The body that renews the server's object. The new time is later than the server's, regardless of
 * this node's clock, because readers check only that it advances. 0, and the caller frees the text;
 * -EBADMSG if 'known' is not a Lease; -ENOMEM. */
int lease_object_renew(const char *known, const char *node_name, uint64_t now, char **ret_body);

/* The resourceVersion as a number, which only increases; 0 if it is absent. */
uint64_t lease_object_version(const char *json);
