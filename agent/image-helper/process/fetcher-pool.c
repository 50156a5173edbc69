/* SPDX-License-Identifier: Apache-2.0 */

/* The queue is a SEQPACKET socket that all fetchers read: an idle fetcher takes the next request
 * whole. Each completes its request before it takes another, so nothing here waits for two things
 * at once. */

#include "agent/image-helper/process/fetcher-pool.h"

#include "agent/image-helper/process/image-confine.h"
#include "agent/image-helper/process/parent-check.h"
#include "agent/image-helper/process/safe-message.h"
#include "agent/image-helper/pull/docker-configs.h"
#include "common/cleanup.h"
#include "common/curl-library.h"
#include "common/file.h"
#include "common/packet.h"

#include <fcntl.h>
#include <sys/socket.h>

enum {
        WAKEUP_BYTES = 128 * 1024 /* the reader is not woken for fewer bytes */
};

/* The descriptors of one request. */
typedef struct FetchTarget {
        int fd;
        int wakeup_fd;
        size_t unsignaled;
} FetchTarget;

static int write_fetched_bytes(const void *data, size_t length, uint64_t position, void *userdata) {
        FetchTarget *target = userdata;
        int r;

        target->unsignaled += length;
        r = pwrite_all(target->fd, data, length, position);
        if (r < 0)
                return r;
        /* If the pipe is full, a wake-up is already pending. At the end, closing the pipe wakes the
         * reader. */
        if (target->wakeup_fd >= 0 && target->unsignaled >= WAKEUP_BYTES) {
                (void) !write(target->wakeup_fd, "", 1);
                target->unsignaled = 0;
        }
        return 0;
}

/* ---- in the fetcher ---- */

static int receive_fetch_request(int queue, FetchRequest *ret, FetchTarget *ret_target) {
        struct iovec iov = { .iov_base = ret, .iov_len = sizeof(*ret) };
        MessageFds passed;
        struct msghdr message = { .msg_iov = &iov,
                                  .msg_iovlen = 1,
                                  .msg_control = &passed,
                                  .msg_controllen = sizeof(passed) };
        int fds[2] = { -EBADF, -EBADF };
        ssize_t n;

        do
                n = recvmsg(queue, &message, MSG_CMSG_CLOEXEC);
        while (n < 0 && errno == EINTR);
        if (n < 0)
                return -errno;
        (void) message_take_fds(&message, fds, N_ELEMENTS(fds));
        *ret_target = (FetchTarget){ .fd = fds[0], .wakeup_fd = fds[1] };
        if (n != sizeof(*ret) || fds[0] < 0)
                return -EPIPE;
        ret->name[FETCH_NAME_SIZE - 1] = '\0';
        return 0;
}

static int serve_fetch_request(RegistryClient *registry, int queue, const FetchRequest *request,
                               FetchTarget *target) {
        cleanup_error Error error = ERROR_NULL;
        FetchReply reply = { .id = request->id };
        size_t endpoint = 0;

        reply.r = registry_client_get(registry,
                                      &(RegistryObject){ .kind = request->kind,
                                                         .name = request->name,
                                                         .first = request->first,
                                                         .from = request->from,
                                                         .size_max = request->size_max,
                                                         .on_data = write_fetched_bytes,
                                                         .userdata = target },
                                      reply.media_type, &endpoint, &reply.secret, &error);
        reply.endpoint = (uint32_t) endpoint;
        if (reply.r < 0) {
                cleanup_free char *message = format_safe_message(&error, reply.r);

                (void) snprintf(reply.message, sizeof(reply.message), "%.1020s", strna(message));
        }
        return send(queue, &reply, sizeof(reply), MSG_NOSIGNAL) < 0 ? -errno : 0;
}

static void refuse_fetch_requests(int queue, int r, const Error *error) {
        FetchTarget target = { .fd = -EBADF, .wakeup_fd = -EBADF };
        FetchRequest request;

        while (receive_fetch_request(queue, &request, &target) >= 0) {
                FetchReply reply = { .id = request.id, .r = r };

                (void) snprintf(reply.message, sizeof(reply.message), "%.1000s",
                                error_message(error, r));
                close_fd(target.fd);
                close_fd(target.wakeup_fd);
                (void) send(queue, &reply, sizeof(reply), MSG_NOSIGNAL);
        }
}

