/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shim/copier.h"

#include "agent/shim/copier-process.h"
#include "agent/shim/process-fork.h"
#include "agent/shim/shim-confine.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/failpoint.h"
#include "common/log.h"
#include "common/pipe.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* A copier that ends sooner than this is not replaced immediately, because the next one would
 * probably end for the same reason. */
#define LIFE_USEC_MIN (1 * USEC_PER_SEC)

enum {
        END_PATIENCE_MS = 2000,
        LINE_MAX_BYTES = 64 * 1024, /* a line longer than the limit has a separate file */
        MESSAGES_PER_TURN = 16,
};

struct QueuedCopierMessage {
        QueuedCopierMessage *next;
        CopierMessage message; /* with separate descriptors */
        size_t length;
        char data[];
};

/* ---- to the copier ---- */

static void free_first_queued(Copier *copier) {
        QueuedCopierMessage *first = copier->queue;

        copier->queue = first->next;
        copier_message_close(&first->message);
        free(first);
}

static void close_copier_sockets(Copier *copier) {
        epoll_source_remove(copier->epoll_fd, &copier->socket);
        epoll_source_remove(copier->epoll_fd, &copier->files);
        copier->socket.fd = close_fd(copier->socket.fd);
        copier->files.fd = close_fd(copier->files.fd);
        while (copier->queue)
                free_first_queued(copier);
}

void copier_replace(Copier *copier) {
        close_copier_sockets(copier);
        if (copier->pid > 0)
                (void) kill(copier->pid, SIGKILL); /* not reaped yet: the PID is valid */
}

static QueuedCopierMessage *copy_message(const CopierMessage *message, const void *data,
                                         size_t length) {
        QueuedCopierMessage *copy = malloc(sizeof(*copy) + length);

        if (!copy)
                return NULL;
        copy->next = NULL;
        copy->message = *message;
        copy->length = length;
        if (length > 0)
                memcpy(copy->data, data, length);
        for (size_t i = 0; i < N_COPIER_FDS; i++)
                if (message->fds[i] >= 0)
                        copy->message.fds[i] = fcntl(message->fds[i], F_DUPFD_CLOEXEC, 3);
        return copy;
}

static void queue_message(Copier *copier, const CopierMessage *message, const void *data,
                          size_t length) {
        QueuedCopierMessage **end = &copier->queue, *copy = copy_message(message, data, length);

        if (!copy) {
                log_warning("Cannot queue a message for the log copier: %s; another one is started",
                            strerror(ENOMEM));
                copier_replace(copier);
                return;
        }
        while (*end)
                end = &(*end)->next;
        *end = copy;
        (void) epoll_source_change(copier->epoll_fd, &copier->socket, EPOLLIN | EPOLLOUT);
}

bool copier_send(Copier *copier, const CopierMessage *message, const void *data, size_t length) {
        int r;

        if (copier->socket.fd < 0)
                return false;
        r = copier->queue ? -EAGAIN : copier_channel_send(copier->socket.fd, message, data, length);
        if (r == -EAGAIN || r == -EINTR || r == -ENOBUFS || r == -ENOMEM || r == -ETOOMANYREFS)
                queue_message(copier, message, data, length);
        else if (r < 0 && r != -EPIPE && r != -ECONNRESET) /* it is exiting: SIGCHLD follows */
                (void) log_warning_errno(r, "Cannot send a message to the log copier");
        return copier->socket.fd >= 0;
}

static void flush_queue(Copier *copier) {
        while (copier->queue) {
                const QueuedCopierMessage *first = copier->queue;

                if (copier_channel_send(copier->socket.fd, &first->message, first->data,
                                        first->length) < 0)
                        return;
                free_first_queued(copier);
        }
        (void) epoll_source_change(copier->epoll_fd, &copier->socket, EPOLLIN);
}

/* ---- from the copier ---- */

/* The copier may send anything. Descriptors are not accepted, and 'on_message' trusts nothing. */
static void on_copier_ready(EpollSource *source, uint32_t events) {
        Copier *copier = container_of(source, Copier, socket);
        CopierMessage message = COPIER_MESSAGE(COPIER_ANSWER, 0);
        static char data[COPIER_CAPTURE_MAX + 1];
        ssize_t n;

        if (events & EPOLLOUT)
                flush_queue(copier);
        n = copier_channel_receive(source->fd, /* waits= */ false, &message, data,
                                   COPIER_CAPTURE_MAX);
        if (n == -EAGAIN)
                return;
        if (n < 0) {
                copier_replace(copier);
                return;
        }
        copier_message_close(&message);
        data[n] = '\0';
        copier->operations->on_message(copier, &message, data, (size_t) n);
}

