/* SPDX-License-Identifier: Apache-2.0 */

/* The agent's settings, accepting clients, and the exit after some time without clients. Settings
 * need no timer: they are requested when a client connects. */

#include "agent/model/signer-protocol.h"
#include "agent/node-api/http/listen-address.h"
#include "agent/node-api/process/node-api-private.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/event-source.h"
#include "common/json-text.h"
#include "common/log.h"
#include "common/text.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define SETTINGS_USEC       (10 * USEC_PER_SEC) /* how long settings are valid */
#define SETTINGS_RETRY_USEC USEC_PER_SEC
#define ACCEPT_RETRY_USEC   USEC_PER_SEC

enum {
        ACCEPT_MAX = 16, /* number accepted in one turn */
};

/* ---- settings ---- */

static void request_settings(NodeApi *server);

/* All parts of the credentials. */
static char *describe_material(const NodeApi *server, const char *json) {
        const ApiSettings *settings = &server->settings;

        return text_format("%s\n%s\n%s\n%s", json, strna(settings->tls_priorities),
                           strna(settings->tls12_ecdsa_priorities),
                           strna(settings->tls12_rsa_priorities));
}

static int make_credentials(NodeApi *server, const char *json, TlsCredentials **ret,
                            Error *reterr) {
        const ApiSettings *settings = &server->settings;
        cleanup_json json_t *object = json_loads(json, 0, NULL);
        const char *error = json_text(object, "error");
        TlsMaterial material = { .signer = { .ask = signer_client_ask,
                                             .userdata = &server->signer },
                                 .certificate = json_text(object, "certificate"),
                                 .client_ca = json_text(object, "clientCA"),
                                 .priorities = settings->tls_priorities,
                                 .tls12_ecdsa_priorities = settings->tls12_ecdsa_priorities,
                                 .tls12_rsa_priorities = settings->tls12_rsa_priorities };

        if (error)
                log_warning("Cannot use the agent's settings: %s", error);
        return material.certificate ? tls_credentials_new(&material, ret, reterr)
                                    : error_setf(reterr, EINVAL, "the signer has no certificate");
}

/* If files are invalid, the last valid ones remain in use. */
static int renew_credentials(NodeApi *server, Error *reterr) {
        static const char request[] = { SIGNER_GET_MATERIAL };
        cleanup_free char *json = NULL, *material = NULL;
        TlsCredentials *credentials = NULL;
        size_t length;
        int r = signer_client_ask(&server->signer, request, sizeof(request), &json, &length,
                                  reterr);

        if (r < 0)
                return r;
        material = describe_material(server, json);
        if (!material)
                return -ENOMEM;
        if (server->credentials && streq_ptr(server->material, material))
                return 0;
        r = make_credentials(server, json, &credentials, reterr);
        if (r < 0)
                return r;
        tls_credentials_unref(server->credentials);
        server->credentials = credentials;
        free(server->material);
        server->material = TAKE_PTR(material);
        return 0;
}

/* ---- the signer ---- */

static void request_signer(NodeApi *server);

static bool is_serving(const NodeApi *server) {
        return server->credentials && server->signer.fd >= 0;
}

static void retry_settings_later(NodeApi *server) {
        if (!is_serving(server))
                (void) event_timer_arm(server->settings_retry_timer, SETTINGS_RETRY_USEC);
}

/* Most likely the agent has ended, and its successor has another signer, for which clients wait.
 * The grants of this agent do not apply to the successor. */
static void leave_signer(NodeApi *server) {
        server->signer_source = sd_event_source_disable_unref(server->signer_source);
        signer_client_disconnect(&server->signer);
        if (server->listen_source)
                (void) sd_event_source_set_enabled(server->listen_source, SD_EVENT_OFF);
        review_cache_clear(server->granted);
}

static int on_signer_gone(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        leave_signer(userdata);
        request_settings(userdata);
        return 0;
}

