/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shim/connection.h"

#include "common/cleanup.h"
#include "common/log.h"
#include "common/packet.h"

#include <fcntl.h>
#include <sys/socket.h>

enum {
        PACKETS_PER_TURN = 16,
};

static void drop_peer(Connection *connection) {
        source_remove(connection->epoll_fd, &connection->peer);
        /* A task may hold a copy of the descriptor; the agent shall see the end now. */
        if (connection->peer.fd >= 0)
                (void) shutdown(connection->peer.fd, SHUT_RDWR);
        connection->peer.fd = close_fd(connection->peer.fd);
        packet_queue_clear(&connection->queue);
}

/* Writes what is queued as far as the socket takes it. */
static void send_queued(Connection *connection) {
        while (connection->queue.first) {
                const Packet *packet = connection->queue.first;

                if (send(connection->peer.fd, packet->data, packet->length,
                         MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
                        if (errno == EINTR)
                                continue;
                        /* A peer that is gone is seen when we read: it may have left requests. */
                        break;
                }
                packet_queue_pop(&connection->queue);
        }
        (void) source_change(connection->epoll_fd, &connection->peer,
                             connection->queue.first ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

void connection_send(Connection *connection, const Event *event) {
        cleanup_free char *data = NULL;
        size_t length = 0;
        int r;

        if (connection->peer.fd < 0)
                return;
        r = event_encode(event, &data, &length);
        if (r < 0) {
                (void) log_warning_errno(r, "Cannot tell the agent what happened");
                return;
        }
        if (!connection->queue.first &&
            send(connection->peer.fd, data, length, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
                return;
        r = packet_queue_append(&connection->queue, QUEUE_BYTES_MAX, data, length);
        if (r < 0) {
                (void) log_warning_errno(r, "The agent does not listen, closing the connection");
                drop_peer(connection);
                return;
        }
        (void) TAKE_PTR(data);
        send_queued(connection);
}

void connection_greet(Connection *connection, const Event *event, int fd) {
        cleanup_free char *data = NULL;
        size_t length = 0;

        if (connection->queue.first || event_encode(event, &data, &length) < 0 ||
            packet_send(connection->peer.fd, data, length, fd) < 0)
                connection_send(connection, event);
}

static void handle_packet(Connection *connection, const char *data, size_t length) {
        cleanup_request Request request = { 0 };
        cleanup_error Error error = ERROR_NULL;
        int r = request_decode(data, length, &request, &error);

        if (r >= 0) {
                connection->on_request(connection, &request);
                return;
        }
        if (r != -ENOTSUP) /* of that the agent is told, and there is nothing to repair here */
                log_warning("Dropped a request: %s", error_message(&error, r));
        connection_send(connection,
                        &(Event){ .type = EVENT_ERROR, .message = error_message(&error, r) });
}

/* One packet. 1; 0 when there is none; -errno when the peer is gone. */
static int receive(Connection *connection) {
        int fd = connection->peer.fd;
        cleanup_free char *data = NULL;
        ssize_t length, n;

        length = recv(fd, NULL, 0, MSG_PEEK | MSG_TRUNC | MSG_DONTWAIT);
        if (length < 0)
                return errno == EAGAIN || errno == EINTR ? 0 : -errno;
        if (length == 0)
                return -ECONNRESET;
        data = length <= PROTOCOL_PACKET_MAX ? malloc((size_t) length) : NULL;
        n = packet_receive(fd, data, data ? (size_t) length : 0, &connection->received_fd);
        if (n < 0)
                return (int) n;
        if (data)
                handle_packet(connection, data, (size_t) n);
        else
                log_warning("Dropped a request of %zd bytes", n);
        connection->received_fd = close_fd(connection->received_fd);
        return 1;
}

static void on_peer(Source *source, uint32_t events) {
        Connection *connection = container_of(source, Connection, peer);

        if (events & EPOLLOUT)
                send_queued(connection);
        for (unsigned i = 0; i < PACKETS_PER_TURN && connection->peer.fd >= 0; i++) {
                int r = receive(connection);

                if (r < 0)
                        drop_peer(connection);
                if (r <= 0)
                        break;
        }
}

/* What the last agent asked for before it went is done before the next one is told how things
 * are. */
static void finish_peer(Connection *connection) {
        for (unsigned i = 0; i < 1024 && connection->peer.fd >= 0; i++)
                if (receive(connection) <= 0)
                        break;
        drop_peer(connection);
}

static bool is_root(int fd) {
        struct ucred credentials;
        socklen_t length = sizeof(credentials);

        return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &length) >= 0 &&
               credentials.uid == 0;
}

static void on_listener(Source *source, uint32_t events) {
        Connection *connection = container_of(source, Connection, listener);
        int fd = accept4(source->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (fd < 0)
                return;
        if (!is_root(fd)) {
                log_warning("Refused a connection of a user who is not root");
                close_fd(fd);
                return;
        }
        finish_peer(connection);
        connection->peer.fd = fd;
        if (source_add(connection->epoll_fd, &connection->peer, EPOLLIN) < 0) {
                connection->peer.fd = close_fd(fd);
                return;
        }
        connection->on_connected(connection);
}

int connection_init(Connection *connection, int epoll_fd, int listen_fd) {
        connection->epoll_fd = epoll_fd;
        connection->listener = (Source){ .fd = listen_fd, .on_ready = on_listener };
        connection->peer = (Source){ .fd = -EBADF, .on_ready = on_peer };
        if (fcntl(listen_fd, F_SETFL, O_NONBLOCK) < 0)
                return -errno;
        return source_add(epoll_fd, &connection->listener, EPOLLIN);
}

void connection_done(Connection *connection) {
        drop_peer(connection);
        source_remove(connection->epoll_fd, &connection->listener);
        connection->listener.fd = close_fd(connection->listener.fd);
}
