/* SPDX-License-Identifier: Apache-2.0 */

/* exec, attach and portForward: a request to the agent checks whether it is possible, the client's
 * connection is upgraded to SPDY or a WebSocket, and a session takes it over. A watch can also be
 * upgraded. */

#include "agent/node-api/http/request-url.h"
#include "agent/node-api/process/node-api-private.h"
#include "agent/node-api/session/api-session.h"
#include "agent/node-api/session/forwarded-port.h"
#include "agent/node-api/session/port-channels.h"
#include "agent/node-api/session/port-forward.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/text.h"
#include "common/websocket-handshake.h"

struct ApiUpgrade {
        NodeApi *server;
        ApiConnection *connection;
        struct MHD_UpgradeResponseHandle *handle;
        char *agent_path, *credential;
        const SessionProtocol *protocol; /* NULL: ports are forwarded */
        int shim_fd;                     /* for a session whose command is held */
        SessionOptions options;
        char *pod; /* "name_namespace" */
        bool is_tunnel;
        ForwardedPorts ports; /* n is 0: the client opens a stream for each */
        bool is_base64;
        TlsStream *tls; /* the client's, after the takeover; NULL: not yet */
        Session *session;
        PortForward *forward;
        PortChannels *channels;
        WatchEvents events; /* for a watch that has not started; 'take' is NULL: none */
        WatchSocket *watch;
};

/* The parameters from the path and the query. */
typedef struct UpgradePath {
        char *text;
        const char *namespace, *pod, *uid, *container; /* uid may be NULL */
} UpgradePath;

static void upgrade_path_done(UpgradePath *path) {
        free(path->text);
}

void api_upgrade_free(ApiUpgrade *upgrade) {
        if (!upgrade)
                return;
        session_free(upgrade->session);
        port_forward_free(upgrade->forward);
        port_channels_free(upgrade->channels);
        watch_socket_free(upgrade->watch);
        if (upgrade->events.take)
                upgrade->events.free(upgrade->events.userdata);
        if (upgrade->connection)
                upgrade->connection->upgrade = NULL;
        if (upgrade->tls)
                tls_stream_end(upgrade->tls);
        if (upgrade->handle) {
                (void) MHD_upgrade_action(upgrade->handle, MHD_UPGRADE_ACTION_CLOSE);
                api_http_schedule_run(upgrade->server);
        }
        close_fd(upgrade->shim_fd);
        free(upgrade->agent_path);
        free(upgrade->credential);
        free(upgrade->pod);
        free(upgrade);
}

static void api_upgrade_freep(ApiUpgrade **upgrade) {
        api_upgrade_free(*upgrade);
}

static void on_upgrade_over(void *userdata) {
        api_upgrade_free(userdata);
}

/* ---- after the reply ---- */

static int start_upgraded_session(ApiUpgrade *upgrade, const ClientStream *client) {
        return session_new(&(ClientSessionSpec){ .event = upgrade->server->event,
                                                 .protocol = upgrade->protocol,
                                                 .options = upgrade->options,
                                                 .agent_socket = upgrade->server->agent_socket,
                                                 .credential = upgrade->credential,
                                                 .agent_path = upgrade->agent_path,
                                                 .shim_fd = TAKE_FD(upgrade->shim_fd),
                                                 .client = *client,
                                                 .on_over = on_upgrade_over,
                                                 .userdata = upgrade },
                           &upgrade->session);
}

static int start_upgraded_forward(ApiUpgrade *upgrade, const ClientStream *client) {
        return port_forward_new(&(PortForwardSpec){ .event = upgrade->server->event,
                                                    .is_tunnel = upgrade->is_tunnel,
                                                    .pod = upgrade->pod,
                                                    .agent_socket = upgrade->server->agent_socket,
                                                    .credential = upgrade->credential,
                                                    .agent_path = upgrade->agent_path,
                                                    .n_of_all = &upgrade->server->n_forwarded,
                                                    .client = *client,
                                                    .on_over = on_upgrade_over,
                                                    .userdata = upgrade },
                                &upgrade->forward);
}