static void use_signer(NodeApi *server) {
        cleanup_error Error error = ERROR_NULL;
        int r = renew_credentials(server, &error);

        if (r < 0)
                log_warning("Cannot use the agent's settings: %s", error_message(&error, r));
        if (r < 0 && r != -EINVAL && r != -EACCES && r != -ENOMEM)
                leave_signer(server);
        if (is_serving(server) && server->listen_source)
                (void) sd_event_source_set_enabled(server->listen_source, SD_EVENT_ON);
        retry_settings_later(server);
}

static void on_signer_reply(const AgentReply *reply, void *userdata) {
        NodeApi *server = userdata;

        server->signer_request = NULL;
        if (reply->error < 0 || reply->fd < 0) {
                log_warning("Cannot connect to the signer: %s",
                            reply->error < 0 ? strerror(-reply->error) : reply->body);
                retry_settings_later(server);
                return;
        }
        signer_client_connect(&server->signer, reply->fd);
        if (sd_event_add_io(server->event, &server->signer_source, reply->fd, 0, on_signer_gone,
                            server) < 0)
                leave_signer(server);
        else
                use_signer(server);
}

static void request_signer(NodeApi *server) {
        const AgentRequestSpec spec = { .socket_path = server->agent_socket,
                                        .kind = AGENT_DESCRIPTOR,
                                        .path = "/nodeapi/signer",
                                        .waits_for_agent = true };

        if (server->signer_request)
                return;
        if (agent_request_start(server->event, &spec, on_signer_reply, server,
                                &server->signer_request) < 0)
                retry_settings_later(server);
}

/* ---- responses of the agent ---- */

/* The agent cannot detect that a systemd unit listens elsewhere. */
static void report_other_address(const NodeApi *server, const ApiSettings *settings) {
        const ApiSettings *before = &server->settings;
        cleanup_error Error error = ERROR_NULL;

        if (!server->is_by_systemd || settings->port == 0 ||
            (before->port == settings->port && streq_ptr(before->address, settings->address)))
                return;
        if (check_listen_address(server->listen_fd, settings->address, settings->port, &error) ==
            -EINVAL)
                log_warning("Ignoring 'port' and 'address' of the configuration: ListenStream= of "
                            "mainstay-api.socket determines them (%s)",
                            error.message);
}

static int use_api_settings(NodeApi *server, const char *json, Error *reterr) {
        cleanup_with(api_settings_done) ApiSettings settings = { 0 };
        int r = api_settings_parse(json, &settings, reterr);

        if (r < 0)
                return r;
        report_other_address(server, &settings);
        api_settings_done(&server->settings);
        server->settings = settings;
        settings = (ApiSettings){ 0 };
        return 0;
}

static void on_settings_reply(const AgentReply *reply, void *userdata) {
        NodeApi *server = userdata;
        cleanup_error Error error = ERROR_NULL;
        int r = reply->error;

        server->settings_request = NULL;
        if (r < 0) {
                log_warning("Cannot request the settings of the agent at %s: %s",
                            server->agent_socket, strerror(-r));
                retry_settings_later(server);
                return;
        }
        if (reply->status != 200)
                r = error_setf(&error, EIO, "%u %s", reply->status, reply->body);
        if (r >= 0)
                r = use_api_settings(server, reply->body, &error);
        if (r < 0) {
                log_warning("Cannot use the agent's settings: %s", error_message(&error, r));
                retry_settings_later(server);
                return;
        }
        if (server->signer.fd >= 0)
                use_signer(server);
        else
                request_signer(server);
}

static void request_settings(NodeApi *server) {
        AgentRequestSpec spec = { .socket_path = server->agent_socket,
                                  .kind = AGENT_COLLECT,
                                  .path = "/nodeapi/settings",
                                  .waits_for_agent = true,
                                  .changes_nothing = true };
        int r;

        if (server->settings_request)
                return;
        server->settings_at = now_boottime_usec();
        r = agent_request_start(server->event, &spec, on_settings_reply, server,
                                &server->settings_request);
        if (r < 0) {
                log_warning("Cannot request the settings of the agent at %s: %s",
                            server->agent_socket, strerror(-r));
                retry_settings_later(server);
        }
}

