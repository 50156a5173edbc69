/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image-helper/source/source-fetcher.h"

#include "agent/image-helper/process/image-confine.h"
#include "agent/image-helper/process/parent-check.h"
#include "agent/image-helper/process/safe-message.h"
#include "common/cleanup.h"
#include "common/curl-library.h"
#include "common/file.h"
#include "common/memfd.h"
#include "common/packet.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum {
        SOURCE_REDIRECTS_MAX = 5,
        AUTHORITY_BYTES_MAX = 1024 * 1024,
        ETAG_SETTLED_SEC = 2,
        TICK_MSEC = 500
};

/* The state of a request in the fetcher. */
typedef struct SourceTransport {
        const SourceSettings *settings;
        HttpTransport *http;
        Endpoint endpoint;
} SourceTransport;

typedef struct SourceTarget {
        int fd;
        uint64_t received;
} SourceTarget;

/* ---- in the fetcher ---- */

static int write_source_bytes(const void *data, size_t length, uint64_t position, void *userdata) {
        SourceTarget *target = userdata;

        target->received += length;
        return pwrite_all(target->fd, data, length, position);
}

/* Servers derive ETags from the size of a file and its modification time in seconds, so a file that
 * has only just been modified may change again without a new ETag. */
static bool is_etag_settled(const TransportResponse *response) {
        return response->date == 0 || response->last_modified == 0 ||
               response->date - response->last_modified >= ETAG_SETTLED_SEC;
}

/* A response that ends when its connection is closed may have been truncated anywhere, and
 * truncated YAML may be valid. */
static int judge_source_response(const TransportResponse *response, SourceReply *reply,
                                 Error *reterr) {
        reply->is_unchanged = response->status == 304;
        (void) snprintf(reply->etag, sizeof(reply->etag), "%s",
                        is_etag_settled(response) ? response->etag : "");
        if (response->status == 304)
                return 0;
        if (response->status != 200 && response->status != 206)
                return error_setf(reterr, EREMOTEIO, "the server answered with status %ld",
                                  response->status);
        if (!response->has_end)
                return error_setf(reterr, EPROTO,
                                  "the server does not send the length of its response, whose end "
                                  "may be missing");
        return 0;
}