static int start_upgraded_channels(ApiUpgrade *upgrade, const ClientStream *client) {
        return port_channels_new(&(PortChannelsSpec){ .event = upgrade->server->event,
                                                      .ports = upgrade->ports,
                                                      .is_base64 = upgrade->is_base64,
                                                      .pod = upgrade->pod,
                                                      .agent_socket = upgrade->server->agent_socket,
                                                      .credential = upgrade->credential,
                                                      .agent_path = upgrade->agent_path,
                                                      .n_of_all = &upgrade->server->n_forwarded,
                                                      .client = *client,
                                                      .on_over = on_upgrade_over,
                                                      .userdata = upgrade },
                                 &upgrade->channels);
}

static int start_upgraded_watch(ApiUpgrade *upgrade, const ClientStream *client) {
        WatchSocketSpec spec = { .event = upgrade->server->event,
                                 .events = upgrade->events,
                                 .client = *client,
                                 .on_over = on_upgrade_over,
                                 .userdata = upgrade };

        upgrade->events = (WatchEvents){ 0 };
        spec.client.idle_usec = 0; /* such a session may be idle for a long time */
        return watch_socket_new(&spec, &upgrade->watch);
}

static int start_upgrade(ApiUpgrade *upgrade, const ClientStream *client) {
        if (upgrade->events.take)
                return start_upgraded_watch(upgrade, client);
        if (upgrade->protocol)
                return start_upgraded_session(upgrade, client);
        return upgrade->ports.n > 0 ? start_upgraded_channels(upgrade, client)
                                    : start_upgraded_forward(upgrade, client);
}

static ssize_t receive_from_client(void *userdata, void *buffer, size_t size) {
        return tls_stream_receive(userdata, buffer, size);
}

static ssize_t send_to_client(void *userdata, const void *data, size_t length) {
        return tls_stream_send(userdata, data, length);
}

static void shut_client(void *userdata) {
        tls_stream_shut(userdata);
}

static const StreamTransport client_transport = { receive_from_client, send_to_client,
                                                  shut_client };

/* libmicrohttpd keeps its descriptor, which is then no longer connected to anything. */
static int take_over_client(ApiUpgrade *upgrade, int http_fd, ByteQueue *early) {
        TlsStream *tls = upgrade->connection->tls;
        ClientStream client = { .transport = &client_transport,
                                .transport_userdata = tls,
                                .idle_usec = upgrade->server->settings.stream_idle_usec };

        client.fd = tls ? tls_stream_take_over(tls, http_fd, early) : -ENOTCONN;
        if (client.fd < 0)
                return client.fd;
        upgrade->tls = tls;
        client.early_length = byte_queue_length(early);
        client.early = client.early_length > 0 ? byte_queue_bytes(early) : NULL;
        return start_upgrade(upgrade, &client);
}

static void on_api_upgraded(void *userdata, struct MHD_Connection *http, void *context,
                            const char *extra, size_t extra_size, MHD_socket fd,
                            struct MHD_UpgradeResponseHandle *handle) {
        ApiUpgrade *upgrade = userdata;
        ByteQueue early = { 0 };
        int r = byte_queue_append(&early, SIZE_MAX, extra, extra_size);

        upgrade->handle = handle;
        api_connection_clear_deadline(upgrade->connection);
        if (r >= 0)
                r = take_over_client(upgrade, fd, &early);
        byte_queue_done(&early);
        if (r < 0)
                api_upgrade_free(upgrade);
}

/* ---- the reply ---- */

static ApiStepResult queue_upgrade(ApiRequest *request, ApiUpgrade *upgrade_consume,
                                   struct MHD_Response *response) {
        /* From now on the connection owns the session, even if the client disconnects before the
         * reply. */
        upgrade_consume->connection = request->connection;
        request->connection->upgrade = upgrade_consume;
        return api_queue_reply(request, MHD_HTTP_SWITCHING_PROTOCOLS, response);
}

static ApiStepResult upgrade_to_websocket(ApiRequest *request, ApiUpgrade *upgrade_consume,
                                          const char *protocol) {
        cleanup_with(api_upgrade_freep) ApiUpgrade *upgrade = upgrade_consume;
        const char *key = api_header(request->http, "Sec-WebSocket-Key");
        const char *version = api_header(request->http, "Sec-WebSocket-Version");
        char accept[WEBSOCKET_ACCEPT_SIZE];
        struct MHD_Response *response;

        if (!key || strlen(key) != 24 || !version || !streq(version, "13"))
                return api_reply_text(request, MHD_HTTP_BAD_REQUEST,
                                      "the handshake of the WebSocket is not valid");
        response = MHD_create_response_for_upgrade(on_api_upgraded, upgrade);
        if (!response)
                return API_STEP_ABORT;
        (void) MHD_add_response_header(response, MHD_HTTP_HEADER_UPGRADE, "websocket");
        (void) MHD_add_response_header(response, "Sec-WebSocket-Accept",
                                       websocket_accept_key(key, accept));
        if (protocol[0])
                (void) MHD_add_response_header(response, "Sec-WebSocket-Protocol", protocol);
        return queue_upgrade(request, TAKE_PTR(upgrade), response);
}

