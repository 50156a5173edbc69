/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The connection to the API server as the administrator sees it: whether it is reachable, which
 * permissions the node does not have (401, 403 and other refusals), and the last error of each
 * part. Each error is logged once, when it changes. This module sends no requests. */

#include "agent/kubeclient/kube-client.h"
#include "agent/model/node-status.h"

#include <stdio.h>

/* A permission that concerns the whole node. */
typedef enum ApiServerPermission {
        PERMISSION_NODE,
        PERMISSION_LEASE,
        PERMISSION_PODS,
        PERMISSION_SERVICES,
        PERMISSION_DAEMONSETS,
        PERMISSION_NAMESPACES,
        N_APISERVER_PERMISSIONS,
} ApiServerPermission;

typedef enum ConnectionErrorKind {
        CONNECTION_KUBECONFIG_ERROR, /* or an error of the TLS bootstrap */
        CONNECTION_CERTIFICATE_ERROR,
        CONNECTION_POD_WATCH_ERROR,
        N_CONNECTION_ERRORS,
} ConnectionErrorKind;

typedef struct ConnectionStatus ConnectionStatus;

typedef struct ConnectionStatusSpec {
        /* All zero while there is no client. */
        KubeClientState (*get_client_state)(void *userdata);
        /* connection_status_last_error() may have changed. */
        void (*on_changed)(void *userdata);
        /* A permission was refused or granted: the Node has a condition for it. */
        void (*on_permissions_changed)(void *userdata);
        void *userdata;
} ConnectionStatusSpec;

int connection_status_new(const ConnectionStatusSpec *spec, ConnectionStatus **ret);
ConnectionStatus *connection_status_free(ConnectionStatus *connection);

/* The result of a request: 'error' with its HTTP status, which is 0 without a response; NULL:
 * success. Returns true if the server is merely unreachable; that is logged here, once for all
 * callers. */
bool connection_status_is_unreachable(ConnectionStatus *connection, const char *error,
                                      unsigned status);

/* The result of a request that needs the permission. Only a refusal or a success changes the
 * permission. */
void connection_status_set_permission(ConnectionStatus *connection, ApiServerPermission permission,
                                      const char *error, unsigned status);

/* Stores an error; NULL: none. True if it has changed. */
bool connection_status_set_error(ConnectionStatus *connection, ConnectionErrorKind kind,
                                 const char *error);
const char *connection_status_error(const ConnectionStatus *connection, ConnectionErrorKind kind);

/* The most fundamental error, which causes the others, or NULL. */
const char *connection_status_last_error(const ConnectionStatus *connection);

/* The refused permissions, "the Lease: 403 Forbidden: …; pods: …", or NULL; the caller frees it. */
char *connection_status_print_refused(const ConnectionStatus *connection);

/* For `describe node`; strings are borrowed. The caller sets the members of other modules:
 * daemonsets_by, refused. */
void connection_status_describe(const ConnectionStatus *connection, NodeApiServerConnection *ret);

/* Prints errors and refused permissions for `mainstay debug dump`. */
void connection_status_dump(const ConnectionStatus *connection, FILE *out);