static bool is_source_redirect(long status) {
        return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

/* One request, without following redirects. 1: continue at '*url'. */
static int perform_source_request(const SourceTransport *transport, const SourceRequest *request,
                                  char **url, SourceTarget *target, SourceReply *reply,
                                  Error *reterr) {
        cleanup_with(transport_response_done) TransportResponse response = { 0 };
        bool is_own = url_same_origin(request->url, *url);
        char *const *headers = is_own ? transport->settings->headers : NULL;
        TransportFault fault;
        char *next;
        int r = http_transport_perform(
                transport->http,
                &(TransportRequest){ .url = *url,
                                     .endpoint = &transport->endpoint,
                                     .was_redirected = reply->n_requests > 0,
                                     .headers = (const char *const *) headers,
                                     .etag = request->etag[0] ? request->etag : NULL,
                                     .rate_max = transport->settings->rate_max,
                                     .timeout_sec = request->timeout_sec,
                                     .from = request->from,
                                     .body_max = request->size_max,
                                     .on_data = write_source_bytes,
                                     .userdata = target },
                &response, &fault, reterr);

        reply->n_requests++;
        reply->was_interrupted = r < 0 && fault == TRANSPORT_INTERRUPTED;
        if (r < 0)
                return r;
        if (!is_source_redirect(response.status) || !response.location)
                return judge_source_response(&response, reply, reterr);
        r = url_resolve_location(*url, response.location, transport->endpoint.may_be_plain, &next,
                                 reterr);
        if (r < 0)
                return r;
        free(*url);
        *url = next;
        return 1;
}

static int follow_source_request(const SourceTransport *transport, const SourceRequest *request,
                                 SourceTarget *target, SourceReply *reply, Error *reterr) {
        cleanup_free char *url = strdup(request->url);

        if (!url)
                return -ENOMEM;
        while (reply->n_requests <= SOURCE_REDIRECTS_MAX) {
                int r = perform_source_request(transport, request, &url, target, reply, reterr);

                if (r <= 0)
                        return r;
        }
        return error_setf(reterr, ELOOP, "the server redirects more than %d times",
                          SOURCE_REDIRECTS_MAX);
}

static int receive_source_request(int socket, SourceRequest *ret, int *ret_fd) {
        struct iovec iov = { .iov_base = ret, .iov_len = sizeof(*ret) };
        MessageFds passed;
        struct msghdr message = { .msg_iov = &iov,
                                  .msg_iovlen = 1,
                                  .msg_control = &passed,
                                  .msg_controllen = sizeof(passed) };
        ssize_t n;

        do
                n = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
        while (n < 0 && errno == EINTR);
        if (n != (ssize_t) sizeof(*ret))
                return -EPIPE;
        *ret_fd = message_take_fd(&message);
        if (*ret_fd < 0)
                return -EPIPE;
        ret->url[sizeof(ret->url) - 1] = '\0';
        ret->etag[sizeof(ret->etag) - 1] = '\0';
        return 0;
}

static int send_source_reply(int socket, const SourceReply *reply) {
        struct iovec iov = { .iov_base = (void *) (uintptr_t) reply, .iov_len = sizeof(*reply) };

        return sendmsg(socket, &(struct msghdr){ .msg_iov = &iov, .msg_iovlen = 1 }, MSG_NOSIGNAL) <
                               0
                       ? -errno
                       : 0;
}

static void serve_source_requests(SourceTransport *transport, int socket, int failure,
                                  const Error *reason) {
        SourceRequest request;
        int fd;

        while (receive_source_request(socket, &request, &fd) >= 0) {
                SourceTarget target = { .fd = fd };
                SourceReply reply = { .r = failure };
                cleanup_error Error error = ERROR_NULL;
                cleanup_free char *message = NULL;

                if (failure >= 0)
                        reply.r =
                                follow_source_request(transport, &request, &target, &reply, &error);
                reply.received = target.received;
                if (reply.r < 0)
                        message = format_safe_message(failure < 0 ? reason : &error, reply.r);
                (void) snprintf(reply.message, sizeof(reply.message), "%.1020s", strna(message));
                close_fd(fd);
                if (send_source_reply(socket, &reply) < 0)
                        return;
        }
}

static void run_source_fetcher(SourceTransport *transport, int socket) {
        const SourceSettings *settings = transport->settings;
        const Endpoints proxies = { .proxy_http = settings->proxy_http,
                                    .proxy_https = settings->proxy_https,
                                    .proxy_none_for = settings->proxy_none_for,
                                    .stall_seconds = settings->stall_seconds };
        cleanup_error Error error = ERROR_NULL;
        int r = confine_fetcher(&error);

        if (r >= 0)
                r = http_transport_new(&proxies, &transport->http);
        serve_source_requests(transport, socket, r < 0 ? r : 0, &error);
        http_transport_free(transport->http);
}

/* ---- in the caller ---- */

/* The fetcher runs as an unprivileged user, which may not be able to read the file. */
int copy_authorities(const char *path, int *ret_fd, Error *reterr) {
        cleanup_free char *text = NULL;
        size_t length;
        int r;

        if (!path)
                return 0;
        r = read_file_at(AT_FDCWD, path, AUTHORITY_BYTES_MAX, &text, &length);
        if (r < 0)
                return error_prefixf(reterr, r, "%s", path);
        r = memfd_open("authorities", text, length);
        if (r < 0)
                return r;
        *ret_fd = r;
        return 0;
}

static int fork_source_fetcher(SourceTransport *transport, const int *close_in_fetcher,
                               const int sockets[2], pid_t *ret_pid) {
        pid_t pid = parent_check_fork();

        if (pid < 0)
                return -errno;
        if (pid > 0) {
                *ret_pid = pid;
                return 0;
        }
        close_fd(sockets[0]);
        for (; *close_in_fetcher >= 0; close_in_fetcher++)
                close_fd(*close_in_fetcher);
        run_source_fetcher(transport, sockets[1]);
        _exit(0);
}

int source_fetcher_start(const SourceSettings *settings, const int *close_in_fetcher,
                         SourceFetcher *ret, Error *reterr) {
        cleanup_close int authorities = -EBADF;
        SourceTransport transport = { .settings = settings };
        int sockets[2], r;

        if (!curl_library(reterr)) /* must be loaded before a fetcher is confined */
                return -ELIBACC;
        r = copy_authorities(settings->authority_file, &authorities, reterr);
        if (r < 0)
                return r;
        transport.endpoint = (Endpoint){ .may_be_plain = strncmp(settings->url, "http:", 5) == 0,
                                         .authorities_fd = authorities,
                                         .certificate_fd = -EBADF,
                                         .key_fd = -EBADF };
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0)
                return -errno;
        r = fork_source_fetcher(&transport, close_in_fetcher, sockets, &ret->pid);
        close_fd(sockets[1]);
        if (r < 0) {
                close_fd(sockets[0]);
                return error_prefixf(reterr, r, "cannot start a fetcher process");
        }
        ret->fd = sockets[0];
        return 0;
}