static ApiStepResult upgrade_to_spdy(ApiRequest *request, ApiUpgrade *upgrade_consume,
                                     const char *protocol) {
        cleanup_with(api_upgrade_freep) ApiUpgrade *upgrade = upgrade_consume;
        struct MHD_Response *response = MHD_create_response_for_upgrade(on_api_upgraded, upgrade);

        if (!response)
                return API_STEP_ABORT;
        (void) MHD_add_response_header(response, MHD_HTTP_HEADER_UPGRADE, "SPDY/3.1");
        (void) MHD_add_response_header(response, "X-Stream-Protocol-Version", protocol);
        return queue_upgrade(request, TAKE_PTR(upgrade), response);
}

/* 403 with the supported protocols. */
static ApiStepResult reply_no_spdy_protocol(ApiRequest *request, const char *offered,
                                            bool is_session) {
        static const char header[] = "X-Accepted-Stream-Protocol-Versions";
        struct MHD_Response *response;
        const char *name;
        cleanup_free char *text = text_format(
                "unable to upgrade: unable to negotiate protocol: client supports [%s]", offered);

        if (!text)
                return API_STEP_ABORT;
        response = MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_COPY);
        if (!response)
                return API_STEP_ABORT;
        if (!is_session)
                (void) MHD_add_response_header(response, header, PORT_FORWARD_PROTOCOL);
        for (size_t i = 0; is_session && (name = session_spdy_protocol_name(i)); i++)
                (void) MHD_add_response_header(response, header, name);
        return api_queue_reply(request, MHD_HTTP_FORBIDDEN, response);
}

static bool is_upgrade_to(const ApiRequest *request, const char *protocol) {
        const char *upgrade = api_header(request->http, MHD_HTTP_HEADER_UPGRADE);

        return request->is_upgrade && upgrade && strcasestr(upgrade, protocol);
}

static char *list_spdy_protocols(const ApiRequest *request) {
        return api_header_list(request->http, "X-Stream-Protocol-Version");
}

static ApiStepResult reply_no_version_header(ApiRequest *request) {
        return api_reply_text(request, MHD_HTTP_BAD_REQUEST,
                              "unable to upgrade: header X-Stream-Protocol-Version does not exist "
                              "in request");
}

static ApiUpgrade *api_upgrade_new(const ApiRequest *request, const char *agent_path) {
        ApiUpgrade *upgrade = calloc(1, sizeof(*upgrade));

        if (!upgrade)
                return NULL;
        upgrade->server = request->server;
        upgrade->shim_fd = -EBADF;
        upgrade->agent_path = strdup(agent_path);
        upgrade->credential = strdup(strna(request->credential));
        if (upgrade->agent_path && upgrade->credential)
                return upgrade;
        api_upgrade_free(upgrade);
        return NULL;
}

static ApiStepResult upgrade_session(ApiRequest *request, const SessionOptions *options,
                                     const char *agent_path) {
        bool is_websocket = is_upgrade_to(request, "websocket");
        cleanup_free char *offered =
                is_websocket ? api_header_list(request->http, "Sec-WebSocket-Protocol")
                             : list_spdy_protocols(request);
        const SessionProtocol *protocol;
        ApiUpgrade *upgrade;

        if (!is_websocket && !is_upgrade_to(request, "SPDY/3.1"))
                return api_reply_text(request, MHD_HTTP_INTERNAL_SERVER_ERROR,
                                      "Upgrade request required");
        if (!is_websocket && !offered)
                return reply_no_version_header(request);
        protocol = is_websocket ? session_protocol_of_websocket(offered)
                                : session_protocol_of_spdy(offered);
        if (!protocol)
                return is_websocket ? api_reply_text(request, MHD_HTTP_FORBIDDEN, "")
                                    : reply_no_spdy_protocol(request, offered, true);
        upgrade = api_upgrade_new(request, agent_path);
        if (!upgrade)
                return API_STEP_ABORT;
        upgrade->protocol = protocol;
        upgrade->shim_fd = TAKE_FD(request->reply_fd);
        upgrade->options = *options;
        return is_websocket ? upgrade_to_websocket(request, upgrade, protocol->name)
                            : upgrade_to_spdy(request, upgrade, protocol->name);
}

