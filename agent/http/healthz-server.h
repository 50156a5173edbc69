/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The kubelet's /healthz over plain HTTP (healthzBindAddress, healthzPort), with which kubeadm
 * checks whether the agent runs. Any local program can connect, so nothing else is served here. */

#include "agent/model/config.h"
#include "common/macros.h"

#include <systemd/sd-event.h>

typedef struct HealthzServer HealthzServer;

/* NULL if no port is configured, if it is 0, or if the port cannot be served, which is logged: the
 * agent starts nevertheless, because pods do not depend on it. */
HealthzServer *healthz_server_start(sd_event *event, const Config *config);
HealthzServer *healthz_server_free(HealthzServer *server);
DEFINE_CLEANUP(HealthzServer *, healthz_server_free)
