/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node-api/process/agent-request.h"

#include "agent/node-api/http/byte-queue.h"
#include "agent/node-api/process/agent-reply.h"
#include "common/channels.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/packet.h"
#include "common/text.h"
#include "common/unix-socket.h"
#include "common/websocket-handshake.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#define REPLY_USEC  (60 * USEC_PER_SEC) /* for the head, or for a whole buffered reply */
#define AWAIT_USEC  (10 * USEC_PER_SEC) /* for an agent that restarts */
#define REPEAT_USEC (100 * USEC_PER_MSEC)

enum {
        READ_MAX = 8192,
        NOT_READY_STATUS = 503, /* the status from an agent that is not ready for it yet */
};

struct AgentRequest {
        AgentRequestKind kind;
        agent_reply_t on_reply;
        void *userdata;
        sd_event *event; /* borrowed */
        char *socket_path;
        int fd;
        int passed_fd;
        size_t body_max;
        sd_event_source *source, *deadline;
        sd_event_source *repeat_timer;
        uint64_t repeat_until; /* boot time; 0: it is not repeated */
        bool changes_nothing;
        char *text; /* the request */
        size_t length, n_sent;
        ByteQueue in;
        size_t n_peeked; /* last bytes of 'in' that are still in the socket */
        AgentReplyHead head;
        bool has_head;
        bool has_ended; /* the agent has closed the connection */
};

AgentRequest *agent_request_cancel(AgentRequest *request) {
        if (!request)
                return NULL;
        sd_event_source_disable_unref(request->source);
        sd_event_source_disable_unref(request->deadline);
        sd_event_source_disable_unref(request->repeat_timer);
        close_fd(request->fd);
        close_fd(request->passed_fd);
        byte_queue_done(&request->in);
        free(request->text);
        free(request->socket_path);
        free(request);
        return NULL;
}

static void agent_request_cancelp(AgentRequest **request) {
        agent_request_cancel(*request);
}

/* ---- the reply ---- */

static void report_agent_reply(AgentRequest *request, AgentReply *reply) {
        request->source = sd_event_source_disable_unref(request->source);
        request->deadline = sd_event_source_disable_unref(request->deadline);
        request->repeat_timer = sd_event_source_disable_unref(request->repeat_timer);
        request->on_reply(reply, request->userdata);
        agent_request_cancel(request);
}

static void fail_agent_request(AgentRequest *request, int error) {
        report_agent_reply(request, &(AgentReply){ .error = error, .fd = -EBADF });
}

/* Whether no agent has received the complete request, and thus none has acted on it: no agent is
 * running, its connection queue is full, or it closed the connection before it had read the
 * request. If the connection was closed without -ECONNRESET, the request had been read. */
static bool is_request_unheard(const AgentRequest *request, int error) {
        bool is_unheard = error == -ENOENT || error == -ECONNREFUSED || error == -EAGAIN ||
                          error == -EPIPE || error == -ECONNRESET;

        return is_unheard && !request->has_ended && !request->has_head &&
               byte_queue_length(&request->in) == 0;
}

/* An incomplete reply counts as no reply. */
static bool may_repeat_request(const AgentRequest *request, int error) {
        bool is_cut = request->has_ended && request->changes_nothing;

        return (is_cut || is_request_unheard(request, error)) &&
               now_boottime_usec() < request->repeat_until;
}

static int on_repeat_due(sd_event_source *source, uint64_t usec, void *userdata);

static int set_repeat_timer(AgentRequest *request) {
        request->source = sd_event_source_disable_unref(request->source);
        request->repeat_timer = sd_event_source_disable_unref(request->repeat_timer);
        request->fd = close_fd(request->fd);
        request->passed_fd = close_fd(request->passed_fd);
        byte_queue_done(&request->in);
        request->head = (AgentReplyHead){ 0 };
        request->has_head = request->has_ended = false;
        request->n_peeked = 0;
        return sd_event_add_time_relative(request->event, &request->repeat_timer, CLOCK_MONOTONIC,
                                          REPEAT_USEC, 0, on_repeat_due, request);
}

/* Connecting, or the connection, has failed. 0: it is tried again; otherwise 'error'. */
static int repeat_request_later(AgentRequest *request, int error) {
        return may_repeat_request(request, error) ? set_repeat_timer(request) : error;
}

static void on_agent_lost(AgentRequest *request, int error) {
        int r = repeat_request_later(request, error);

        if (r < 0)
                fail_agent_request(request, r);
}

/* The status is 200 for a stream, and 101 for an upgrade. */
static bool has_agreed(const AgentRequest *request) {
        return request->head.status == (request->kind == AGENT_STREAM ? 200U : 101U);
}

