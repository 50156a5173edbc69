/* SPDX-License-Identifier: Apache-2.0 */
/* After any bytes from a client and any replies of the agent, mainstay-api has no connection,
 * request or descriptor left when the client is gone. The first byte selects settings and user. The
 * separator 0xff 0xfe divides the client's bytes, the agent's replies, and the data that the client
 * sends to an idle session. TLS and the agent are replaced by the functions below, which the linker
 * uses instead of the library's. */

#include "tests/fuzz/fuzz.h"

#include "agent/node-api/process/node-api-private.h"
#include "common/cleanup.h"
#include "common/log.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <syslog.h>
#include <unistd.h>

enum {
        SETTING_ALONE = 1,
        SETTING_ANONYMOUS = 2,
        SETTING_REVIEWS = 4,
        USER_HAS_CERTIFICATE = 8,
};

typedef struct Bytes {
        const uint8_t *data;
        size_t size;
} Bytes;

static Bytes unread; /* the rest of the input */
static unsigned settings_flags;
static unsigned n_agent_requests;
static bool has_reviewed; /* so the caches may hold a result */

/* Up to the next separator. */
static Bytes take_piece(void) {
        static const uint8_t separator[] = { 0xff, 0xfe };
        const uint8_t *end = memmem(unread.data, unread.size, separator, sizeof(separator));
        Bytes piece = { unread.data, end ? (size_t) (end - unread.data) : unread.size };
        size_t used = end ? piece.size + sizeof(separator) : unread.size;

        unread = (Bytes){ unread.data + used, unread.size - used };
        return piece;
}

/* A connection whose other end has sent these bytes and will send no more. */
static int make_ended_connection(Bytes bytes) {
        int fds[2];

        assert(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) == 0);
        (void) send(fds[1], bytes.data, bytes.size, MSG_NOSIGNAL);
        close(fds[1]);
        return fds[0];
}

/* ---- TLS ---- */

struct TlsStream {
        const TlsStreamHandlers *handlers;
        void *userdata;
        int http_fd, client_fd; /* libmicrohttpd's end and the client's */
        int session_fd, far_fd; /* ends of a session */
        bool has_ended;
};

static TlsStream *only_stream;

static void make_pair(int *ret_near, int *ret_far) {
        int fds[2];

        assert(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) == 0);
        *ret_near = fds[0];
        *ret_far = fds[1];
}

int tls_stream_new(sd_event *event, int fd_consume, TlsCredentials *credentials,
                   const TlsStreamHandlers *handlers, void *userdata, TlsStream **ret) {
        TlsStream *stream = calloc(1, sizeof(*stream));

        close_fd(fd_consume);
        assert(stream);
        stream->handlers = handlers;
        stream->userdata = userdata;
        stream->session_fd = stream->far_fd = -EBADF;
        make_pair(&stream->http_fd, &stream->client_fd);
        *ret = only_stream = stream;
        return 0;
}

TlsStream *tls_stream_free(TlsStream *stream) {
        if (!stream)
                return NULL;
        close_fd(stream->client_fd);
        close_fd(stream->session_fd);
        close_fd(stream->far_fd);
        free(stream);
        only_stream = NULL;
        return NULL;
}

/* Returns true if it discarded any data. */
static bool drain(int fd) {
        char buffer[4096];
        bool is_any = false;

        while (fd >= 0 && recv(fd, buffer, sizeof(buffer), MSG_DONTWAIT) > 0)
                is_any = true;
        return is_any;
}

void tls_stream_end_record(TlsStream *stream) {
}

int tls_stream_take_over(TlsStream *stream, int fd, ByteQueue *early) {
        char buffer[4096];
        ssize_t n;

        while ((n = recv(fd, buffer, sizeof(buffer), MSG_DONTWAIT)) > 0)
                assert(byte_queue_append(early, SIZE_MAX, buffer, (size_t) n) >= 0);
        make_pair(&stream->session_fd, &stream->far_fd);
        return stream->session_fd;
}

ssize_t tls_stream_receive(TlsStream *stream, void *buffer, size_t size) {
        ssize_t n = recv(stream->session_fd, buffer, size, MSG_DONTWAIT);

        return n < 0 ? -errno : n;
}

ssize_t tls_stream_send(TlsStream *stream, const void *data, size_t length) {
        ssize_t n = send(stream->session_fd, data, length, MSG_DONTWAIT | MSG_NOSIGNAL);

        return n < 0 ? -errno : n;
}

void tls_stream_shut(TlsStream *stream) {
        (void) shutdown(stream->session_fd, SHUT_WR);
}

void tls_stream_end(TlsStream *stream) {
        stream->has_ended = true;
}