static void on_files_requested(EpollSource *source, uint32_t events) {
        Copier *copier = container_of(source, Copier, files);
        cleanup_copier_message CopierMessage request = COPIER_MESSAGE(COPIER_ANSWER, 0);
        cleanup_copier_message CopierMessage answer = COPIER_MESSAGE(COPIER_ANSWER, 0);
        ssize_t n = copier_channel_receive(source->fd, /* waits= */ false, &request, NULL, 0);
        int r;

        if (n == -EAGAIN)
                return;
        if (n >= 0) {
                answer.id = request.id;
                answer.result = -EINVAL;
                copier->operations->on_request(copier, &request, &answer);
        }
        r = n < 0 ? (int) n : copier_channel_send(source->fd, &answer, NULL, 0);
        if (r < 0) /* the copier does not wait for answers, or is gone */
                copier_replace(copier);
}

/* ---- the process ---- */

static uint64_t file_limit(const Copier *copier) {
        return copier->file_size_max == 0 ? RLIM_INFINITY
                                          : MAX(copier->file_size_max, (uint64_t) LINE_MAX_BYTES);
}

void copier_set_log_limit(Copier *copier, uint64_t max_size) {
        struct rlimit limit;

        copier->file_size_max = max_size;
        limit = (struct rlimit){ file_limit(copier), file_limit(copier) };
        if (copier->pid > 0)
                (void) prlimit(copier->pid, RLIMIT_FSIZE, &limit, NULL);
}

static void run_copier(pid_t shim, const int sockets[2], const int files[2]) {
        int kept[] = { sockets[1], files[1] };
        int r;

        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        r = confine_descriptors(kept, N_ELEMENTS(kept));
        if (r >= 0)
                r = confine_streams(shim);
        if (r >= 0)
                copier_process_run(sockets[1], files[1]);
        _exit(-MAX(r, -UINT8_MAX));
}

static int watch_copier(Copier *copier) {
        int r = fd_set_nonblocking(copier->socket.fd);

        if (r < 0)
                return r;
        r = epoll_source_add(copier->epoll_fd, &copier->socket, EPOLLIN);
        return r < 0 ? r : epoll_source_add(copier->epoll_fd, &copier->files, EPOLLIN);
}

static int fork_copier(Copier *copier, const int sockets[2], const int files[2]) {
        pid_t shim = getpid();

        FAIL_AT("copier.start");
        copier->pid = process_fork();
        if (copier->pid < 0) {
                copier->pid = 0;
                return -errno;
        }
        if (copier->pid == 0)
                run_copier(shim, sockets, files);
        return 0;
}

static int start_copier(Copier *copier) {
        int sockets[2] = { -EBADF, -EBADF }, files[2] = { -EBADF, -EBADF }, r = 0;

        copier->started_at = now_awake_usec();
        copier->start_at = USEC_INFINITY;
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0 ||
            socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, files) < 0)
                r = -errno;
        if (r >= 0)
                r = fork_copier(copier, sockets, files);
        close_fd(sockets[1]);
        close_fd(files[1]);
        copier->socket = (EpollSource){ sockets[0], on_copier_ready };
        copier->files = (EpollSource){ files[0], on_files_requested };
        if (r >= 0)
                r = watch_copier(copier);
        if (r < 0) {
                copier_replace(copier);
                if (copier->pid == 0) /* no SIGCHLD follows */
                        copier->start_at = copier->started_at + LIFE_USEC_MIN;
                return r;
        }
        copier_set_log_limit(copier, copier->file_size_max);
        copier->operations->on_started(copier);
        return 0;
}

int copier_init(Copier *copier, int epoll_fd, const CopierOperations *operations) {
        int r;

        copier->epoll_fd = epoll_fd;
        copier->operations = operations;
        r = start_copier(copier);
        if (r != -EAGAIN)
                return r;
        /* The process limit has been reached, which the caller that starts a container reports to
         * the agent. */
        (void) log_warning_errno(r, "Cannot start the log copier");
        return 0;
}

unsigned copier_new_id(Copier *copier) {
        return ++copier->last_id;
}

bool copier_reap(Copier *copier, pid_t pid) {
        uint64_t now = now_awake_usec();

        if (pid != copier->pid)
                return false;
        copier->pid = 0;
        close_copier_sockets(copier);
        log_warning("The log copier has ended; another one is started");
        copier->start_at = MAX(now, copier->started_at + LIFE_USEC_MIN);
        copier_continue(copier, now);
        return true;
}

void copier_continue(Copier *copier, uint64_t now_awake) {
        int r;

        if (copier->start_at > now_awake)
                return;
        r = start_copier(copier);
        if (r < 0)
                (void) log_warning_errno(r, "Cannot start the log copier");
}

void copier_done(Copier *copier) {
        struct pollfd poller = { .events = POLLIN };

        close_copier_sockets(copier);
        if (copier->pid <= 0)
                return;
        poller.fd = (int) syscall(SYS_pidfd_open, copier->pid, 0);
        if (poller.fd < 0 || poll(&poller, 1, END_PATIENCE_MS) <= 0)
                (void) kill(copier->pid, SIGKILL);
        close_fd(poller.fd);
        while (waitpid(copier->pid, NULL, 0) < 0 && errno == EINTR)
                ;
        copier->pid = 0;
}
