/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Says every ten seconds that this node is alive, by its Lease, from when its Node is known. What
 * fails is tried again sooner; nobody waits for it. The Lease is also the canary: each answer tells
 * whether the server remembers what it said before. */

#include "agent/kubeclient/client.h"

enum {
        LEASE_PERIOD_SEC = 10,
        LEASE_JITTER_PERCENT = 4,
};

typedef struct KubeLeaseController KubeLeaseController;

typedef struct KubeLeaseControllerSpec {
        KubeClient *client;
        const char *node_name;
        /* 'error' stands until it is NULL; 'status' of HTTP, 0 without an answer. */
        void (*on_error)(const char *error, unsigned status, void *userdata);
        /* The server's history is an older one than it was, as after a backup was restored: what it
         * said since then it does not know any more, and no watch will tell. */
        void (*on_history_lost)(void *userdata);
        void *userdata;
} KubeLeaseControllerSpec;

/* Waits for a Node. Callbacks may be NULL; the name is copied. 0 or -errno. */
int kube_lease_controller_new(sd_event *event, const KubeLeaseControllerSpec *spec,
                              KubeLeaseController **ret);
KubeLeaseController *kube_lease_controller_free(KubeLeaseController *controller);
DEFINE_CLEANUP(KubeLeaseController *, kube_lease_controller_free)

/* The UID of the Node that it belongs to; the first one begins. NULL: there is none for now, and a
 * Lease that is not there is not made. 0 or -ENOMEM. */
int kube_lease_controller_set_node(KubeLeaseController *controller, const char *uid);

/* When it was last renewed, realtime; 0: never. */
uint64_t kube_lease_controller_renew_time(const KubeLeaseController *controller);
