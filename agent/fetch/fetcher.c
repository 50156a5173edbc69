/* SPDX-License-Identifier: Apache-2.0 */

/* The queue is one SEQPACKET socket that all of them read: who is free takes the next request
 * whole. Each speaks for itself, to its end, before it takes another, so that there is nothing here
 * that waits for two things at once. */

#include "agent/fetch/fetcher.h"

#include "agent/fetch/confine.h"
#include "agent/fetch/orphan.h"
#include "agent/fetch/registry.h"
#include "agent/fetch/sentence.h"
#include "common/cleanup.h"

#include <curl/curl.h>
#include <fcntl.h>
#include <signal.h>
#include <stdalign.h>
#include <sys/prctl.h>
#include <sys/socket.h>

enum {
        RING_BYTES = 128 * 1024 /* who reads behind us is not woken for less */
};

/* The ends of one request. */
typedef struct Target {
        int fd;
        int doorbell;
        size_t unrung;
} Target;

static int on_data(const void *data, size_t length, uint64_t position, void *userdata) {
        Target *target = userdata;

        target->unrung += length;
        while (length > 0) {
                ssize_t n = pwrite(target->fd, data, length, (off_t) position);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                data = (const char *) data + n;
                position += (uint64_t) n;
                length -= (size_t) n;
        }
        /* A full pipe has rung already. The end of the pipe rings for the rest. */
        if (target->doorbell >= 0 && target->unrung >= RING_BYTES) {
                (void) !write(target->doorbell, "", 1);
                target->unrung = 0;
        }
        return 0;
}

/* ---- a fetcher's own side ---- */

static int receive(int queue, FetchRequest *ret, Target *ret_target) {
        struct iovec iov = { .iov_base = ret, .iov_len = sizeof(*ret) };
        alignas(struct cmsghdr) char control[CMSG_SPACE(2 * sizeof(int))];
        struct msghdr message = { .msg_iov = &iov,
                                  .msg_iovlen = 1,
                                  .msg_control = control,
                                  .msg_controllen = sizeof(control) };
        const struct cmsghdr *header;
        int fds[2] = { -EBADF, -EBADF };
        ssize_t n;

        do
                n = recvmsg(queue, &message, MSG_CMSG_CLOEXEC);
        while (n < 0 && errno == EINTR);
        if (n < 0)
                return -errno;
        header = CMSG_FIRSTHDR(&message);
        if (header && header->cmsg_type == SCM_RIGHTS)
                memcpy(fds, CMSG_DATA(header), MIN(header->cmsg_len - CMSG_LEN(0), sizeof(fds)));
        *ret_target = (Target){ .fd = fds[0], .doorbell = fds[1] };
        if (n != sizeof(*ret) || fds[0] < 0)
                return -EPIPE;
        ret->name[FETCH_NAME_SIZE - 1] = '\0';
        return 0;
}

static void serve_request(Registry *registry, int queue, const FetchRequest *request,
                          Target *target) {
        cleanup_error Error error = ERROR_NULL;
        FetchReply reply = { .id = request->id };
        size_t endpoint = 0;

        reply.r = registry_get(registry,
                               &(RegistryObject){ .is_blob = request->is_blob,
                                                  .name = request->name,
                                                  .first = request->first,
                                                  .from = request->from,
                                                  .size_max = request->size_max,
                                                  .on_data = on_data,
                                                  .userdata = target },
                               reply.media_type, &endpoint, &error);
        reply.endpoint = (uint32_t) endpoint;
        if (reply.r < 0) {
                cleanup_free char *sentence = sentence_format(&error, reply.r);

                (void) snprintf(reply.sentence, sizeof(reply.sentence), "%.1020s", strna(sentence));
        }
        (void) send(queue, &reply, sizeof(reply), MSG_NOSIGNAL);
}

static void refuse_all(int queue, int r, const Error *error) {
        Target target = { .fd = -EBADF, .doorbell = -EBADF };
        FetchRequest request;

        while (receive(queue, &request, &target) >= 0) {
                FetchReply reply = { .id = request.id, .r = r };

                (void) snprintf(reply.sentence, sizeof(reply.sentence), "%.1000s",
                                error_message(error, r));
                close_fd(target.fd);
                close_fd(target.doorbell);
                (void) send(queue, &reply, sizeof(reply), MSG_NOSIGNAL);
        }
}

