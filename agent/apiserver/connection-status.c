/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps reachability, permissions and errors of the connection to the API server. */

#include "agent/apiserver/connection-status.h"

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/dump.h"
#include "common/log.h"
#include "common/strv.h"

enum {
        UNREACHABLE_ERRORS_MAX = 8, /* number of different errors that are logged while it is
                                     * unreachable */
};

struct ConnectionStatus {
        ConnectionStatusSpec spec;
        char *errors[N_CONNECTION_ERRORS];
        char *refused[N_APISERVER_PERMISSIONS]; /* the error; NULL: granted, or unknown */
        uint64_t refused_since;                 /* realtime, of the last change */
        char **unreachable_errors;              /* logged since the server was last reached */
};

static const char *const permission_names[N_APISERVER_PERMISSIONS] = {
        [PERMISSION_NODE] = "the Node",
        [PERMISSION_LEASE] = "the Lease",
        [PERMISSION_PODS] = "pods",
        [PERMISSION_SERVICES] = "services",
        [PERMISSION_DAEMONSETS] = "DaemonSets",
        [PERMISSION_NAMESPACES] = "namespaces",
};

int connection_status_new(const ConnectionStatusSpec *spec, ConnectionStatus **ret) {
        ConnectionStatus *connection = calloc(1, sizeof(*connection));

        if (!connection)
                return -ENOMEM;
        connection->spec = *spec;
        *ret = connection;
        return 0;
}

ConnectionStatus *connection_status_free(ConnectionStatus *connection) {
        if (!connection)
                return NULL;
        for (ConnectionErrorKind kind = 0; kind < N_CONNECTION_ERRORS; kind++)
                free(connection->errors[kind]);
        for (ApiServerPermission i = 0; i < N_APISERVER_PERMISSIONS; i++)
                free(connection->refused[i]);
        strv_free(connection->unreachable_errors);
        free(connection);
        return NULL;
}

static KubeClientState client_state_of(const ConnectionStatus *connection) {
        return connection->spec.get_client_state(connection->spec.userdata);
}

/* ---- reachability ---- */

bool connection_status_is_unreachable(ConnectionStatus *connection, const char *error,
                                      unsigned status) {
        KubeClientState state = client_state_of(connection);

        if (!error || status != 0 || state.is_reached) {
                if (connection->unreachable_errors)
                        log_info("The API server %s is reachable again", strna(state.server));
                connection->unreachable_errors = strv_free(connection->unreachable_errors);
                return false;
        }
        if (!strv_contains(connection->unreachable_errors, error) &&
            strv_length(connection->unreachable_errors) < UNREACHABLE_ERRORS_MAX) {
                log_warning(
                        "Cannot reach the API server %s: %s; pods keep running, retrying within "
                        "a minute",
                        strna(state.server), error);
                (void) strv_append(&connection->unreachable_errors, error);
        }
        return true;
}

/* ---- permissions ---- */

/* Other 4xx do not concern permissions: not found, timeouts, conflicts, a resource version that is
 * gone, and too many requests. */
static bool is_permission_denied(unsigned status) {
        return status >= 400 && status < 500 && status != 404 && status != 408 && status != 409 &&
               status != 410 && status != 429;
}

void connection_status_set_permission(ConnectionStatus *connection, ApiServerPermission permission,
                                      const char *error, unsigned status) {
        char **refused = &connection->refused[permission];
        const char *refusal = error && is_permission_denied(status) ? error : NULL;

        if ((error && !refusal) || streq_ptr(*refused, refusal))
                return;
        free(*refused);
        *refused = refusal ? strdup(refusal) : NULL;
        connection->refused_since = now_realtime_usec();
        connection->spec.on_permissions_changed(connection->spec.userdata);
        connection->spec.on_changed(connection->spec.userdata);
}

char *connection_status_print_refused(const ConnectionStatus *connection) {
        const char *separator = "";
        cleanup_free char *text = NULL;
        size_t length;
        FILE *out = open_memstream(&text, &length);

        if (!out)
                return NULL;
        for (ApiServerPermission i = 0; i < N_APISERVER_PERMISSIONS; i++) {
                if (!connection->refused[i])
                        continue;
                fprintf(out, "%s%s: %s", separator, permission_names[i], connection->refused[i]);
                separator = "; ";
        }
        if (fclose(out) != 0 || !text[0])
                return NULL;
        return TAKE_PTR(text);
}

static const char *first_refused_permission(const ConnectionStatus *connection) {
        for (ApiServerPermission i = 0; i < N_APISERVER_PERMISSIONS; i++)
                if (connection->refused[i])
                        return connection->refused[i];
        return NULL;
}

/* ---- errors ---- */

bool connection_status_set_error(ConnectionStatus *connection, ConnectionErrorKind kind,
                                 const char *error) {
        char **last_error = &connection->errors[kind];

        if (streq_ptr(*last_error, error))
                return false;
        free(*last_error);
        *last_error = error ? strdup(error) : NULL;
        connection->spec.on_changed(connection->spec.userdata);
        return true;
}

const char *connection_status_error(const ConnectionStatus *connection, ConnectionErrorKind kind) {
        return connection->errors[kind];
}

/* Causes come before their effects: without a kubeconfig nothing is sent, and an unreachable server
 * explains every other error. */
const char *connection_status_last_error(const ConnectionStatus *connection) {
        const char *certificate_error = connection->errors[CONNECTION_CERTIFICATE_ERROR];
        KubeClientState state = client_state_of(connection);

        if (connection->errors[CONNECTION_KUBECONFIG_ERROR])
                return connection->errors[CONNECTION_KUBECONFIG_ERROR];
        if (!state.server)
                return certificate_error;
        if (!state.is_reached)
                return state.last_error;
        if (connection->errors[CONNECTION_POD_WATCH_ERROR])
                return connection->errors[CONNECTION_POD_WATCH_ERROR];
        if (state.credentials_error)
                return state.credentials_error;
        return certificate_error ? certificate_error : first_refused_permission(connection);
}

void connection_status_describe(const ConnectionStatus *connection, NodeApiServerConnection *ret) {
        KubeClientState state = client_state_of(connection);
        const char *last_error = state.last_error;

        if (!last_error)
                last_error = connection->errors[CONNECTION_KUBECONFIG_ERROR];
        if (!last_error)
                last_error = connection->errors[CONNECTION_CERTIFICATE_ERROR];
        if (!last_error)
                last_error = state.last_unreachable_error;
        *ret = (NodeApiServerConnection){
                .has_joined = true,
                .server = state.server,
                .is_reached = state.is_reached,
                .since = state.since,
                .last_error = last_error,
                .refused_since = connection->refused_since,
        };
}

void connection_status_dump(const ConnectionStatus *connection, FILE *out) {
        static const char *const kinds[N_CONNECTION_ERRORS] = {
                [CONNECTION_KUBECONFIG_ERROR] = "kubeconfig",
                [CONNECTION_CERTIFICATE_ERROR] = "certificate",
                [CONNECTION_POD_WATCH_ERROR] = "watch of pods",
        };

        for (ConnectionErrorKind kind = 0; kind < N_CONNECTION_ERRORS; kind++)
                if (connection->errors[kind])
                        dump_line(out, 1, "last error of the %s: %s", kinds[kind],
                                  connection->errors[kind]);
        for (ApiServerPermission i = 0; i < N_APISERVER_PERMISSIONS; i++)
                if (connection->refused[i])
                        dump_line(out, 1, "refused: %s: %s", permission_names[i],
                                  connection->refused[i]);
}
