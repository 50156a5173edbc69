/* SPDX-License-Identifier: Apache-2.0 */
#include "common/packet.h"

#include "common/cleanup.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

typedef union PacketControlBuffer {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
} PacketControlBuffer;

int packet_send(int socket_fd, const char *data, size_t length, int pass_fd) {
        PacketControlBuffer control = { 0 };
        struct iovec bytes = { (char *) (uintptr_t) data, length };
        struct msghdr message = { .msg_iov = &bytes, .msg_iovlen = 1 };

        if (pass_fd >= 0) {
                message.msg_control = &control;
                message.msg_controllen = sizeof(control);
                control.header = (struct cmsghdr){ .cmsg_level = SOL_SOCKET,
                                                   .cmsg_type = SCM_RIGHTS,
                                                   .cmsg_len = CMSG_LEN(sizeof(pass_fd)) };
                memcpy(CMSG_DATA(&control.header), &pass_fd, sizeof(pass_fd));
        }
        return sendmsg(socket_fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

int message_take_fd(struct msghdr *message) {
        int taken = -EBADF;

        for (struct cmsghdr *header = CMSG_FIRSTHDR(message); header;
             header = CMSG_NXTHDR(message, header)) {
                size_t n = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);

                if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
                        continue;
                for (size_t i = 0; i < n; i++) {
                        int fd;

                        memcpy(&fd, CMSG_DATA(header) + i * sizeof(fd), sizeof(fd));
                        if (taken < 0)
                                taken = fd;
                        else
                                close_fd(fd);
                }
        }
        return taken;
}

ssize_t packet_receive(int socket_fd, char *data, size_t size, int *ret_fd) {
        PacketControlBuffer control = { 0 };
        struct iovec bytes = { data, size };
        struct msghdr message = {
                .msg_iov = &bytes,
                .msg_iovlen = 1,
                .msg_control = &control,
                .msg_controllen = sizeof(control),
        };
        ssize_t n = recvmsg(socket_fd, &message, MSG_TRUNC | MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

        *ret_fd = -EBADF;
        if (n < 0)
                return -errno;
        *ret_fd = message_take_fd(&message);
        return n;
}
