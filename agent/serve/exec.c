/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/serve/serve-private.h"

#include "common/channels.h"
#include "common/cleanup.h"
#include "common/handshake.h"
#include "common/strv.h"

/* /exec/<namespace>/<pod>/<container>?command=…&input=1&output=1&error=1&tty=1, as the kubelet has
 * it: the connection becomes a WebSocket, and its descriptor goes to whoever runs the command.
 * What is wrong is said before; afterwards we have nothing to do with it. */

enum {
        ARGUMENTS_MAX = 1024,
};

/* What was asked for, kept until the connection is ours to give away. */
struct Upgrade {
        Serve *serve;
        Connection *connection;
        char *path;           /* what the names point into */
        const char *names[3]; /* namespace, pod, container */
        char **command;
        ServeExec exec;
};

Upgrade *upgrade_free(Upgrade *upgrade) {
        if (!upgrade)
                return NULL;
        strv_free(upgrade->command);
        free(upgrade->path);
        free(upgrade);
        return NULL;
}

static void upgrade_freep(Upgrade **upgrade) {
        upgrade_free(*upgrade);
}

static enum MHD_Result on_argument(void *userdata, enum MHD_ValueKind kind, const char *key,
                                   const char *value) {
        Upgrade *upgrade = userdata;

        if (!streq(key, "command"))
                return MHD_YES;
        if (strv_length(upgrade->command) >= ARGUMENTS_MAX)
                return MHD_NO;
        return strv_append(&upgrade->command, strna(value)) < 0 ? MHD_NO : MHD_YES;
}

static int read_request(Upgrade *upgrade, struct MHD_Connection *http, Error *reterr) {
        int n = MHD_get_connection_values(http, MHD_GET_ARGUMENT_KIND, on_argument, upgrade);

        upgrade->exec = (ServeExec){
                .argv = upgrade->command,
                .has_input = serve_flag(http, "input") || serve_flag(http, "stdin"),
                .has_output = serve_flag(http, "output") || serve_flag(http, "stdout"),
                .has_error = serve_flag(http, "error") || serve_flag(http, "stderr"),
                .has_terminal = serve_flag(http, "tty"),
        };
        if (n < 0 || strv_length(upgrade->command) == 0)
                return error_setf(reterr, EINVAL, "you must specify at least one command");
        /* A terminal has one output. */
        if (upgrade->exec.has_terminal)
                upgrade->exec.has_error = false;
        if (!upgrade->exec.has_input && !upgrade->exec.has_output && !upgrade->exec.has_error)
                return error_setf(reterr, EINVAL,
                                  "you must specify at least one of stdin, stdout, stderr, or tty");
        return 0;
}

static bool header_has(struct MHD_Connection *http, const char *name, const char *word) {
        const char *value = MHD_lookup_connection_value(http, MHD_HEADER_KIND, name);

        return value && strcasestr(value, word);
}

/* NULL where the client does not want a WebSocket that we speak. */
static const char *find_key(struct MHD_Connection *http) {
        const char *key = MHD_lookup_connection_value(http, MHD_HEADER_KIND, "Sec-WebSocket-Key");

        if (!header_has(http, MHD_HTTP_HEADER_UPGRADE, "websocket") ||
            !header_has(http, "Sec-WebSocket-Protocol", CHANNELS_PROTOCOL) ||
            !header_has(http, "Sec-WebSocket-Version", "13"))
                return NULL;
        return key && strlen(key) == 24 ? key : NULL;
}

static void on_upgrade(void *userdata, struct MHD_Connection *http, void *request,
                       const char *extra, size_t extra_size, MHD_socket fd,
                       struct MHD_UpgradeResponseHandle *handle) {
        Connection *connection = userdata;
        cleanup_with(upgrade_freep) Upgrade *upgrade = TAKE_PTR(connection->upgrade);
        Serve *serve = upgrade->serve;

        connection_clear_deadline(connection);
        /* A client that speaks before it has heard us is none that we can go on with. */
        if (extra_size == 0)
                (void) serve->handlers->exec(serve->userdata, upgrade->names[0], upgrade->names[1],
                                             upgrade->names[2], &upgrade->exec, fd, NULL);
        (void) MHD_upgrade_action(handle, MHD_UPGRADE_ACTION_CLOSE);
        serve_schedule(serve);
}

static enum MHD_Result answer(struct MHD_Connection *http, const char *key,
                              Upgrade *upgrade_consume) {
        Connection *connection = upgrade_consume->connection;
        struct MHD_Response *response = MHD_create_response_for_upgrade(on_upgrade, connection);
        char accept[HANDSHAKE_SIZE];
        enum MHD_Result result;

        upgrade_free(connection->upgrade);
        connection->upgrade = upgrade_consume;
        if (!response)
                return MHD_NO;
        (void) MHD_add_response_header(response, MHD_HTTP_HEADER_UPGRADE, "websocket");
        (void) MHD_add_response_header(response, "Sec-WebSocket-Accept",
                                       handshake_accept(key, accept));
        (void) MHD_add_response_header(response, "Sec-WebSocket-Protocol", CHANNELS_PROTOCOL);
        result = MHD_queue_response(http, MHD_HTTP_SWITCHING_PROTOCOLS, response);
        MHD_destroy_response(response);
        return result;
}

static unsigned status_of(int r) {
        switch (r) {
        case -ENOENT:
                return MHD_HTTP_NOT_FOUND;
        case -EINVAL:
        case -EAGAIN:
                return MHD_HTTP_BAD_REQUEST;
        default:
                return MHD_HTTP_INTERNAL_SERVER_ERROR;
        }
}

enum MHD_Result serve_exec(Serve *serve, struct MHD_Connection *http, const char *rest) {
        cleanup_with(upgrade_freep) Upgrade *upgrade = calloc(1, sizeof(*upgrade));
        cleanup_error Error error = ERROR_NULL;
        const char *key = find_key(http);
        enum MHD_Result result;
        int r;

        if (!serve_may_change(http, &result))
                return result;
        if (!upgrade)
                return MHD_NO;
        upgrade->serve = serve;
        upgrade->connection = connection_of(http);
        upgrade->path = strdup(rest);
        if (!upgrade->path)
                return MHD_NO;
        if (serve_split_path(upgrade->path, upgrade->names) < 0)
                return serve_refuse(http, MHD_HTTP_NOT_FOUND,
                                    "ask for /exec/<namespace>/<pod>/<container>");
        r = read_request(upgrade, http, &error);
        if (r >= 0)
                r = serve->handlers->exec(serve->userdata, upgrade->names[0], upgrade->names[1],
                                          upgrade->names[2], &upgrade->exec, -EBADF, &error);
        if (r < 0)
                return serve_refuse(http, status_of(r), "%s", error_message(&error, r));
        if (!key)
                return serve_refuse(http, MHD_HTTP_UPGRADE_REQUIRED,
                                    "ask for a WebSocket with the protocol " CHANNELS_PROTOCOL);
        return answer(http, key, TAKE_PTR(upgrade));
}