/* ---- requests ---- */

/* "<namespace>/<pod>[/<uid>]", and "/<container>". */
static int parse_upgrade_path(const char *rest, bool has_container, UpgradePath *ret) {
        const char *parts[4] = { NULL };
        char *text = strdup(rest);
        int n = text ? split_url_path(text, parts, 4) : -ENOMEM, n_names = has_container ? 3 : 2;

        if (n != n_names && n != n_names + 1) {
                free(text);
                return -EINVAL;
        }
        *ret = (UpgradePath){ .text = text,
                              .namespace = parts[0],
                              .pod = parts[1],
                              .uid = n > n_names ? parts[2] : NULL,
                              .container = has_container ? parts[n - 1] : NULL };
        return 0;
}

/* The API and the kubelet use different names for a flag, and different words for true. */
static bool is_session_flag_set(const ApiRequest *request, const char *name,
                                const char *kubernetes_name) {
        const char *value =
                api_parameter(request->http, request->is_kubernetes ? kubernetes_name : name);

        return value && (streq(value, "1") || (request->is_kubernetes && streq(value, "true")));
}

static SessionOptions read_session_options(const ApiRequest *request) {
        SessionOptions options = { .has_input = is_session_flag_set(request, "input", "stdin"),
                                   .has_output = is_session_flag_set(request, "output", "stdout"),
                                   .has_error = is_session_flag_set(request, "error", "stderr"),
                                   .has_terminal = is_session_flag_set(request, "tty", "tty") };

        /* A terminal has a single output stream. */
        if (options.has_terminal)
                options.has_error = false;
        return options;
}

static enum MHD_Result write_command_argument(void *userdata, enum MHD_ValueKind kind,
                                              const char *name, const char *value) {
        FILE *out = userdata;

        if (!streq(name, "command"))
                return MHD_YES;
        url_write_argument(out, "command", strna(value));
        return MHD_YES;
}

static char *format_session_path(const ApiRequest *request, const char *verb,
                                 const UpgradePath *path, const SessionOptions *options,
                                 bool is_held) {
        const char *names[] = { path->namespace, path->pod, path->container };
        char *text = NULL;
        size_t size;
        FILE *out = open_memstream(&text, &size);

        if (!out)
                return NULL;
        fputs(verb, out);
        url_write_components(out, names, N_ELEMENTS(names));
        fputc('?', out);
        (void) MHD_get_connection_values(request->http, MHD_GET_ARGUMENT_KIND,
                                         write_command_argument, out);
        url_write_argument(out, "uid", path->uid);
        fprintf(out, "input=%d&output=%d&error=%d&tty=%d&held=%d", options->has_input,
                options->has_output, options->has_error, options->has_terminal, is_held);
        return memstream_finish(out, &text);
}

/* The agent checks a request that is not an upgrade, and requires one: 426. A command is requested
 * with an upgrade, and the shim holds it until the client is ready. */
static ApiStepResult reply_session_refused(ApiRequest *request) {
        if (request->reply_error >= 0 && request->reply_status == MHD_HTTP_BAD_REQUEST)
                return api_reply_text(request, MHD_HTTP_INTERNAL_SERVER_ERROR, request->reply_body);
        return api_reply_agent_error(request);
}

static ApiStepResult handle_session(ApiRequest *request, const char *verb, const char *rest,
                                    bool is_held) {
        cleanup_with(upgrade_path_done) UpgradePath path = { 0 };
        SessionOptions options = read_session_options(request);
        cleanup_free char *agent_path = NULL;

        if (parse_upgrade_path(rest, true, &path) < 0)
                return api_reply_text(request, MHD_HTTP_NOT_FOUND, "404: Page Not Found");
        if (!options.has_input && !options.has_output && !options.has_error)
                return api_reply_text(request, MHD_HTTP_BAD_REQUEST,
                                      "you must specify at least 1 of stdin, stdout, stderr");
        agent_path = format_session_path(request, verb, &path, &options, is_held);
        if (!agent_path)
                return API_STEP_ABORT;
        if (!request->has_reply)
                return api_request_ask_agent(
                        request,
                        &(AgentRequestSpec){ .kind = is_held ? AGENT_WEBSOCKET : AGENT_COLLECT,
                                             .path = agent_path });
        if (request->reply_error < 0 ||
            request->reply_status !=
                    (is_held ? MHD_HTTP_SWITCHING_PROTOCOLS : MHD_HTTP_UPGRADE_REQUIRED))
                return reply_session_refused(request);
        return upgrade_session(request, &options, agent_path);
}

