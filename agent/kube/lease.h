/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Says every ten seconds that this node is alive, by its Lease, from when its Node is known. What
 * fails is tried again sooner; nobody waits for it. The Lease is also the canary: each answer tells
 * whether the server remembers what it said before. */

#include "agent/kube/client.h"

enum {
        LEASE_PERIOD_SEC = 10,
        LEASE_JITTER_PERCENT = 4,
};

typedef struct KubeLease KubeLease;

typedef struct KubeLeaseSpec {
        KubeClient *client;
        const char *node_name;
        /* 'error' stands until it is NULL; 'status' of HTTP, 0 without an answer. */
        void (*on_trouble)(const char *error, unsigned status, void *userdata);
        /* The server's history is an older one than it was, as after a backup was restored: what it
         * said since then it does not know any more, and no watch will tell. */
        void (*on_history_lost)(void *userdata);
        void *userdata;
} KubeLeaseSpec;

/* Waits for a Node. Callbacks may be NULL; the name is copied. 0 or -errno. */
int kube_lease_new(sd_event *event, const KubeLeaseSpec *spec, KubeLease **ret);
KubeLease *kube_lease_free(KubeLease *lease);
DEFINE_CLEANUP(KubeLease *, kube_lease_free)

/* The UID of the Node that it belongs to; the first one begins. NULL: there is none for now, and a
 * Lease that is not there is not made. 0 or -ENOMEM. */
int kube_lease_set_node(KubeLease *lease, const char *uid);

/* When it was last renewed, realtime; 0: never. */
uint64_t kube_lease_renewed(const KubeLease *lease);
