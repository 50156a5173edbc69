/* SPDX-License-Identifier: Apache-2.0 */

/* The agent replies with a socket, to which one of its child processes relays the connection.
 * Neither side waits for that process, so the connection may fail later, in which case IPv6 is
 * tried. */

#include "agent/node-api/session/forwarded-port.h"

#include "agent/node-api/process/agent-request.h"
#include "common/cleanup.h"
#include "common/packet.h"
#include "common/text.h"

#include <sys/epoll.h>

enum {
        MESSAGE_MAX = 512
};

struct ForwardedPort {
        sd_event *event;
        const ForwardedPortHandlers *handlers;
        void *userdata;
        char *agent_socket, *agent_path, *credential;
        AgentRequest *request; /* for a socket */
        int handover_fd;       /* the handover socket; -EBADF: no handover is awaited */
        sd_event_source *handover_source;
        ByteQueue early; /* data until the socket has arrived */
        int fd;
        StreamSocket *socket;
        bool is_ended; /* by us */
        bool is_paused;
        bool has_tried_ipv6;
        bool is_connected; /* data was read or written */
};

static bool has_port_socket(const ForwardedPort *port) {
        return port->socket && !port->request && port->handover_fd < 0;
}

static void on_port_data(const char *data, size_t length, void *userdata) {
        ForwardedPort *port = userdata;

        port->is_connected = true;
        port->handlers->on_data(port, data, length, port->userdata);
}

static void on_port_end(void *userdata) {
        ForwardedPort *port = userdata;

        port->handlers->on_end(port, port->userdata);
}

static void on_port_written(void *userdata) {
        ForwardedPort *port = userdata;

        port->is_connected = true;
        port->handlers->on_written(port, port->userdata);
}

static int request_port_socket(ForwardedPort *port, const char *family);

/* Unwritten data waits for the next socket. */
static int retry_by_ipv6(ForwardedPort *port) {
        ByteQueue *queue = stream_socket_queue(port->socket);

        port->has_tried_ipv6 = true;
        port->early = *queue;
        *queue = (ByteQueue){ 0 };
        return request_port_socket(port, "&family=6");
}

static void on_port_error(int error, void *userdata) {
        ForwardedPort *port = userdata;

        if (error == -ECONNREFUSED && !port->is_connected && !port->has_tried_ipv6 &&
            retry_by_ipv6(port) >= 0)
                return;
        port->handlers->on_failed(port, port->is_connected ? NULL : strerror(-error),
                                  port->userdata);
}

static const StreamSocketHandlers forwarded_port_socket_handlers = { on_port_data, on_port_end,
                                                                     on_port_written,
                                                                     on_port_error };

static int use_port_socket(ForwardedPort *port, int fd) {
        int r;

        port->socket = stream_socket_free(port->socket);
        close_fd(port->fd);
        port->fd = fd;
        r = stream_socket_new(port->event, fd, &forwarded_port_socket_handlers, port,
                              &port->socket);
        if (r < 0)
                return r;
        stream_socket_read_to_the_end(port->socket);
        *stream_socket_queue(port->socket) = port->early;
        port->early = (ByteQueue){ 0 };
        stream_socket_pause_reading(port->socket, port->is_paused);
        if (port->is_ended)
                stream_socket_shut_when_written(port->socket);
        return 0;
}

static void end_handover(ForwardedPort *port) {
        port->handover_source = sd_event_source_disable_unref(port->handover_source);
        port->handover_fd = close_fd(port->handover_fd);
}

/* The connection, or a message that explains why it failed. */
static int on_handover(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        ForwardedPort *port = userdata;
        char message[MESSAGE_MAX] = "";
        int connection = -EBADF, r = 0;
        ssize_t n = packet_receive(fd, message, sizeof(message) - 1, &connection);

        if (n == -EAGAIN || n == -EINTR)
                return 0;
        end_handover(port);
        if (connection >= 0)
                r = use_port_socket(port, connection);
        else if (n <= 0)
                r = n < 0 ? (int) n : -ECONNRESET;
        if (r < 0 || connection < 0)
                port->handlers->on_failed(port, r < 0 ? strerror(-r) : message, port->userdata);
        return 0;
}