static int take_reply_fd(AgentRequest *request) {
        if (request->kind == AGENT_COLLECT || !has_agreed(request))
                return -EBADF;
        return request->kind == AGENT_DESCRIPTOR ? TAKE_FD(request->passed_fd)
                                                 : TAKE_FD(request->fd);
}

static void finish_agent_request(AgentRequest *request) {
        AgentReply reply = { .status = request->head.status,
                             .content_type = request->head.content_type };
        size_t length = byte_queue_length(&request->in);
        char *body;

        if (byte_queue_append(&request->in, SIZE_MAX, "", 1) < 0) {
                fail_agent_request(request, -ENOMEM);
                return;
        }
        body = request->in.data + request->in.start;
        if (reply.status >= 400 && length > 0 && body[length - 1] == '\n')
                body[--length] = '\0';
        reply.body = body;
        reply.length = length;
        reply.fd = take_reply_fd(request);
        report_agent_reply(request, &reply);
}

/* An agent that has not read its kubeconfig yet replies to a review with NOT_READY_STATUS; an agent
 * that ends before the API server has replied sends a head without a body. */
static bool must_repeat_replied(const AgentRequest *request) {
        bool is_unready =
                request->head.status == NOT_READY_STATUS || byte_queue_length(&request->in) == 0;

        return request->changes_nothing && is_unready &&
               now_boottime_usec() < request->repeat_until;
}

static void take_complete_reply(AgentRequest *request) {
        int r;

        if (!must_repeat_replied(request)) {
                finish_agent_request(request);
                return;
        }
        r = set_repeat_timer(request);
        if (r < 0)
                fail_agent_request(request, r);
}

static bool is_reply_complete(const AgentRequest *request) {
        if (!request->has_head)
                return false;
        if (request->kind == AGENT_DESCRIPTOR && has_agreed(request))
                return request->passed_fd >= 0;
        if (request->kind != AGENT_COLLECT && has_agreed(request))
                return true;
        return request->head.body_length == SIZE_MAX
                       ? request->has_ended
                       : byte_queue_length(&request->in) >= request->head.body_length;
}

/* A session may start before its head has been read: its bytes stay in the socket for the next
 * owner. */
static int take_peeked_bytes(AgentRequest *request) {
        bool is_session = request->has_head && has_agreed(request);
        size_t n_left = is_session ? byte_queue_length(&request->in) : 0;
        size_t n_taken = request->n_peeked - n_left;
        char bytes[READ_MAX];

        request->n_peeked = 0;
        byte_queue_consume(&request->in, n_left);
        return n_taken == 0 || recv(request->fd, bytes, n_taken, MSG_DONTWAIT) == (ssize_t) n_taken
                       ? 0
                       : -EIO;
}

/* Reads once; 0, -EAGAIN, or another -errno. */
static int read_agent_bytes(AgentRequest *request) {
        union {
                struct cmsghdr header;
                char space[CMSG_SPACE(sizeof(int))];
        } control;
        char bytes[READ_MAX];
        struct iovec part = { bytes, sizeof(bytes) };
        struct msghdr message = { .msg_iov = &part,
                                  .msg_iovlen = 1,
                                  .msg_control = &control,
                                  .msg_controllen = sizeof(control) };
        bool peeks = request->kind == AGENT_WEBSOCKET && !request->has_head;
        ssize_t n = recvmsg(request->fd, &message,
                            MSG_DONTWAIT | MSG_CMSG_CLOEXEC | (peeks ? MSG_PEEK : 0));
        int fd;

        if (n < 0)
                return errno == EINTR ? -EAGAIN : -errno;
        fd = message_take_fd(&message);
        if (fd >= 0) {
                close_fd(request->passed_fd);
                request->passed_fd = fd;
        }
        request->has_ended = n == 0;
        request->n_peeked = peeks ? (size_t) n : 0;
        return byte_queue_append(&request->in, AGENT_HEAD_MAX + request->body_max, bytes,
                                 (size_t) n);
}

static int parse_agent_head(AgentRequest *request) {
        int r;

        if (request->has_head)
                return 0;
        r = agent_reply_head_parse(
                byte_queue_length(&request->in) > 0 ? byte_queue_bytes(&request->in) : "",
                byte_queue_length(&request->in), &request->head);
        if (r < 0)
                return r;
        if (r == 0)
                return byte_queue_length(&request->in) > AGENT_HEAD_MAX ? -EBADMSG : 0;
        request->has_head = true;
        byte_queue_consume(&request->in, request->head.length);
        return 0;
}