/* The reply is sent before the descriptors are closed, so that a reader that sees the end of the
 * pipe can rely on the reply. A fetcher that cannot reply ends. */
static void run_fetcher(Endpoints *endpoints, int queue) {
        cleanup_with(registry_client_freep) RegistryClient *registry = NULL;
        cleanup_error Error error = ERROR_NULL;
        FetchTarget target = { .fd = -EBADF, .wakeup_fd = -EBADF };
        FetchRequest request;
        int r;

        r = confine_fetcher(&error);
        if (r >= 0)
                r = pull_secrets_add_credentials(endpoints);
        if (r >= 0)
                r = registry_client_new(endpoints, &registry);
        if (r < 0) {
                refuse_fetch_requests(queue, r, &error);
                return;
        }
        while (r >= 0 && receive_fetch_request(queue, &request, &target) >= 0) {
                r = serve_fetch_request(registry, queue, &request, &target);
                close_fd(target.fd);
                close_fd(target.wakeup_fd);
        }
}

/* ---- in the caller ---- */

static int start_fetcher(Endpoints *endpoints, const int *close_in_fetcher, FetcherPool *fetchers,
                         int queue) {
        pid_t pid = parent_check_fork();

        if (pid < 0)
                return -errno;
        if (pid > 0) {
                fetchers->pids[fetchers->n++] = pid;
                return 0;
        }
        close_fd(fetchers->fd);
        for (; *close_in_fetcher >= 0; close_in_fetcher++)
                close_fd(*close_in_fetcher);
        run_fetcher(endpoints, queue);
        _exit(0);
}

int fetcher_pool_start(Endpoints *endpoints, size_t n, const int *close_in_fetcher,
                       FetcherPool *ret, Error *reterr) {
        cleanup_with(fetcher_pool_done) FetcherPool fetchers = { .fd = -EBADF };
        cleanup_close int queue = -EBADF;
        int fds[2], r = 0;

        if (!curl_library(reterr)) /* it must be loaded before a fetcher is confined */
                return -ELIBACC;
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
                return -errno;
        fetchers.fd = fds[0];
        queue = fds[1];
        while (r >= 0 && fetchers.n < MIN(n, (size_t) FETCHERS_MAX))
                r = start_fetcher(endpoints, close_in_fetcher, &fetchers, queue);
        if (r < 0)
                return error_prefixf(reterr, r, "cannot start a fetcher process");
        *ret = fetchers;
        fetchers = (FetcherPool){ .fd = -EBADF };
        return 0;
}

int fetcher_pool_submit(const FetcherPool *fetchers, const FetchRequest *request, int fd,
                        int wakeup_fd) {
        struct iovec iov = { .iov_base = (void *) (uintptr_t) request,
                             .iov_len = sizeof(*request) };
        MessageFds passed;
        struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };
        const int fds[] = { fd, wakeup_fd };

        message_pass_fds(&message, &passed, fds, wakeup_fd < 0 ? 1 : 2);
        return sendmsg(fetchers->fd, &message, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

int fetcher_pool_receive(const FetcherPool *fetchers, FetchReply *ret) {
        struct iovec iov = { .iov_base = ret, .iov_len = sizeof(*ret) };
        struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };
        ssize_t n;

        do
                n = recvmsg(fetchers->fd, &message, MSG_CMSG_CLOEXEC);
        while (n < 0 && errno == EINTR);
        if (n != sizeof(*ret))
                return n < 0 ? -errno : -EPIPE;
        ret->media_type[sizeof(ret->media_type) - 1] = '\0';
        ret->message[sizeof(ret->message) - 1] = '\0';
        return 0;
}

/* Fetchers run as another user and cannot be killed: an idle one exits when the queue is closed, a
 * busy one when its parent exits. */
void fetcher_pool_done(FetcherPool *fetchers) {
        close_fd(fetchers->fd);
        *fetchers = (FetcherPool){ .fd = -EBADF };
}