static int send_source_request(const SourceFetcher *fetcher, const SourceRequest *request, int fd) {
        struct iovec iov = { .iov_base = (void *) (uintptr_t) request,
                             .iov_len = sizeof(*request) };
        MessageFds passed;
        struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };

        message_pass_fds(&message, &passed, &fd, 1);
        return sendmsg(fetcher->fd, &message, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* The fetcher has closed its socket. */
static int explain_end_of_fetcher(SourceFetcher *fetcher, Error *reterr) {
        int status = 0;
        pid_t pid = fetcher->pid;

        fetcher->pid = 0;
        if (pid > 0 && waitpid(pid, &status, 0) == pid &&
            parent_check_error_of_status(status) == -ENOMEM)
                return error_setf(reterr, ENOMEM, "the fetcher process: %s", strerror(ENOMEM));
        return error_setf(reterr, EPIPE, "the fetcher process ended");
}

static void tick_until_reply(const SourceFetcher *fetcher) {
        struct pollfd fd = { .fd = fetcher->fd, .events = POLLIN };

        while (fetcher->on_tick && poll(&fd, 1, TICK_MSEC) == 0)
                fetcher->on_tick(fetcher->userdata);
}

int source_fetcher_get(SourceFetcher *fetcher, const SourceRequest *request, int fd,
                       SourceReply *ret, Error *reterr) {
        struct iovec iov = { .iov_base = ret, .iov_len = sizeof(*ret) };
        struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };
        int r = send_source_request(fetcher, request, fd);
        ssize_t n;

        if (r == -EPIPE || r == -ECONNRESET)
                return explain_end_of_fetcher(fetcher, reterr);
        if (r < 0)
                return r;
        tick_until_reply(fetcher);
        do
                n = recvmsg(fetcher->fd, &message, 0);
        while (n < 0 && errno == EINTR);
        if (n != (ssize_t) sizeof(*ret))
                return explain_end_of_fetcher(fetcher, reterr);
        ret->message[sizeof(ret->message) - 1] = '\0';
        ret->etag[sizeof(ret->etag) - 1] = '\0';
        return ret->r < 0 ? error_setf(reterr, -ret->r, "%s", ret->message) : 0;
}

void source_fetcher_done(SourceFetcher *fetcher) {
        close_fd(fetcher->fd);
        *fetcher = (SourceFetcher){ .fd = -EBADF };
}
