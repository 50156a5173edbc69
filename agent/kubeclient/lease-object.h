/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The Lease by which a node says that it is alive: coordination.k8s.io/v1, as the kubelet's. Pure.
 */

#include <stdint.h>

enum {
        LEASE_SECONDS = 40, /* after which others think that we are gone */
};

#define LEASE_NAMESPACE "kube-node-lease"

/* The body that creates it. 'now' is realtime. The caller frees it; NULL where memory ends. */
char *lease_object_new(const char *node_name, const char *node_uid, uint64_t now);

/* The body that renews what the server has. Its time is later than what it says, whatever our clock
 * believes: others only look whether it moves on. 0 with memory that the caller frees; -EBADMSG for
 * what is no Lease, -ENOMEM. */
int lease_object_renew(const char *known, const char *node_name, uint64_t now, char **ret_body);

/* The resourceVersion as a number, which only ever grows; 0 where there is none. */
uint64_t lease_object_version(const char *json);
