/* SPDX-License-Identifier: Apache-2.0 */

/* /exec/<namespace>/<pod>/<container>?command=…&input=1&output=1&error=1&tty=1, and /attach/…
 * without a command, as in the kubelet: the connection is upgraded to a WebSocket, and the agent
 * gives its descriptor to the shim that runs the command or holds the container's streams. With
 * held=1 the command waits for a message of the client: see CHANNEL_START. Errors are reported
 * before the upgrade. */

#include "agent/http/handlers.h"
#include "agent/http/http-connection.h"
#include "agent/http/http-server.h"

#include "common/channels.h"
#include "common/cleanup.h"
#include "common/strv.h"
#include "common/websocket-handshake.h"

enum {
        EXEC_ARGUMENTS_MAX = 1024,
};

/* The request, until the connection is upgraded. */
typedef struct ExecUpgrade {
        HttpServer *server;
        HttpConnection *connection;
        char *path;           /* the names point into it */
        const char *names[3]; /* namespace, pod, container */
        char **command;
        bool attaches; /* attach to the container itself: no command */
        HttpExecOptions exec;
} ExecUpgrade;

static void exec_upgrade_free(void *userdata) {
        ExecUpgrade *upgrade = userdata;

        if (!upgrade)
                return;
        strv_free(upgrade->command);
        free(upgrade->path);
        free(upgrade);
}

static void exec_upgrade_freep(ExecUpgrade **upgrade) {
        exec_upgrade_free(*upgrade);
}

static enum MHD_Result on_exec_query_argument(void *userdata, enum MHD_ValueKind kind,
                                              const char *key, const char *value) {
        ExecUpgrade *upgrade = userdata;

        if (!streq(key, "command"))
                return MHD_YES;
        if (strv_length(upgrade->command) >= EXEC_ARGUMENTS_MAX)
                return MHD_NO;
        return strv_append(&upgrade->command, strna(value)) < 0 ? MHD_NO : MHD_YES;
}

static int parse_exec_request(ExecUpgrade *upgrade, struct MHD_Connection *http, Error *reterr) {
        int n = MHD_get_connection_values(http, MHD_GET_ARGUMENT_KIND, on_exec_query_argument,
                                          upgrade);

        upgrade->exec = (HttpExecOptions){
                .argv = upgrade->command,
                .has_input = http_query_flag(http, "input") || http_query_flag(http, "stdin"),
                .has_output = http_query_flag(http, "output") || http_query_flag(http, "stdout"),
                .has_error = http_query_flag(http, "error") || http_query_flag(http, "stderr"),
                .has_terminal = http_query_flag(http, "tty"),
                .is_held = http_query_flag(http, "held"),
        };
        if (!upgrade->attaches && (n < 0 || strv_length(upgrade->command) == 0))
                return error_setf(reterr, EINVAL, "you must specify at least one command");
        /* A terminal has only one output stream. */
        if (upgrade->exec.has_terminal)
                upgrade->exec.has_error = false;
        if (!upgrade->exec.has_input && !upgrade->exec.has_output && !upgrade->exec.has_error)
                return error_setf(reterr, EINVAL,
                                  "you must specify at least one of stdin, stdout, stderr, or tty");
        return 0;
}

/* Without a socket, the agent only checks the request. */
static int open_requested_session(const ExecUpgrade *upgrade, int socket_fd, Error *reterr) {
        const HttpServerHandlers *handlers = http_handlers_of(upgrade->server);

        return (upgrade->attaches ? handlers->attach : handlers->exec)(
                http_userdata_of(upgrade->server), upgrade->names[0], upgrade->names[1],
                upgrade->names[2], &upgrade->exec, socket_fd, reterr);
}

/* A client may specify an instance of the pod. */
static int check_requested_uid(const ExecUpgrade *upgrade, struct MHD_Connection *http,
                               Error *reterr) {
        const char *uid = http_query_parameter(http, "uid");

        if (!uid)
                return 0;
        return http_handlers_of(upgrade->server)
                ->check_pod(http_userdata_of(upgrade->server), upgrade->names[0], upgrade->names[1],
                            uid, reterr);
}

/* Parses the request, and has the agent check it. */
static int check_session_request(ExecUpgrade *upgrade, struct MHD_Connection *http, Error *reterr) {
        int r = parse_exec_request(upgrade, http, reterr);

        if (r < 0)
                return r;
        r = check_requested_uid(upgrade, http, reterr);
        if (r < 0)
                return r;
        return open_requested_session(upgrade, -EBADF, reterr);
}