/* The agent may have changed its settings: they are requested unless they are recent. */
static void node_api_refresh_settings(NodeApi *server) {
        if (now_boottime_usec() - server->settings_at >= SETTINGS_USEC)
                request_settings(server);
}

static int on_settings_retry(sd_event_source *source, uint64_t usec, void *userdata) {
        request_settings(userdata);
        return 0;
}

/* ---- clients ---- */

static int on_api_idle(sd_event_source *source, uint64_t usec, void *userdata) {
        NodeApi *server = userdata;

        return sd_event_exit(server->event, 0);
}

static void update_idle_timer(NodeApi *server) {
        bool is_idle = server->n_connections == 0 && server->idle_usec > 0;

        if (!server->idle_timer)
                return;
        if (is_idle)
                (void) sd_event_source_set_time_relative(server->idle_timer, server->idle_usec);
        (void) sd_event_source_set_enabled(server->idle_timer,
                                           is_idle ? SD_EVENT_ONESHOT : SD_EVENT_OFF);
}

void node_api_stop_accepting(NodeApi *server) {
        server->listen_source = sd_event_source_disable_unref(server->listen_source);
        server->listen_fd = close_fd(server->listen_fd);
        if (server->n_connections == 0)
                (void) sd_event_exit(server->event, 0);
}

void node_api_connection_ended(NodeApi *server) {
        if (server->listen_fd < 0 && server->n_connections == 0)
                (void) sd_event_exit(server->event, 0);
        if (server->listen_source && is_serving(server))
                (void) sd_event_source_set_enabled(server->listen_source, SD_EVENT_ON);
        update_idle_timer(server);
}

/* A client that disappears without closing its connection is noticed after a few minutes, or if
 * data for it is pending, when the kernel gives up sending it (tcp_retries2). A TCP_USER_TIMEOUT
 * would be shorter, but would also end connections whose client does not read for a while, for
 * example because its terminal is stopped. */
static void set_keep_alive(int fd) {
        static const int on = 1, idle_sec = 60, interval_sec = 20;

        (void) setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
        (void) setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_sec, sizeof(idle_sec));
        (void) setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_sec, sizeof(interval_sec));
        (void) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

/* For IPv6 the network is counted, because a client may have all of its addresses. */
static struct in6_addr client_network(const struct sockaddr_storage *from) {
        struct in6_addr address = IN6ADDR_ANY_INIT;

        if (from->ss_family == AF_INET)
                memcpy(&address.s6_addr[12], &((const struct sockaddr_in *) from)->sin_addr, 4);
        if (from->ss_family != AF_INET6)
                return address;
        address = ((const struct sockaddr_in6 *) from)->sin6_addr;
        if (!IN6_IS_ADDR_V4MAPPED(&address))
                memset(&address.s6_addr[8], 0, 8);
        return address;
}

static bool has_too_many_connections(const NodeApi *server, const struct in6_addr *address) {
        unsigned n = 0;

        for (const ApiConnection *c = server->connections; c; c = c->next)
                n += IN6_ARE_ADDR_EQUAL(&c->address, address);
        return n >= API_CONNECTIONS_OF_ADDRESS_MAX;
}

static int accept_api_client(NodeApi *server) {
        struct sockaddr_storage from = { 0 };
        socklen_t length = sizeof(from);
        cleanup_close int fd = accept4(server->listen_fd, (struct sockaddr *) &from, &length,
                                       SOCK_CLOEXEC | SOCK_NONBLOCK);
        struct in6_addr address;

        if (fd < 0)
                return -errno;
        address = client_network(&from);
        if (has_too_many_connections(server, &address))
                return 0;
        set_keep_alive(fd);
        api_connection_new(server, TAKE_FD(fd), &address);
        return 0;
}

static int on_accept_again(sd_event_source *source, uint64_t usec, void *userdata) {
        node_api_connection_ended(userdata);
        return 0;
}

/* Descriptors or memory have run out; clients wait in the socket's queue. */
static void pause_accepting_api_clients(NodeApi *server) {
        (void) sd_event_source_set_enabled(server->listen_source, SD_EVENT_OFF);
        (void) event_timer_arm(server->accept_retry_timer, ACCEPT_RETRY_USEC);
}

