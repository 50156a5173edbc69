/* SPDX-License-Identifier: Apache-2.0 */
#include "common/cleanup.h"
#include "common/packet.h"
#include "tests/test.h"

#include <dirent.h>
#include <fcntl.h>

static size_t count_descriptors(void) {
        cleanup_closedir DIR *dir = opendir("/proc/self/fd");
        size_t n = 0;

        REQUIRE(dir);
        while (readdir(dir))
                n++;
        return n;
}

enum {
        DESCRIPTORS_MAX = 4,
};

/* More than packet_send() would. */
static void send_several(int socket_fd, size_t n) {
        union {
                struct cmsghdr header;
                char space[CMSG_SPACE(DESCRIPTORS_MAX * sizeof(int))];
        } control = { 0 };
        const int all[DESCRIPTORS_MAX] = { socket_fd, socket_fd, socket_fd, socket_fd };
        struct iovec bytes = { (char[]){ "x" }, 1 };
        struct msghdr message = { .msg_iov = &bytes, .msg_iovlen = 1, .msg_control = &control };

        message.msg_controllen = CMSG_SPACE(n * sizeof(int));
        control.header = (struct cmsghdr){ .cmsg_level = SOL_SOCKET,
                                           .cmsg_type = SCM_RIGHTS,
                                           .cmsg_len = CMSG_LEN(n * sizeof(int)) };
        memcpy(control.space + CMSG_LEN(0), all, sizeof(all));
        REQUIRE(sendmsg(socket_fd, &message, 0) == 1);
}

TEST(only_one_of_several_descriptors_is_returned_and_the_others_are_closed)
{
        int pair[2];

        REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
        for (size_t n = 1; n <= DESCRIPTORS_MAX; n++) {
                size_t before = count_descriptors();
                char data[8];
                int fd;

                send_several(pair[0], n);
                EXPECT_EQ(packet_receive(pair[1], data, sizeof(data), &fd), (ssize_t) 1);
                EXPECT(fd >= 0 && (fcntl(fd, F_GETFD) & FD_CLOEXEC));
                EXPECT_EQ(count_descriptors(), before + 1);
                close_fd(fd);
        }
        close_fd(pair[0]);
        close_fd(pair[1]);
}

TEST(a_packet_without_a_descriptor_returns_none)
{
        int pair[2], fd = 0;
        char data[2];

        REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
        EXPECT_EQ(packet_send(pair[0], "long", 4, -EBADF), 0);
        EXPECT_EQ(packet_receive(pair[1], data, sizeof(data), &fd), (ssize_t) 4);
        EXPECT_EQ(fd, -EBADF);
        close_fd(pair[0]);
        close_fd(pair[1]);
}

TEST(several_descriptors_are_passed_and_taken_in_their_order)
{
        struct iovec bytes = { (char[]){ "x" }, 1 };
        struct msghdr message = { .msg_iov = &bytes, .msg_iovlen = 1 };
        MessageFds passed;
        int pair[2], fds[3] = { -EBADF, -EBADF, -EBADF };
        size_t before;

        REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
        before = count_descriptors();
        message_pass_fds(&message, &passed, (int[]){ STDIN_FILENO, pair[1] }, 2);
        REQUIRE(sendmsg(pair[0], &message, 0) == 1);
        message.msg_control = &passed;
        message.msg_controllen = sizeof(passed);
        REQUIRE(recvmsg(pair[1], &message, MSG_CMSG_CLOEXEC) == 1);
        EXPECT_EQ(message_take_fds(&message, fds, N_ELEMENTS(fds)), 2);
        EXPECT(fds[0] >= 0 && fds[1] >= 0 && fds[2] == -EBADF);
        EXPECT_EQ(count_descriptors(), before + 2);
        EXPECT(recv(fds[1], (char[1]){ 0 }, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN);
        EXPECT(recv(fds[0], (char[1]){ 0 }, 1, MSG_DONTWAIT) < 0 && errno == ENOTSOCK);
        close_fd(fds[0]);
        close_fd(fds[1]);
        message_pass_fds(&message, &passed, NULL, 0);
        EXPECT(!message.msg_control && message.msg_controllen == 0);
        close_fd(pair[0]);
        close_fd(pair[1]);
}