static bool request_header_has(struct MHD_Connection *http, const char *name, const char *word) {
        const char *value = MHD_lookup_connection_value(http, MHD_HEADER_KIND, name);

        return value && strcasestr(value, word);
}

/* NULL if the client does not request a WebSocket with a known protocol. */
static const char *find_websocket_key(struct MHD_Connection *http) {
        const char *key = MHD_lookup_connection_value(http, MHD_HEADER_KIND, "Sec-WebSocket-Key");

        if (!request_header_has(http, MHD_HTTP_HEADER_UPGRADE, "websocket") ||
            !request_header_has(http, "Sec-WebSocket-Protocol", CHANNELS_PROTOCOL) ||
            !request_header_has(http, "Sec-WebSocket-Version", "13"))
                return NULL;
        return key && strlen(key) == 24 ? key : NULL;
}

static void on_exec_upgraded(void *userdata, struct MHD_Connection *http, void *request,
                             const char *extra, size_t extra_size, MHD_socket fd,
                             struct MHD_UpgradeResponseHandle *handle) {
        HttpConnection *connection = userdata;
        cleanup_with(exec_upgrade_freep) ExecUpgrade *upgrade =
                http_connection_take_upgrade(connection);
        HttpServer *server = upgrade->server;

        http_connection_clear_deadline(connection);
        /* A client that sends frames before the upgrade is refused, because they have already been
         * read. */
        if (extra_size == 0)
                (void) open_requested_session(upgrade, fd, NULL);
        (void) MHD_upgrade_action(handle, MHD_UPGRADE_ACTION_CLOSE);
        http_server_schedule_run(server);
}

static enum MHD_Result reply_exec_upgrade(struct MHD_Connection *http, const char *key,
                                          ExecUpgrade *upgrade_consume) {
        HttpConnection *connection = upgrade_consume->connection;
        struct MHD_Response *response =
                MHD_create_response_for_upgrade(on_exec_upgraded, connection);
        char accept[WEBSOCKET_ACCEPT_SIZE];
        enum MHD_Result result;

        http_connection_set_upgrade_take(connection, upgrade_consume, exec_upgrade_free);
        if (!response)
                return MHD_NO;
        (void) MHD_add_response_header(response, MHD_HTTP_HEADER_UPGRADE, "websocket");
        (void) MHD_add_response_header(response, "Sec-WebSocket-Accept",
                                       websocket_accept_key(key, accept));
        (void) MHD_add_response_header(response, "Sec-WebSocket-Protocol", CHANNELS_PROTOCOL);
        result = MHD_queue_response(http, MHD_HTTP_SWITCHING_PROTOCOLS, response);
        MHD_destroy_response(response);
        return result;
}

static enum MHD_Result handle_session_request(HttpServer *server, struct MHD_Connection *http,
                                              const char *rest, bool attaches) {
        cleanup_with(exec_upgrade_freep) ExecUpgrade *upgrade = calloc(1, sizeof(*upgrade));
        cleanup_error Error error = ERROR_NULL;
        const char *key = find_websocket_key(http);
        enum MHD_Result result;
        int r;

        if (!http_require_api_peer(server, http, &result))
                return result;
        if (!upgrade)
                return MHD_NO;
        upgrade->server = server;
        upgrade->attaches = attaches;
        upgrade->connection = http_connection_of(http);
        upgrade->path = strdup(rest);
        if (!upgrade->path)
                return MHD_NO;
        if (http_split_container_path(upgrade->path, upgrade->names) < 0)
                return http_reply_error(http, MHD_HTTP_NOT_FOUND,
                                        "the path must be /%s/<namespace>/<pod>/<container>",
                                        attaches ? "attach" : "exec");
        r = check_session_request(upgrade, http, &error);
        if (r < 0)
                return http_reply_error(http, http_status_of_error(r), "%s",
                                        error_message(&error, r));
        if (!key)
                return http_reply_error(http, MHD_HTTP_UPGRADE_REQUIRED,
                                        "the request must upgrade to a WebSocket with the "
                                        "protocol " CHANNELS_PROTOCOL);
        return reply_exec_upgrade(http, key, TAKE_PTR(upgrade));
}

enum MHD_Result http_handle_exec(HttpServer *server, struct MHD_Connection *http,
                                 const char *rest) {
        return handle_session_request(server, http, rest, /* attaches= */ false);
}

enum MHD_Result http_handle_attach(HttpServer *server, struct MHD_Connection *http,
                                   const char *rest) {
        return handle_session_request(server, http, rest, /* attaches= */ true);
}
