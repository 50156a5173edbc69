/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Renews the node's Lease once the Node exists, every 13 seconds, a third of the kubelet's
 * nodeLeaseDurationSeconds (40, lease-object.h; the kubelet renews it at a quarter); a failed
 * renewal is retried sooner. The Lease also shows whether the server has lost history: its
 * resourceVersion must not go back. */

#include "agent/kubeclient/kube-client.h"

#include <stdio.h>

enum {
        LEASE_PERIOD_SEC = 13,
        LEASE_JITTER_PERCENT = 4,
};

typedef struct KubeLeaseController KubeLeaseController;

typedef struct KubeLeaseControllerSpec {
        KubeClient *client;
        const char *node_name;
        /* 'error' is valid until the next call with NULL; 'status' is the HTTP status, 0 without a
         * response. */
        void (*on_error)(const char *error, unsigned status, void *userdata);
        /* The server's history is older than before, for example after a restored backup: later
         * reports are lost, which watches do not show. */
        void (*on_history_lost)(void *userdata);
        void *userdata;
} KubeLeaseControllerSpec;

/* Creates a controller that waits for a Node. Callbacks may be NULL; the name is copied. 0 or
 * -errno. */
int kube_lease_controller_new(sd_event *event, const KubeLeaseControllerSpec *spec,
                              KubeLeaseController **ret);
KubeLeaseController *kube_lease_controller_free(KubeLeaseController *controller);
DEFINE_CLEANUP(KubeLeaseController *, kube_lease_controller_free)

/* Sets the UID of the Lease's owner; the first one starts the renewals. NULL: the Node does not
 * exist, and no Lease is created. 0 or -ENOMEM. */
int kube_lease_controller_set_node(KubeLeaseController *controller, const char *uid);

/* Prints the Lease and its next renewal for `mainstay debug dump`. */
void kube_lease_controller_dump(const KubeLeaseController *controller, FILE *out);
