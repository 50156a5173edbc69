/* SPDX-License-Identifier: Apache-2.0 */
#include "common/packet.h"

#include "common/cleanup.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

void message_pass_fds(struct msghdr *message, MessageFds *space, const int *fds, size_t n) {
        assert(n <= MESSAGE_FDS_MAX);
        message->msg_control = NULL;
        message->msg_controllen = 0;
        if (n == 0)
                return;
        *space = (MessageFds){ .header = { .cmsg_level = SOL_SOCKET,
                                           .cmsg_type = SCM_RIGHTS,
                                           .cmsg_len = CMSG_LEN(n * sizeof(int)) } };
        memcpy(CMSG_DATA(&space->header), fds, n * sizeof(int));
        message->msg_control = space;
        message->msg_controllen = CMSG_SPACE(n * sizeof(int));
}

int packet_send(int socket_fd, const char *data, size_t length, int pass_fd) {
        MessageFds passed;
        struct iovec bytes = { (char *) (uintptr_t) data, length };
        struct msghdr message = { .msg_iov = &bytes, .msg_iovlen = 1 };

        message_pass_fds(&message, &passed, &pass_fd, pass_fd >= 0);
        return sendmsg(socket_fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

size_t message_take_fds(struct msghdr *message, int *ret, size_t max) {
        size_t n = 0;

        for (struct cmsghdr *header = CMSG_FIRSTHDR(message); header;
             header = CMSG_NXTHDR(message, header)) {
                size_t sent = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);

                if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
                        continue;
                for (size_t i = 0; i < sent; i++) {
                        int fd;

                        memcpy(&fd, CMSG_DATA(header) + i * sizeof(fd), sizeof(fd));
                        if (n < max)
                                ret[n++] = fd;
                        else
                                close_fd(fd);
                }
        }
        return n;
}

int message_take_fd(struct msghdr *message) {
        int fd = -EBADF;

        (void) message_take_fds(message, &fd, 1);
        return fd;
}

ssize_t packet_receive(int socket_fd, char *data, size_t size, int *ret_fd) {
        MessageFds passed;
        struct iovec bytes = { data, size };
        struct msghdr message = {
                .msg_iov = &bytes,
                .msg_iovlen = 1,
                .msg_control = &passed,
                .msg_controllen = sizeof(passed),
        };
        ssize_t n = recvmsg(socket_fd, &message, MSG_TRUNC | MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

        *ret_fd = -EBADF;
        if (n < 0)
                return -errno;
        *ret_fd = message_take_fd(&message);
        return n;
}