ApiStepResult api_handle_exec(ApiRequest *request, const char *rest) {
        return handle_session(request, "/exec", rest, /* is_held= */ true);
}

ApiStepResult api_handle_attach(ApiRequest *request, const char *rest) {
        return handle_session(request, "/attach", rest, /* is_held= */ false);
}

/* ---- watches ---- */

/* The first protocol that a client offers, regardless of which one, unless it contains a token. */
static void choose_watch_protocol(const ApiRequest *request, char *ret, size_t size) {
        cleanup_free char *offered = api_header_list(request->http, "Sec-WebSocket-Protocol");
        const char *rest = offered, *word;
        size_t length;

        ret[0] = '\0';
        while (rest && next_protocol_word(&rest, &word, &length)) {
                if (length >= size || memmem(word, length, ".bearer.", strlen(".bearer.")))
                        continue;
                memcpy(ret, word, length);
                ret[length] = '\0';
                return;
        }
}

ApiStepResult api_upgrade_watch(ApiRequest *request, const WatchEvents *events_take) {
        ApiUpgrade *upgrade = api_upgrade_new(request, "");
        char protocol[128];

        if (!upgrade) {
                events_take->free(events_take->userdata);
                return API_STEP_ABORT;
        }
        upgrade->events = *events_take;
        if (!is_upgrade_to(request, "websocket")) {
                api_upgrade_free(upgrade);
                return api_reply_text(request, MHD_HTTP_BAD_REQUEST,
                                      "a watch can be upgraded to a WebSocket only");
        }
        choose_watch_protocol(request, protocol, sizeof(protocol));
        return upgrade_to_websocket(request, upgrade, protocol);
}

/* ---- port-forward ---- */

static char *format_forward_path(const UpgradePath *path) {
        const char *names[] = { path->namespace, path->pod };
        char *text = NULL;
        size_t size;
        FILE *out = open_memstream(&text, &size);

        if (!out)
                return NULL;
        fputs("/portForward", out);
        url_write_components(out, names, N_ELEMENTS(names));
        fputc('?', out);
        url_write_argument(out, "uid", path->uid);
        fputs("port=", out);
        return memstream_finish(out, &text);
}

static ApiUpgrade *port_forward_upgrade_new(const ApiRequest *request, const UpgradePath *path,
                                            const char *agent_path) {
        ApiUpgrade *upgrade = api_upgrade_new(request, agent_path);

        if (!upgrade)
                return NULL;
        upgrade->pod = text_format("%s_%s", path->pod, path->namespace);
        if (upgrade->pod)
                return upgrade;
        api_upgrade_free(upgrade);
        return NULL;
}

static ApiStepResult forward_over_spdy(ApiRequest *request, const UpgradePath *path,
                                       const char *agent_path) {
        cleanup_free char *offered = list_spdy_protocols(request);
        ApiUpgrade *upgrade;

        if (!is_upgrade_to(request, "SPDY/3.1"))
                return api_reply_text(request, MHD_HTTP_INTERNAL_SERVER_ERROR,
                                      "Upgrade request required");
        if (!offered)
                return reply_no_version_header(request);
        if (!is_protocol_offered(offered, PORT_FORWARD_PROTOCOL))
                return reply_no_spdy_protocol(request, offered, false);
        upgrade = port_forward_upgrade_new(request, path, agent_path);
        return upgrade ? upgrade_to_spdy(request, upgrade, PORT_FORWARD_PROTOCOL) : API_STEP_ABORT;
}

