/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shim/copier-channel.h"

#include "common/cleanup.h"
#include "common/packet.h"

#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>

/* In the message itself, 'fds' lists which descriptors follow. */
static void pass_copier_fds(struct msghdr *packet, MessageFds *space,
                            const CopierMessage *message) {
        int fds[N_COPIER_FDS];
        size_t n = 0;

        for (size_t i = 0; i < N_COPIER_FDS; i++)
                if (message->fds[i] >= 0)
                        fds[n++] = message->fds[i];
        message_pass_fds(packet, space, fds, n);
}

int copier_channel_send(int socket_fd, const CopierMessage *message, const void *data,
                        size_t length) {
        MessageFds passed;
        struct iovec parts[] = {
                { (void *) (uintptr_t) message, sizeof(*message) },
                { (void *) (uintptr_t) data, length },
        };
        struct msghdr packet = { .msg_iov = parts, .msg_iovlen = N_ELEMENTS(parts) };

        pass_copier_fds(&packet, &passed, message);
        return sendmsg(socket_fd, &packet, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

int copier_channel_write(int socket_fd, const CopierMessage *message, const void *data,
                         size_t length) {
        const struct iovec parts[] = {
                { (void *) (uintptr_t) message, sizeof(*message) },
                { (void *) (uintptr_t) data, length },
        };
        ssize_t n;

        do
                n = writev(socket_fd, parts, N_ELEMENTS(parts));
        while (n < 0 && errno == EINTR);
        return n < 0 ? -errno : 0;
}

/* Replaces the sender's descriptor numbers with the received ones. */
static int place_received_fds(CopierMessage *message, const int *fds, size_t n) {
        size_t taken = 0;

        for (size_t i = 0; i < N_COPIER_FDS; i++)
                if (message->fds[i] >= 0)
                        message->fds[i] = taken < n ? fds[taken++] : -EBADF;
        return taken == n ? 0 : -EBADMSG;
}

ssize_t copier_channel_receive(int socket_fd, bool waits, CopierMessage *ret, void *data,
                               size_t size) {
        MessageFds passed;
        struct iovec parts[] = { { ret, sizeof(*ret) }, { data, size } };
        struct msghdr packet = {
                .msg_iov = parts,
                .msg_iovlen = N_ELEMENTS(parts),
                .msg_control = &passed,
                .msg_controllen = sizeof(passed),
        };
        int fds[N_COPIER_FDS];
        ssize_t received;
        size_t n;

        /* On i386 glibc's recvmsg() uses another system call, whose arguments a filter cannot
         * examine. */
        do
                received = syscall(SYS_recvmsg, socket_fd, &packet,
                                   MSG_CMSG_CLOEXEC | (waits ? 0 : MSG_DONTWAIT));
        while (received < 0 && errno == EINTR);
        if (received <= 0)
                return received < 0 ? -errno : -ENOTCONN;
        n = message_take_fds(&packet, fds, N_ELEMENTS(fds));
        if ((size_t) received >= sizeof(*ret) &&
            (packet.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0 &&
            place_received_fds(ret, fds, n) >= 0)
                return received - (ssize_t) sizeof(*ret);
        for (size_t i = 0; i < n; i++)
                close_fd(fds[i]);
        return -EBADMSG;
}

void copier_message_close(CopierMessage *message) {
        for (size_t i = 0; i < N_COPIER_FDS; i++)
                message->fds[i] = close_fd(message->fds[i]);
}
