/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shim/agent-connection.h"

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/failpoint.h"
#include "common/log.h"
#include "common/packet.h"
#include "common/pipe.h"

#include <sys/socket.h>

#define SHORTAGE_USEC (100 * USEC_PER_MSEC)

enum {
        PACKETS_PER_TURN = 16,
};

/* No more requests can arrive. */
static void drop_unread_requests(int fd) {
        char byte;

        while (recv(fd, &byte, 1, MSG_DONTWAIT) > 0)
                ;
}

static void close_agent_peer(AgentConnection *connection) {
        epoll_source_remove(connection->epoll_fd, &connection->peer);
        /* Tasks may have copies of the descriptor, so the connection is shut down explicitly. If
         * requests were left unread, the agent would get a reset instead of the preceding events,
         * and without the greeting it would assume that the shim is exiting. */
        if (connection->peer.fd >= 0) {
                (void) shutdown(connection->peer.fd, SHUT_RDWR);
                drop_unread_requests(connection->peer.fd);
        }
        connection->peer.fd = close_fd(connection->peer.fd);
        packet_queue_clear(&connection->queue);
}

/* Closes the connection when out of memory, so that the agent connects again and repeats unfinished
 * requests. The next connection, from the same agent, has to wait; otherwise both processes would
 * reconnect in a loop until there is memory. */
static void agent_connection_interrupt(AgentConnection *connection, const char *what) {
        log_warning("%s: %s; the agent connects again", what, strerror(ENOMEM));
        close_agent_peer(connection);
        if (epoll_source_change(connection->epoll_fd, &connection->listener, 0) >= 0)
                connection->accept_at = now_awake_usec() + SHORTAGE_USEC;
}

void agent_connection_continue(AgentConnection *connection, uint64_t now_awake) {
        if (connection->accept_at > now_awake)
                return;
        connection->accept_at = USEC_INFINITY;
        (void) epoll_source_change(connection->epoll_fd, &connection->listener, EPOLLIN);
}

