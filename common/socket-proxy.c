/* SPDX-License-Identifier: Apache-2.0 */
#include "common/socket-proxy.h"

#include "common/cleanup.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/un.h>
#include <unistd.h>

/* "near" is the client, "far" is the server. Data for the server is kept until the server accepts
 * it, and no more is read in the meantime. Data from the server always fits into the near socket,
 * because its amount is limited. */

enum {
        CHUNK = 16 * 1024,
};

struct SocketProxy {
        sd_event *event; /* the loop's */
        int client_fd;   /* listens until the client connects */
        int upstream_fd;
        sd_event_source *client_source;
        sd_event_source *upstream_source;
        bool is_accepted;
        bool is_connected;
        int error;
        size_t bytes_left; /* bytes that the server may still send */
        char pending[4096];
        size_t n_pending, n_sent;
};

static void close_proxy_sockets(SocketProxy *relay) {
        relay->client_source = sd_event_source_disable_unref(relay->client_source);
        relay->upstream_source = sd_event_source_disable_unref(relay->upstream_source);
        relay->client_fd = close_fd(relay->client_fd);
        relay->upstream_fd = close_fd(relay->upstream_fd);
}

static void forward_to_upstream(SocketProxy *relay) {
        size_t left = relay->n_pending - relay->n_sent;
        ssize_t n = send(relay->upstream_fd, relay->pending + relay->n_sent, left,
                         MSG_DONTWAIT | MSG_NOSIGNAL);

        if (n < 0 && errno != EAGAIN && errno != EINTR) {
                close_proxy_sockets(relay);
                return;
        }
        relay->n_sent += n > 0 ? (size_t) n : 0;
        if (relay->n_sent == relay->n_pending)
                relay->n_sent = relay->n_pending = 0;
        (void) sd_event_source_set_enabled(relay->client_source,
                                           relay->n_pending > 0 ? SD_EVENT_OFF : SD_EVENT_ON);
        (void) sd_event_source_set_io_events(relay->upstream_source,
                                             relay->n_pending > 0 ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

static void forward_to_client(SocketProxy *relay) {
        char chunk[CHUNK];
        ssize_t n = recv(relay->upstream_fd, chunk, MIN(sizeof(chunk), relay->bytes_left),
                         MSG_DONTWAIT);

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return;
        if (n <= 0 || send(relay->client_fd, chunk, (size_t) n, MSG_DONTWAIT | MSG_NOSIGNAL) != n)
                close_proxy_sockets(relay);
        else
                relay->bytes_left -= (size_t) n;
}

/* Neither socket is read before both are connected. */
static void enable_proxy_sources(SocketProxy *relay) {
        int is_on = relay->is_connected && relay->is_accepted ? SD_EVENT_ON : SD_EVENT_OFF;

        if (relay->is_accepted)
                (void) sd_event_source_set_enabled(relay->client_source, is_on);
        if (relay->is_connected)
                (void) sd_event_source_set_enabled(relay->upstream_source, is_on);
}

static int on_proxy_client(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        SocketProxy *relay = userdata;
        ssize_t n = recv(fd, relay->pending, sizeof(relay->pending), MSG_DONTWAIT);

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return 0;
        relay->n_pending = n > 0 ? (size_t) n : 0;
        if (n > 0)
                forward_to_upstream(relay);
        else
                close_proxy_sockets(relay);
        return 0;
}

static bool is_own_process(int fd) {
        struct ucred peer;
        socklen_t size = sizeof(peer);

        return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) >= 0 && peer.pid == getpid();
}

/* Every process in this network namespace can connect. */
static int on_proxy_listener(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        SocketProxy *relay = userdata;
        cleanup_close int accepted = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (accepted < 0 || !is_own_process(accepted))
                return 0;
        relay->client_source = sd_event_source_disable_unref(relay->client_source);
        close_fd(relay->client_fd);
        relay->client_fd = TAKE_FD(accepted);
        relay->is_accepted = true;
        if (sd_event_add_io(relay->event, &relay->client_source, relay->client_fd, EPOLLIN,
                            on_proxy_client, relay) < 0)
                close_proxy_sockets(relay);
        else
                enable_proxy_sources(relay);
        return 0;
}

static void check_upstream_connect(SocketProxy *relay) {
        int code = 0;
        socklen_t length = sizeof(code);

        if (getsockopt(relay->upstream_fd, SOL_SOCKET, SO_ERROR, &code, &length) < 0)
                code = errno;
        if (code != 0) {
                relay->error = -code;
                close_proxy_sockets(relay);
                return;
        }
        relay->is_connected = true;
        (void) sd_event_source_set_io_events(relay->upstream_source, EPOLLIN);
        enable_proxy_sources(relay);
}

static int on_proxy_upstream(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        SocketProxy *relay = userdata;

        if (!relay->is_connected)
                check_upstream_connect(relay);
        else if (events & EPOLLOUT)
                forward_to_upstream(relay);
        else
                forward_to_client(relay);
        return 0;
}

static int connect_upstream(SocketProxy *relay, const struct sockaddr *address, socklen_t length) {
        relay->upstream_fd =
                socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (relay->upstream_fd < 0)
                return -errno;
        return connect(relay->upstream_fd, address, length) < 0 && errno != EINPROGRESS ? -errno
                                                                                        : 0;
}

static int listen_for_proxy_client(SocketProxy *relay) {
        const struct sockaddr_un nameless = { .sun_family = AF_UNIX };

        relay->client_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        /* The kernel chooses the address. */
        if (relay->client_fd < 0 ||
            bind(relay->client_fd, (const struct sockaddr *) &nameless,
                 offsetof(struct sockaddr_un, sun_path)) < 0 ||
            listen(relay->client_fd, 4) < 0)
                return -errno;
        return sd_event_add_io(relay->event, &relay->client_source, relay->client_fd, EPOLLIN,
                               on_proxy_listener, relay);
}

int socket_proxy_new(sd_event *event, const struct sockaddr *address, socklen_t length,
                     size_t max_bytes, SocketProxy **ret) {
        cleanup_with(socket_proxy_freep) SocketProxy *relay = calloc(1, sizeof(*relay));
        int r;

        if (!relay)
                return -ENOMEM;
        *relay = (SocketProxy){
                .event = event, .client_fd = -EBADF, .upstream_fd = -EBADF, .bytes_left = max_bytes
        };
        r = listen_for_proxy_client(relay);
        if (r < 0)
                return r;
        relay->error = connect_upstream(relay, address, length);
        if (relay->error < 0) /* like later errors, reported when it is requested */
                close_proxy_sockets(relay);
        else
                r = sd_event_add_io(event, &relay->upstream_source, relay->upstream_fd, EPOLLOUT,
                                    on_proxy_upstream, relay);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(relay);
        return 0;
}

int socket_proxy_address(const SocketProxy *relay, struct sockaddr *ret, socklen_t *ret_length) {
        struct sockaddr_un address;
        socklen_t length = sizeof(address);

        if (getsockname(relay->client_fd, (struct sockaddr *) &address, &length) < 0)
                return -errno;
        if (length > sizeof(*ret))
                return -ENAMETOOLONG;
        memcpy(ret, &address, length);
        *ret_length = length;
        return 0;
}

SocketProxy *socket_proxy_free(SocketProxy *relay) {
        if (relay)
                close_proxy_sockets(relay);
        free(relay);
        return NULL;
}

int socket_proxy_error(const SocketProxy *relay) {
        return relay->error;
}
