/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node-api/http/stream-socket.h"

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/event-source.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>

enum {
        READ_MAX = 63 * 1024,  /* with TLS, one packet on the loopback interface */
        READ_MORE = 32 * 1024, /* a shorter read has left nothing */
        READS_MAX = 4,         /* number of reads in one turn of the loop, so that others have their
                                * turn */
};

struct StreamSocket {
        int fd;
        const StreamTransport *transport; /* NULL: the descriptor is read and written directly */
        void *transport_userdata;
        const StreamSocketHandlers *handlers;
        void *userdata;
        sd_event_source *source;
        sd_event_source *idle_timer; /* NULL: no limit */
        uint64_t idle_usec, active_at;
        ByteQueue queue;
        bool is_paused;
        bool has_peer_ended;
        bool is_shutting;      /* shut down once the queue is empty */
        bool is_write_awaited; /* by the loop, for on_written() or on_error() */
        bool is_broken;
        bool reads_to_the_end;
        int write_error; /* -errno: nothing can be written, and unread input may remain */
};

static ssize_t receive_bytes(StreamSocket *socket, void *buffer, size_t size) {
        ssize_t n;

        if (socket->transport)
                return socket->transport->receive(socket->transport_userdata, buffer, size);
        n = recv(socket->fd, buffer, size, MSG_DONTWAIT);
        return n < 0 ? -errno : n;
}

static ssize_t send_queue(StreamSocket *socket) {
        const char *bytes = byte_queue_bytes(&socket->queue);
        size_t length = byte_queue_length(&socket->queue);
        ssize_t n;

        if (socket->transport)
                return socket->transport->send(socket->transport_userdata, bytes, length);
        n = send(socket->fd, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL);
        return n < 0 ? -errno : n;
}

static bool is_to_wait(ssize_t result) {
        return result == -EAGAIN || result == -EINTR;
}

static void break_stream_socket(StreamSocket *socket, int error) {
        socket->is_broken = true;
        socket->handlers->on_error(error, socket->userdata);
}

static void on_write_failed(StreamSocket *socket, int error) {
        bool is_closed = error == -EPIPE || error == -ECONNRESET;

        if (!socket->reads_to_the_end || !is_closed || socket->has_peer_ended) {
                break_stream_socket(socket, error);
                return;
        }
        socket->write_error = error;
        byte_queue_done(&socket->queue);
        socket->handlers->on_written(socket->userdata);
}

static void write_stream_queue(StreamSocket *socket) {
        bool is_awaited = socket->is_write_awaited;
        ssize_t n = 0;

        if (socket->is_broken || (byte_queue_length(&socket->queue) == 0 && !is_awaited))
                return;
        if (byte_queue_length(&socket->queue) > 0)
                n = send_queue(socket);
        if (is_to_wait(n))
                return;
        socket->is_write_awaited = false;
        if (n < 0) {
                on_write_failed(socket, (int) n);
                return;
        }
        socket->active_at = now_boottime_usec();
        byte_queue_consume(&socket->queue, (size_t) n);
        socket->handlers->on_written(socket->userdata);
}

/* A producer that has seen a full queue may be waiting, and errors must reach their handler. Both
 * callbacks are called from the loop, because handlers call these functions. */
static void write_client_queue(StreamSocket *socket) {
        ssize_t n = 0;

        if (!socket->transport || socket->is_write_awaited || socket->is_broken ||
            byte_queue_length(&socket->queue) == 0)
                return;
        socket->is_write_awaited = stream_queue_is_full(&socket->queue);
        while (n >= 0 && byte_queue_length(&socket->queue) > 0) {
                n = send_queue(socket);
                if (n < 0)
                        socket->is_write_awaited = true;
                else
                        byte_queue_consume(&socket->queue, (size_t) n);
        }
        socket->active_at = now_boottime_usec();
}

/* True if there may be more data. */
static bool read_stream_socket(StreamSocket *socket) {
        char bytes[READ_MAX];
        ssize_t n;

        if (socket->is_broken || socket->is_paused || socket->has_peer_ended)
                return false;
        n = receive_bytes(socket, bytes, sizeof(bytes));
        if (is_to_wait(n))
                return false;
        if (n < 0) {
                break_stream_socket(socket, (int) n);
        } else if (n > 0) {
                socket->active_at = now_boottime_usec();
                socket->handlers->on_data(bytes, (size_t) n, socket->userdata);
        } else if (socket->write_error < 0) {
                break_stream_socket(socket, socket->write_error);
        } else {
                socket->has_peer_ended = true;
                socket->handlers->on_end(socket->userdata);
        }
        return n >= READ_MORE;
}

