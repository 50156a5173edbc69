/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The kubelet's /healthz over plain HTTP (healthzBindAddress, healthzPort), which kubeadm asks
 * whether the agent runs. Any local program can connect: nothing else is served here. */

#include "common/error.h"
#include "common/macros.h"

#include <stdint.h>
#include <systemd/sd-event.h>

typedef struct HealthzServer HealthzServer;

/* 'address' is an IPv4 or IPv6 address. 0, or -errno with a message. */
int healthz_server_new(sd_event *event, const char *address, uint16_t port, HealthzServer **ret,
                       Error *reterr);
HealthzServer *healthz_server_free(HealthzServer *server);
DEFINE_CLEANUP(HealthzServer *, healthz_server_free)