static int await_handover(ForwardedPort *port, int fd) {
        port->handover_fd = fd;
        return sd_event_add_io(port->event, &port->handover_source, fd, EPOLLIN, on_handover, port);
}

static void on_port_reply(const AgentReply *reply, void *userdata) {
        ForwardedPort *port = userdata;
        int r = reply->error;

        port->request = NULL;
        if (r >= 0 && reply->fd >= 0)
                r = await_handover(port, reply->fd);
        if (r < 0 || reply->fd < 0)
                port->handlers->on_failed(port, r < 0 ? strerror(-r) : reply->body, port->userdata);
}

static int request_port_socket(ForwardedPort *port, const char *family) {
        cleanup_free char *path = NULL;
        AgentRequestSpec spec = { .socket_path = port->agent_socket,
                                  .kind = AGENT_DESCRIPTOR,
                                  .waits_for_agent = true };

        path = text_format("%s%s", port->agent_path, family);
        if (!path)
                return -ENOMEM;
        spec.path = path;
        spec.credential = port->credential;
        return agent_request_start(port->event, &spec, on_port_reply, port, &port->request);
}

int forwarded_port_new(sd_event *event, const char *agent_socket, const char *agent_path,
                       const char *credential, const ForwardedPortHandlers *handlers,
                       void *userdata, ForwardedPort **ret) {
        ForwardedPort *port = calloc(1, sizeof(*port));
        int r;

        if (!port)
                return -ENOMEM;
        port->event = sd_event_ref(event);
        port->handlers = handlers;
        port->userdata = userdata;
        port->fd = port->handover_fd = -EBADF;
        port->agent_socket = strdup(agent_socket);
        port->agent_path = strdup(agent_path);
        port->credential = strdup(strna(credential));
        r = port->agent_socket && port->agent_path && port->credential
                    ? request_port_socket(port, "")
                    : -ENOMEM;
        if (r < 0) {
                forwarded_port_free(port);
                return r;
        }
        *ret = port;
        return 0;
}

ForwardedPort *forwarded_port_free(ForwardedPort *port) {
        if (!port)
                return NULL;
        agent_request_cancel(port->request);
        end_handover(port);
        stream_socket_free(port->socket);
        close_fd(port->fd);
        byte_queue_done(&port->early);
        sd_event_unref(port->event);
        free(port->agent_socket);
        free(port->agent_path);
        free(port->credential);
        free(port);
        return NULL;
}

int forwarded_port_send(ForwardedPort *port, const void *data, size_t length) {
        ByteQueue *queue = has_port_socket(port) ? stream_socket_queue(port->socket) : &port->early;
        int r = byte_queue_append(queue, STREAM_QUEUE_MAX, data, length);

        if (has_port_socket(port))
                stream_socket_update(port->socket);
        return r;
}

void forwarded_port_end(ForwardedPort *port) {
        port->is_ended = true;
        if (has_port_socket(port))
                stream_socket_shut_when_written(port->socket);
}

static const ByteQueue *queue_of_forwarded_port(const ForwardedPort *port) {
        return has_port_socket(port) ? stream_socket_queue(port->socket) : &port->early;
}

bool forwarded_port_is_empty(const ForwardedPort *port) {
        return byte_queue_length(queue_of_forwarded_port(port)) == 0;
}

bool forwarded_port_is_full(const ForwardedPort *port) {
        return stream_queue_is_full(queue_of_forwarded_port(port));
}

void forwarded_port_pause_reading(ForwardedPort *port, bool is_paused) {
        port->is_paused = is_paused;
        if (has_port_socket(port))
                stream_socket_pause_reading(port->socket, is_paused);
}
