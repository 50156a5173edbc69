/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The kubelet's API over TLS. Connections are accepted once the agent has sent its settings, and
 * the loop ends after some time without a connection. */

#include "common/error.h"

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

typedef struct NodeApi NodeApi;

typedef struct NodeApiConfig {
        sd_event *event;
        int listen_fd_consume;
        bool is_by_systemd;       /* its address is determined by a systemd unit */
        const char *agent_socket; /* the agent's local socket */
        uint64_t idle_usec;       /* time without a connection after which the loop ends; 0:
                                   * never */
} NodeApiConfig;

/* 0 or -errno with a message. */
int node_api_new(const NodeApiConfig *config, NodeApi **ret, Error *reterr);
NodeApi *node_api_free(NodeApi *server);

/* Closes the listening socket; the loop ends when the last client has disconnected. */
void node_api_stop_accepting(NodeApi *server);
DEFINE_CLEANUP(NodeApi *, node_api_free)