static void serve(const Endpoints *endpoints, int queue) {
        cleanup_with(registry_freep) Registry *registry = NULL;
        cleanup_error Error error = ERROR_NULL;
        Target target = { .fd = -EBADF, .doorbell = -EBADF };
        FetchRequest request;
        int r;

        r = confine_fetcher(&error);
        if (r >= 0)
                r = registry_new(endpoints, &registry);
        if (r < 0) {
                refuse_all(queue, r, &error);
                return;
        }
        while (receive(queue, &request, &target) >= 0) {
                serve_request(registry, queue, &request, &target);
                close_fd(target.fd);
                close_fd(target.doorbell);
        }
}

/* ---- our side ---- */

static int start_one(const Endpoints *endpoints, const int *not_theirs, Fetchers *fetchers,
                     int queue) {
        pid_t parent = getpid(), pid = fork();

        if (pid < 0)
                return -errno;
        if (pid > 0) {
                fetchers->pids[fetchers->n++] = pid;
                return 0;
        }
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() == parent) {
                close_fd(fetchers->fd);
                for (; *not_theirs >= 0; not_theirs++)
                        close_fd(*not_theirs);
                orphan_set_parent(parent);
                serve(endpoints, queue);
        }
        _exit(0);
}

int fetchers_start(const Endpoints *endpoints, size_t n, const int *not_theirs, Fetchers *ret,
                   Error *reterr) {
        cleanup_with(fetchers_done) Fetchers fetchers = { .fd = -EBADF };
        cleanup_close int queue = -EBADF;
        int fds[2], r = 0;

        if (curl_global_init(CURL_GLOBAL_DEFAULT) != 0)
                return error_setf(reterr, EIO, "libcurl cannot be set up");
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
                return -errno;
        fetchers.fd = fds[0];
        queue = fds[1];
        while (r >= 0 && fetchers.n < MIN(n, (size_t) FETCHERS_MAX))
                r = start_one(endpoints, not_theirs, &fetchers, queue);
        if (r < 0)
                return error_prefixf(reterr, r, "cannot start a process that fetches");
        *ret = fetchers;
        fetchers = (Fetchers){ .fd = -EBADF };
        return 0;
}

int fetchers_ask(const Fetchers *fetchers, const FetchRequest *request, int fd, int doorbell) {
        struct iovec iov = { .iov_base = (void *) (uintptr_t) request,
                             .iov_len = sizeof(*request) };
        alignas(struct cmsghdr) char control[CMSG_SPACE(2 * sizeof(int))] = { 0 };
        size_t size = (doorbell < 0 ? 1 : 2) * sizeof(int);
        struct msghdr message = { .msg_iov = &iov,
                                  .msg_iovlen = 1,
                                  .msg_control = control,
                                  .msg_controllen = CMSG_SPACE(size) };
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        int fds[] = { fd, doorbell };

        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(size);
        memcpy(CMSG_DATA(header), fds, size);
        return sendmsg(fetchers->fd, &message, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

int fetchers_hear(const Fetchers *fetchers, FetchReply *ret) {
        struct iovec iov = { .iov_base = ret, .iov_len = sizeof(*ret) };
        struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };
        ssize_t n;

        do
                n = recvmsg(fetchers->fd, &message, MSG_CMSG_CLOEXEC);
        while (n < 0 && errno == EINTR);
        if (n != sizeof(*ret))
                return n < 0 ? -errno : -EPIPE;
        ret->media_type[sizeof(ret->media_type) - 1] = '\0';
        ret->sentence[sizeof(ret->sentence) - 1] = '\0';
        return 0;
}

/* They are another user's by now, and not ours to kill: an idle one ends with the queue, a busy one
 * with its parent. */
void fetchers_done(Fetchers *fetchers) {
        close_fd(fetchers->fd);
        *fetchers = (Fetchers){ .fd = -EBADF };
}