const char *tls_stream_ticket(const TlsStream *stream) {
        return settings_flags & USER_HAS_CERTIFICATE ? "ticket" : NULL;
}

bool tls_stream_has_refused_certificate(const TlsStream *stream) {
        return false;
}

int tls_credentials_new(const TlsMaterial *material, TlsCredentials **ret, Error *reterr) {
        *ret = malloc(1);
        return *ret ? 0 : -ENOMEM;
}

TlsCredentials *tls_credentials_ref(TlsCredentials *credentials) {
        return credentials;
}

TlsCredentials *tls_credentials_unref(TlsCredentials *credentials) {
        free(credentials);
        return NULL;
}

void signer_client_connect(SignerClient *client, int fd_consume) {
        client->fd = fd_consume;
}

void signer_client_disconnect(SignerClient *client) {
        client->fd = close_fd(client->fd);
}

int signer_client_ask(void *userdata, const void *request, size_t length, char **ret,
                      size_t *ret_length, Error *reterr) {
        *ret = strdup("{\"certificate\":\"c\"}");
        *ret_length = strlen(*ret);
        return 0;
}

/* ---- the agent ---- */

struct AgentRequest {
        sd_event_source *source;
        AgentRequestKind kind;
        agent_reply_t on_reply;
        void *userdata;
        bool is_of_settings, is_of_signer, is_of_access;
};

AgentRequest *agent_request_cancel(AgentRequest *request) {
        if (!request)
                return NULL;
        sd_event_source_disable_unref(request->source);
        free(request);
        n_agent_requests--;
        return NULL;
}

static AgentReply settings_reply(char text[512]) {
        int n = snprintf(text, 512,
                         "{\"nodeName\":\"node1\",\"alone\":%s,"
                         "\"debuggingHandlers\":true,\"systemLogs\":true,\"systemLogQuery\":true,"
                         "\"kubernetesVersion\":\"v1.35.0\",\"manifestDirectory\":\"/m\","
                         "\"allowedCacheMilliseconds\":1000,\"streamIdleMilliseconds\":60000}",
                         settings_flags & SETTING_ALONE ? "true" : "false");

        return (AgentReply){ .status = 200,
                             .content_type = "application/json",
                             .body = text,
                             .length = (size_t) n,
                             .fd = -EBADF };
}

/* Without reviews the agent decides immediately. */
static AgentReply access_reply(void) {
        bool is_user = settings_flags & (USER_HAS_CERTIFICATE | SETTING_ANONYMOUS);
        const char *text = is_user ? "{\"username\":\"admin\",\"groups\":[\"system:masters\"]}"
                                   : "Unauthorized";

        return (AgentReply){ .status = is_user ? 200 : 401,
                             .content_type = "application/json",
                             .body = text,
                             .length = strlen(text),
                             .fd = -EBADF };
}

/* The first byte of a reply chooses its status. */
static int on_agent_replies(sd_event_source *source, void *userdata) {
        static const unsigned statuses[] = { 200, 404, 500, 503, 426 };
        AgentRequest *request = userdata;
        char settings[512], *body = NULL;
        AgentReply reply = { .error = -ECONNREFUSED, .fd = -EBADF };
        bool is_known = request->is_of_settings || request->is_of_signer ||
                        (request->is_of_access && !(settings_flags & SETTING_REVIEWS));
        Bytes piece = is_known ? (Bytes){ 0 } : take_piece();

        if (request->is_of_settings) {
                reply = settings_reply(settings);
        } else if (request->is_of_signer) {
                reply = (AgentReply){ .status = 101, .fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) };
        } else if (is_known) {
                reply = access_reply();
                has_reviewed = true;
        } else if (piece.size > 0) {
                Bytes rest = { piece.data + 1, piece.size - 1 };

                body = strndup((const char *) rest.data, rest.size);
                assert(body);
                reply = (AgentReply){ .status = statuses[piece.data[0] % N_ELEMENTS(statuses)],
                                      .content_type = "application/json",
                                      .body = body,
                                      .length = strlen(body),
                                      .fd = -EBADF };
                has_reviewed |= request->is_of_access && reply.status == 200 && strchr(body, '{');
                if (reply.status == 200 && request->kind != AGENT_COLLECT)
                        reply.fd = make_ended_connection(rest);
                if (reply.status == 200 && request->kind == AGENT_WEBSOCKET)
                        reply.status = 101;
        }
        request->on_reply(&reply, request->userdata);
        free(body);
        (void) agent_request_cancel(request);
        return 0;
}