static void receive_agent_reply(AgentRequest *request) {
        int r = read_agent_bytes(request);

        if (r == -EAGAIN)
                return;
        if (r >= 0)
                r = parse_agent_head(request);
        if (r >= 0 && request->n_peeked > 0)
                r = take_peeked_bytes(request);
        if (r < 0)
                on_agent_lost(request, r);
        else if (is_reply_complete(request))
                take_complete_reply(request);
        else if (request->has_ended)
                on_agent_lost(request, -ECONNRESET);
}

/* ---- the request ---- */

static int send_agent_bytes(AgentRequest *request) {
        ssize_t n;

        if (request->n_sent == request->length)
                return 0;
        n = send(request->fd, request->text + request->n_sent, request->length - request->n_sent,
                 MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0)
                return errno == EAGAIN || errno == EINTR ? 0 : -errno;
        request->n_sent += (size_t) n;
        if (request->n_sent == request->length)
                (void) sd_event_source_set_io_events(request->source, EPOLLIN);
        return 0;
}

static int on_agent_socket(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        AgentRequest *request = userdata;
        int r = send_agent_bytes(request);

        if (r < 0)
                on_agent_lost(request, r);
        else if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
                receive_agent_reply(request);
        return 0;
}

static int on_agent_deadline(sd_event_source *source, uint64_t usec, void *userdata) {
        fail_agent_request(userdata, -ETIMEDOUT);
        return 0;
}

/* HTTP/1.0 if the end of the connection ends the reply. */
static int print_agent_request(const AgentRequestSpec *spec, AgentRequest *request) {
        static const char *const upgrades[] = { [AGENT_COLLECT] = "",
                                                [AGENT_STREAM] = "",
                                                [AGENT_WEBSOCKET] = "Upgrade: websocket\r\n"
                                                                    "Connection: Upgrade\r\n",
                                                [AGENT_DESCRIPTOR] = "Upgrade: descriptor\r\n"
                                                                     "Connection: Upgrade\r\n" };
        bool is_upgrade = spec->kind == AGENT_WEBSOCKET || spec->kind == AGENT_DESCRIPTOR;
        char key[WEBSOCKET_ACCEPT_SIZE], session[256] = "";

        if (spec->kind == AGENT_WEBSOCKET)
                (void) snprintf(session, sizeof(session),
                                "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %s\r\n"
                                "Sec-WebSocket-Protocol: " CHANNELS_PROTOCOL "\r\n",
                                websocket_new_key(key));
        request->text =
                text_format("%s %s HTTP/1.%c\r\nHost: mainstay\r\n%s%s%s\r\n",
                            spec->method ? spec->method : "GET", spec->path, is_upgrade ? '1' : '0',
                            upgrades[spec->kind], session, strna(spec->credential));
        if (!request->text)
                return -ENOMEM;
        request->length = strlen(request->text);
        return 0;
}

static int send_agent_request(AgentRequest *request) {
        request->n_sent = 0;
        request->fd = unix_connect(request->socket_path, SOCK_STREAM | SOCK_NONBLOCK);
        if (request->fd < 0)
                return request->fd;
        return sd_event_add_io(request->event, &request->source, request->fd, EPOLLIN | EPOLLOUT,
                               on_agent_socket, request);
}

static int on_repeat_due(sd_event_source *source, uint64_t usec, void *userdata) {
        AgentRequest *request = userdata;
        int r = send_agent_request(request);

        if (r < 0)
                on_agent_lost(request, r);
        return 0;
}

int agent_request_start(sd_event *event, const AgentRequestSpec *spec, agent_reply_t on_reply,
                        void *userdata, AgentRequest **ret) {
        cleanup_with(agent_request_cancelp) AgentRequest *request = calloc(1, sizeof(*request));
        int r;

        if (!request)
                return -ENOMEM;
        request->kind = spec->kind;
        request->on_reply = on_reply;
        request->userdata = userdata;
        request->passed_fd = -EBADF;
        request->body_max = spec->body_max > 0 ? spec->body_max : AGENT_BODY_MAX;
        request->fd = -EBADF;
        request->event = event;
        request->repeat_until = spec->waits_for_agent ? now_boottime_usec() + AWAIT_USEC : 0;
        request->changes_nothing = spec->changes_nothing;
        request->socket_path = strdup(spec->socket_path);
        r = request->socket_path ? print_agent_request(spec, request) : -ENOMEM;
        if (r >= 0)
                r = send_agent_request(request);
        if (r < 0)
                r = repeat_request_later(request, r);
        if (r < 0)
                return r;
        r = sd_event_add_time_relative(event, &request->deadline, CLOCK_MONOTONIC, REPLY_USEC, 0,
                                       on_agent_deadline, request);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(request);
        return 0;
}
