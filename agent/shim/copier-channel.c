/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shim/copier-channel.h"

#include "common/cleanup.h"

#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>

typedef union FdControlBuffer {
        struct cmsghdr header;
        char space[CMSG_SPACE(N_COPIER_FDS * sizeof(int))];
} FdControlBuffer;

/* In the message itself, 'fds' lists which of them follow. */
static size_t fill_control_buffer(FdControlBuffer *control, const CopierMessage *message) {
        int fds[N_COPIER_FDS];
        size_t n = 0;

        for (size_t i = 0; i < N_COPIER_FDS; i++)
                if (message->fds[i] >= 0)
                        fds[n++] = message->fds[i];
        if (n == 0)
                return 0;
        control->header = (struct cmsghdr){ .cmsg_level = SOL_SOCKET,
                                            .cmsg_type = SCM_RIGHTS,
                                            .cmsg_len = CMSG_LEN(n * sizeof(int)) };
        memcpy(CMSG_DATA(&control->header), fds, n * sizeof(int));
        return CMSG_SPACE(n * sizeof(int));
}

int copier_channel_send(int socket_fd, const CopierMessage *message, const void *data,
                        size_t length) {
        FdControlBuffer control = { 0 };
        struct iovec parts[] = {
                { (void *) (uintptr_t) message, sizeof(*message) },
                { (void *) (uintptr_t) data, length },
        };
        struct msghdr packet = { .msg_iov = parts, .msg_iovlen = N_ELEMENTS(parts) };

        packet.msg_controllen = fill_control_buffer(&control, message);
        packet.msg_control = packet.msg_controllen > 0 ? &control : NULL;
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

/* The number of descriptors, all of which are the caller's. */
static size_t take_received_fds(struct msghdr *packet, int ret[static N_COPIER_FDS]) {
        size_t n = 0;

        for (struct cmsghdr *header = CMSG_FIRSTHDR(packet); header;
             header = CMSG_NXTHDR(packet, header)) {
                size_t sent = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);

                if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
                        continue;
                for (size_t i = 0; i < sent; i++) {
                        int fd;

                        memcpy(&fd, CMSG_DATA(header) + i * sizeof(fd), sizeof(fd));
                        if (n < N_COPIER_FDS)
                                ret[n++] = fd;
                        else
                                close_fd(fd);
                }
        }
        return n;
}

/* Numbers of the sender's become ours. */
static int place_received_fds(CopierMessage *message, const int *fds, size_t n) {
        size_t taken = 0;

        for (size_t i = 0; i < N_COPIER_FDS; i++)
                if (message->fds[i] >= 0)
                        message->fds[i] = taken < n ? fds[taken++] : -EBADF;
        return taken == n ? 0 : -EBADMSG;
}

ssize_t copier_channel_receive(int socket_fd, bool waits, CopierMessage *ret, void *data,
                               size_t size) {
        FdControlBuffer control = { 0 };
        struct iovec parts[] = { { ret, sizeof(*ret) }, { data, size } };
        struct msghdr packet = {
                .msg_iov = parts,
                .msg_iovlen = N_ELEMENTS(parts),
                .msg_control = &control,
                .msg_controllen = sizeof(control),
        };
        int fds[N_COPIER_FDS];
        ssize_t received;
        size_t n;

        /* glibc's recvmsg() is another system call on i386, which a filter cannot look into. */
        do
                received = syscall(SYS_recvmsg, socket_fd, &packet,
                                   MSG_CMSG_CLOEXEC | (waits ? 0 : MSG_DONTWAIT));
        while (received < 0 && errno == EINTR);
        if (received <= 0)
                return received < 0 ? -errno : -ENOTCONN;
        n = take_received_fds(&packet, fds);
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