static int on_api_listen_socket(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        NodeApi *server = userdata;
        int r = 0;

        node_api_refresh_settings(server);
        for (unsigned i = 0;
             i < ACCEPT_MAX && r >= 0 && server->n_connections < API_CONNECTIONS_MAX; i++)
                r = accept_api_client(server);
        if (r < 0 && r != -EAGAIN && r != -ECONNABORTED && r != -EINTR)
                pause_accepting_api_clients(server);
        if (server->n_connections >= API_CONNECTIONS_MAX)
                (void) sd_event_source_set_enabled(server->listen_source, SD_EVENT_OFF);
        update_idle_timer(server);
        return 0;
}

/* ---- building ---- */

static int add_api_timer(NodeApi *server, sd_event_source **ret, sd_event_time_handler_t handler) {
        return event_add_disabled_timer(server->event, ret, CLOCK_MONOTONIC, 0, handler, server);
}

static int add_api_sources(NodeApi *server) {
        int r = sd_event_add_io(server->event, &server->listen_source, server->listen_fd, EPOLLIN,
                                on_api_listen_socket, server);

        if (r < 0)
                return r;
        r = sd_event_source_set_enabled(server->listen_source, SD_EVENT_OFF);
        if (r < 0)
                return r;
        r = add_api_timer(server, &server->settings_retry_timer, on_settings_retry);
        if (r < 0)
                return r;
        r = add_api_timer(server, &server->accept_retry_timer, on_accept_again);
        if (r < 0)
                return r;
        return add_api_timer(server, &server->idle_timer, on_api_idle);
}

static void free_cached_user(void *value) {
        api_user_done(value);
        free(value);
}

static int start_api_server(NodeApi *server) {
        int r = review_cache_new(free_cached_user, &server->granted);

        if (r < 0)
                return r;
        r = review_cache_new(free, &server->known_tokens);
        if (r < 0)
                return r;
        r = api_http_start(server);
        if (r < 0)
                return r;
        return add_api_sources(server);
}

int node_api_new(const NodeApiConfig *config, NodeApi **ret, Error *reterr) {
        cleanup_with(node_api_freep) NodeApi *server = calloc(1, sizeof(*server));
        int r;

        if (!server) {
                close_fd(config->listen_fd_consume);
                return -ENOMEM;
        }
        server->listen_fd = config->listen_fd_consume;
        server->signer.fd = -EBADF;
        server->event = sd_event_ref(config->event);
        server->is_by_systemd = config->is_by_systemd;
        server->idle_usec = config->idle_usec;
        server->agent_socket = strdup(config->agent_socket);
        if (!server->agent_socket)
                return -ENOMEM;
        r = start_api_server(server);
        if (r < 0)
                return error_prefixf(reterr, r, "cannot start the server");
        request_settings(server);
        update_idle_timer(server);
        *ret = TAKE_PTR(server);
        return 0;
}

NodeApi *node_api_free(NodeApi *server) {
        if (!server)
                return NULL;
        agent_request_cancel(server->settings_request);
        agent_request_cancel(server->signer_request);
        api_http_stop(server);
        server->listen_source = sd_event_source_disable_unref(server->listen_source);
        server->listen_fd = close_fd(server->listen_fd);
        server->idle_timer = sd_event_source_disable_unref(server->idle_timer);
        while (server->connections)
                api_connection_free(server->connections);
        sd_event_source_disable_unref(server->settings_retry_timer);
        sd_event_source_disable_unref(server->accept_retry_timer);
        review_cache_free(server->granted);
        review_cache_free(server->known_tokens);
        for (size_t i = 0; i < N_ELEMENTS(server->versions); i++)
                object_versions_free(server->versions[i]);
        tls_credentials_unref(server->credentials);
        sd_event_source_disable_unref(server->signer_source);
        signer_client_disconnect(&server->signer);
        free(server->material);
        api_settings_done(&server->settings);
        sd_event_unref(server->event);
        free(server->agent_socket);
        free(server);
        return NULL;
}