int agent_request_start(sd_event *event, const AgentRequestSpec *spec, agent_reply_t on_reply,
                        void *userdata, AgentRequest **ret) {
        AgentRequest *request = calloc(1, sizeof(*request));

        assert(request && spec->path[0] == '/' && !strpbrk(spec->path, " \r\n"));
        request->kind = spec->kind;
        request->on_reply = on_reply;
        request->userdata = userdata;
        request->is_of_settings = strcmp(spec->path, "/nodeapi/settings") == 0;
        request->is_of_signer = strcmp(spec->path, "/nodeapi/signer") == 0;
        request->is_of_access = strncmp(spec->path, "/nodeapi/access", 15) == 0;
        assert(!spec->credential || !strstr(spec->credential, "\r\n\r\n"));
        assert(sd_event_add_defer(event, &request->source, on_agent_replies, request) >= 0);
        n_agent_requests++;
        *ret = request;
        return 0;
}

/* ---- the client ---- */

static bool drain_client(void) {
        bool is_any = only_stream && drain(only_stream->client_fd);

        return (only_stream && drain(only_stream->far_fd)) || is_any;
}

/* Runs the loop until only the passage of time could cause another event. */
static void run_until_idle(sd_event *event) {
        do {
                while (sd_event_run(event, 0) > 0)
                        if (only_stream && only_stream->has_ended)
                                only_stream->handlers->on_closed(only_stream,
                                                                 only_stream->userdata);
        } while (drain_client());
}

/* The client sends the rest of its bytes, and ends. */
static void end_session(NodeApi *server) {
        Bytes bytes = take_piece();

        if (bytes.size > 0) {
                (void) send(only_stream->far_fd, bytes.data, bytes.size, MSG_NOSIGNAL);
                run_until_idle(server->event);
        }
        if (!only_stream)
                return;
        (void) shutdown(only_stream->far_fd, SHUT_WR);
        run_until_idle(server->event);
}

static void run_client(NodeApi *server, Bytes bytes) {
        static const struct in6_addr address = { 0 };

        api_connection_new(server, -EBADF, &address);
        assert(only_stream);
        only_stream->handlers->on_open(only_stream, only_stream->http_fd, only_stream->userdata);
        for (size_t sent = 0; only_stream && sent < bytes.size;) {
                ssize_t n = send(only_stream->client_fd, bytes.data + sent, bytes.size - sent,
                                 MSG_NOSIGNAL);

                run_until_idle(server->event);
                if (n <= 0)
                        break;
                sent += (size_t) n;
        }
        if (only_stream && only_stream->far_fd >= 0)
                end_session(server);
        if (only_stream) {
                (void) shutdown(only_stream->client_fd, SHUT_RDWR);
                if (only_stream->far_fd >= 0)
                        (void) shutdown(only_stream->far_fd, SHUT_RDWR);
                run_until_idle(server->event);
        }
        if (only_stream) {
                only_stream->handlers->on_closed(only_stream, only_stream->userdata);
                run_until_idle(server->event);
        }
}

static int lowest_free_descriptor(void) {
        int fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);

        assert(fd >= 0);
        close(fd);
        return fd;
}

/* A server for each combination of settings, which costs more to make than an input to run. */
static NodeApi *server_of_settings(unsigned flags) {
        static NodeApi *servers[SETTING_ALONE + SETTING_ANONYMOUS + SETTING_REVIEWS + 1];
        NodeApiConfig config = { .agent_socket = "/nonexistent" };

        if (servers[flags])
                return servers[flags];
        assert(sd_event_new(&config.event) >= 0);
        config.listen_fd_consume = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        assert(node_api_new(&config, &servers[flags], NULL) >= 0);
        sd_event_unref(config.event);
        run_until_idle(servers[flags]->event);
        assert(servers[flags]->credentials);
        return servers[flags];
}

/* Resets the state that is kept from one client to the next, so that no input depends on earlier
 * inputs. */
static void forget_clients(NodeApi *server) {
        if (has_reviewed) {
                review_cache_clear(server->granted);
                review_cache_clear(server->known_tokens);
        }
        has_reviewed = false;
        for (size_t i = 0; i < N_ELEMENTS(server->versions); i++)
                server->versions[i] = object_versions_free(server->versions[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        NodeApi *server;
        int lowest;

        if (size == 0)
                return 0;
        log_set_level(LOG_EMERG);
        settings_flags = data[0];
        server =
                server_of_settings(data[0] & (SETTING_ALONE | SETTING_ANONYMOUS | SETTING_REVIEWS));
        lowest = lowest_free_descriptor();
        unread = (Bytes){ data + 1, size - 1 };
        run_client(server, take_piece());
        assert(server->n_connections == 0 && n_agent_requests == 0);
        forget_clients(server);
        assert(fcntl(lowest, F_GETFD) < 0);
        return 0;
}