/* Writes as much of the queue as the socket accepts. */
static void flush_packet_queue(AgentConnection *connection) {
        while (connection->queue.first) {
                const QueuedPacket *packet = connection->queue.first;

                if (send(connection->peer.fd, packet->data, packet->length,
                         MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
                        if (errno == EINTR)
                                continue;
                        /* The end of the peer is handled when reading, because the peer may have
                         * left requests. */
                        break;
                }
                packet_queue_pop(&connection->queue);
        }
        (void) epoll_source_change(connection->epoll_fd, &connection->peer,
                                   connection->queue.first ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

static int encode_event(const ShimEvent *event, char **ret, size_t *ret_length) {
        FAIL_AT("shim.encode-event");
        return shim_event_encode(event, ret, ret_length);
}

static int decode_request(const char *data, size_t length, ShimRequest *ret, Error *reterr) {
        FAIL_AT("shim.decode-request");
        return shim_request_decode(data, length, ret, reterr);
}

void agent_connection_send(AgentConnection *connection, const ShimEvent *event) {
        cleanup_free char *data = NULL;
        size_t length = 0;
        int r;

        if (connection->peer.fd < 0)
                return;
        DIE_AT("shim.send-event");
        r = encode_event(event, &data, &length);
        if (r == -ENOMEM) {
                agent_connection_interrupt(connection, "Cannot send an event to the agent");
                return;
        }
        if (r < 0) {
                (void) log_warning_errno(r, "Cannot send an event to the agent");
                return;
        }
        if (!connection->queue.first &&
            send(connection->peer.fd, data, length, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
                return;
        r = packet_queue_append(&connection->queue, QUEUE_BYTES_MAX, data, length);
        if (r < 0) {
                log_warning("Cannot queue an event for an agent that does not read: %s; closing "
                            "the connection",
                            strerror(-r));
                close_agent_peer(connection);
                return;
        }
        (void) TAKE_PTR(data);
        flush_packet_queue(connection);
}

void agent_connection_greet(AgentConnection *connection, int fd) {
        int r = packet_send(connection->peer.fd, connection->greeting, connection->greeting_length,
                            fd);

        if (r < 0) {
                (void) log_warning_errno(r, "Cannot greet the agent");
                close_agent_peer(connection);
        }
}

static void handle_request_packet(AgentConnection *connection, const char *data, size_t length) {
        cleanup_shim_request ShimRequest request = { 0 };
        cleanup_error Error error = ERROR_NULL;
        int r = decode_request(data, length, &request, &error);

        if (r >= 0) {
                connection->on_request(connection, &request);
                return;
        }
        if (r == -ENOMEM) {
                agent_connection_interrupt(connection, "Cannot read a request of the agent");
                return;
        }
        if (r != -ENOTSUP) /* the agent gets an error event; the shim cannot repair it */
                log_warning("Dropped request: %s", error_message(&error, r));
        agent_connection_send(connection, &(ShimEvent){ .type = SHIM_EVENT_ERROR,
                                                        .message = error_message(&error, r) });
}

/* Reads one packet. 1; 0 if none is pending, or this side has closed the connection; -errno if the
 * peer has closed it. */
static int receive_request_packet(AgentConnection *connection) {
        int fd = connection->peer.fd;
        cleanup_free char *data = NULL;
        ssize_t length, n;

        length = recv(fd, NULL, 0, MSG_PEEK | MSG_TRUNC | MSG_DONTWAIT);
        if (length < 0)
                return errno == EAGAIN || errno == EINTR ? 0 : -errno;
        if (length == 0)
                return -ECONNRESET;
        if (length <= SHIM_PROTOCOL_PACKET_MAX && !(data = malloc((size_t) length))) {
                agent_connection_interrupt(connection, "Cannot receive a request of the agent");
                return 0;
        }
        n = packet_receive(fd, data, data ? (size_t) length : 0, &connection->received_fd);
        if (n < 0)
                return (int) n;
        if (data)
                handle_request_packet(connection, data, (size_t) n);
        else
                log_warning("Dropped a request of %zd bytes: larger than a packet", n);
        connection->received_fd = close_fd(connection->received_fd);
        return 1;
}

static void on_agent_peer_ready(EpollSource *source, uint32_t events) {
        AgentConnection *connection = container_of(source, AgentConnection, peer);

        if (events & EPOLLOUT)
                flush_packet_queue(connection);
        for (unsigned i = 0; i < PACKETS_PER_TURN && connection->peer.fd >= 0; i++) {
                int r = receive_request_packet(connection);

                if (r < 0)
                        close_agent_peer(connection);
                if (r <= 0)
                        break;
        }
}

/* Requests of the previous agent are handled before the state is reported to the new one. */
static void send_rest_and_close_peer(AgentConnection *connection) {
        for (unsigned i = 0; i < 1024 && connection->peer.fd >= 0; i++)
                if (receive_request_packet(connection) <= 0)
                        break;
        close_agent_peer(connection);
}

static bool is_peer_root(int fd) {
        struct ucred credentials;
        socklen_t length = sizeof(credentials);

        return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &length) >= 0 &&
               credentials.uid == 0;
}

static void on_agent_connecting(EpollSource *source, uint32_t events) {
        AgentConnection *connection = container_of(source, AgentConnection, listener);
        int fd = accept4(source->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (fd < 0)
                return;
        if (!is_peer_root(fd)) {
                log_warning("Refused a connection: the peer is not root");
                close_fd(fd);
                return;
        }
        send_rest_and_close_peer(connection);
        connection->peer.fd = fd;
        if (epoll_source_add(connection->epoll_fd, &connection->peer, EPOLLIN) < 0) {
                connection->peer.fd = close_fd(fd);
                return;
        }
        connection->on_connected(connection);
}

int agent_connection_init(AgentConnection *connection, int epoll_fd, int listen_fd,
                          const ShimEvent *greeting) {
        int r = shim_event_encode(greeting, &connection->greeting, &connection->greeting_length);

        if (r < 0) {
                close_fd(listen_fd);
                return r;
        }
        connection->epoll_fd = epoll_fd;
        connection->accept_at = USEC_INFINITY;
        connection->listener = (EpollSource){ .fd = listen_fd, .on_ready = on_agent_connecting };
        connection->peer = (EpollSource){ .fd = -EBADF, .on_ready = on_agent_peer_ready };
        r = fd_set_nonblocking(listen_fd);
        return r < 0 ? r : epoll_source_add(epoll_fd, &connection->listener, EPOLLIN);
}

void agent_connection_done(AgentConnection *connection) {
        close_agent_peer(connection);
        epoll_source_remove(connection->epoll_fd, &connection->listener);
        connection->listener.fd = close_fd(connection->listener.fd);
        free(TAKE_PTR(connection->greeting));
}