static ApiStepResult forward_over_tunnel(ApiRequest *request, const UpgradePath *path,
                                         const char *agent_path) {
        ApiUpgrade *upgrade = port_forward_upgrade_new(request, path, agent_path);

        if (!upgrade)
                return API_STEP_ABORT;
        upgrade->is_tunnel = true;
        return upgrade_to_websocket(request, upgrade, PORT_FORWARD_TUNNEL_PROTOCOL);
}

typedef struct PortsQuery {
        const char *name; /* the kubelet's name differs from the API's */
        ForwardedPorts ports;
        int result;
} PortsQuery;

static enum MHD_Result read_ports_parameter(void *userdata, enum MHD_ValueKind kind,
                                            const char *name, const char *value) {
        PortsQuery *query = userdata;

        if (streq(name, query->name))
                query->result = forwarded_ports_add(&query->ports, strna(value));
        return query->result >= 0 ? MHD_YES : MHD_NO;
}

/* Without ports in the query the result is a queued reply. */
static ApiStepResult read_forwarded_ports(ApiRequest *request, ForwardedPorts *ret) {
        PortsQuery query = { .name = request->is_kubernetes ? "ports" : "port" };

        (void) MHD_get_connection_values(request->http, MHD_GET_ARGUMENT_KIND, read_ports_parameter,
                                         &query);
        if (query.result == -E2BIG)
                return api_replyf(request, MHD_HTTP_BAD_REQUEST,
                                  "query parameter \"%s\" has more than %d ports", query.name,
                                  PORT_CHANNELS_MAX);
        if (query.result < 0)
                return api_replyf(request, MHD_HTTP_BAD_REQUEST,
                                  "query parameter \"%s\" must be ports from 1 to 65535",
                                  query.name);
        if (query.ports.n == 0)
                return api_replyf(request, MHD_HTTP_BAD_REQUEST,
                                  "query parameter \"%s\" is required", query.name);
        *ret = query.ports;
        return API_STEP_NEXT;
}

static ApiStepResult forward_over_channels(ApiRequest *request, const UpgradePath *path,
                                           const char *agent_path, const char *offered) {
        const char *protocol = port_channels_protocol(offered);
        ForwardedPorts ports = { 0 };
        ApiUpgrade *upgrade;
        ApiStepResult result;

        if (!protocol)
                return api_reply_text(request, MHD_HTTP_FORBIDDEN, "");
        result = read_forwarded_ports(request, &ports);
        if (result != API_STEP_NEXT)
                return result;
        if (request->server->n_forwarded + ports.n > FORWARDED_PORTS_MAX)
                return api_replyf(request, MHD_HTTP_SERVICE_UNAVAILABLE,
                                  "too many connections to ports of pods (at most %d)",
                                  FORWARDED_PORTS_MAX);
        upgrade = port_forward_upgrade_new(request, path, agent_path);
        if (!upgrade)
                return API_STEP_ABORT;
        upgrade->ports = ports;
        upgrade->is_base64 = strstr(protocol, "base64") != NULL;
        return upgrade_to_websocket(request, upgrade, protocol);
}

static ApiStepResult upgrade_port_forward(ApiRequest *request, const UpgradePath *path,
                                          const char *agent_path) {
        cleanup_free char *offered = NULL;

        if (!is_upgrade_to(request, "websocket"))
                return forward_over_spdy(request, path, agent_path);
        offered = api_header_list(request->http, "Sec-WebSocket-Protocol");
        return offered && is_protocol_offered(offered, PORT_FORWARD_TUNNEL_PROTOCOL)
                       ? forward_over_tunnel(request, path, agent_path)
                       : forward_over_channels(request, path, agent_path, offered);
}

ApiStepResult api_handle_port_forward(ApiRequest *request, const char *rest) {
        cleanup_with(upgrade_path_done) UpgradePath path = { 0 };
        cleanup_free char *agent_path = NULL;

        if (parse_upgrade_path(rest, false, &path) < 0)
                return api_reply_text(request, MHD_HTTP_NOT_FOUND, "404: Page Not Found");
        agent_path = format_forward_path(&path);
        if (!agent_path)
                return API_STEP_ABORT;
        if (!request->has_reply)
                return api_request_ask_agent(
                        request, &(AgentRequestSpec){ .kind = AGENT_COLLECT, .path = agent_path });
        if (request->reply_error < 0 || request->reply_status != MHD_HTTP_UPGRADE_REQUIRED)
                return api_reply_agent_error(request);
        return upgrade_port_forward(request, &path, agent_path);
}