/* While a client is not read, its unread data would hide that its connection was reset. */
static bool is_paused_client(const StreamSocket *socket) {
        return socket->transport && socket->is_paused && !socket->has_peer_ended &&
               !socket->is_broken;
}

static int on_stream_socket(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        StreamSocket *socket = userdata;
        unsigned n = 0;

        write_stream_queue(socket);
        while (read_stream_socket(socket) && ++n < READS_MAX)
                ;
        if (events & (EPOLLERR | EPOLLHUP) && is_paused_client(socket))
                break_stream_socket(socket, -ECONNRESET);
        stream_socket_update(socket);
        return 0;
}

int stream_socket_new(sd_event *event, int fd, const StreamSocketHandlers *handlers, void *userdata,
                      StreamSocket **ret) {
        StreamSocket *socket = calloc(1, sizeof(*socket));
        int r;

        if (!socket)
                return -ENOMEM;
        socket->fd = fd;
        socket->handlers = handlers;
        socket->userdata = userdata;
        r = sd_event_add_io(event, &socket->source, fd, EPOLLIN, on_stream_socket, socket);
        if (r < 0) {
                free(socket);
                return r;
        }
        *ret = socket;
        return 0;
}

int stream_socket_new_client(sd_event *event, const ClientStream *client,
                             const StreamSocketHandlers *handlers, void *userdata,
                             StreamSocket **ret) {
        cleanup_with(stream_socket_freep) StreamSocket *socket = NULL;
        int r = stream_socket_new(event, client->fd, handlers, userdata, &socket);

        if (r < 0)
                return r;
        socket->transport = client->transport;
        socket->transport_userdata = client->transport_userdata;
        r = stream_socket_limit_idle(socket, client->idle_usec);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(socket);
        return 0;
}

StreamSocket *stream_socket_free(StreamSocket *socket) {
        if (!socket)
                return NULL;
        sd_event_source_disable_unref(socket->source);
        sd_event_source_disable_unref(socket->idle_timer);
        byte_queue_done(&socket->queue);
        free(socket);
        return NULL;
}

/* Data only updates the time, so that the timer is not set again for each chunk. */
static int on_stream_idle(sd_event_source *source, uint64_t usec, void *userdata) {
        StreamSocket *socket = userdata;
        uint64_t idle_usec = now_boottime_usec() - socket->active_at;

        if (socket->is_broken)
                return 0;
        if (idle_usec >= socket->idle_usec) {
                break_stream_socket(socket, -ETIMEDOUT);
                return 0;
        }
        return event_timer_arm(source, socket->idle_usec - idle_usec);
}

int stream_socket_limit_idle(StreamSocket *socket, uint64_t idle_usec) {
        socket->idle_usec = idle_usec;
        socket->active_at = now_boottime_usec();
        socket->idle_timer = sd_event_source_disable_unref(socket->idle_timer);
        if (idle_usec == 0)
                return 0;
        return sd_event_add_time_relative(sd_event_source_get_event(socket->source),
                                          &socket->idle_timer, CLOCK_BOOTTIME, idle_usec, 0,
                                          on_stream_idle, socket);
}

ByteQueue *stream_socket_queue(StreamSocket *socket) {
        return &socket->queue;
}

static void arm_stream_socket(StreamSocket *socket) {
        bool reads = !socket->is_paused && !socket->has_peer_ended && !socket->is_broken;
        bool has_bytes = byte_queue_length(&socket->queue) > 0 && !socket->is_broken;
        bool writes = has_bytes || (socket->is_write_awaited && !socket->is_broken);
        uint32_t events = (reads ? EPOLLIN : 0U) | (writes ? EPOLLOUT : 0U);

        if (socket->is_shutting && !has_bytes && !socket->is_broken) {
                socket->is_shutting = false;
                if (socket->transport)
                        socket->transport->shut(socket->transport_userdata);
                else
                        (void) shutdown(socket->fd, SHUT_WR);
        }
        /* Disabled if no event is awaited, because a hang-up would be reported continuously. */
        (void) sd_event_source_set_io_events(socket->source, events);
        (void) sd_event_source_set_enabled(
                socket->source, events || is_paused_client(socket) ? SD_EVENT_ON : SD_EVENT_OFF);
}

void stream_socket_update(StreamSocket *socket) {
        if (socket->write_error < 0)
                byte_queue_done(&socket->queue);
        write_client_queue(socket);
        arm_stream_socket(socket);
}

void stream_socket_pause_reading(StreamSocket *socket, bool is_paused) {
        socket->is_paused = is_paused;
        stream_socket_update(socket);
}

void stream_socket_read_to_the_end(StreamSocket *socket) {
        socket->reads_to_the_end = true;
}

void stream_socket_shut_when_written(StreamSocket *socket) {
        socket->is_shutting = true;
        stream_socket_update(socket);
}
