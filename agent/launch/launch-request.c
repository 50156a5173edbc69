/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/launch/launch-request.h"

#include "common/cleanup.h"
#include "common/file.h"
#include "common/packet.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

int launch_request_send(int socket_fd, const LaunchRequest *request, const int fds[LAUNCH_FDS]) {
        MessageFds passed;
        struct iovec bytes = { (void *) (uintptr_t) request, sizeof(*request) };
        struct msghdr message = { .msg_iov = &bytes, .msg_iovlen = 1 };

        message_pass_fds(&message, &passed, fds, LAUNCH_FDS);
        return sendmsg(socket_fd, &message, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

static int receive_launch_packet(int socket_fd, Launch *launch) {
        MessageFds passed;
        struct iovec bytes = { &launch->request, sizeof(launch->request) };
        struct msghdr message = { .msg_iov = &bytes,
                                  .msg_iovlen = 1,
                                  .msg_control = &passed,
                                  .msg_controllen = sizeof(passed) };
        ssize_t n = recvmsg(socket_fd, &message, MSG_CMSG_CLOEXEC);
        size_t n_fds;

        if (n < 0)
                return -errno;
        n_fds = message_take_fds(&message, launch->fds, LAUNCH_FDS);
        if (n != sizeof(launch->request) || (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) ||
            launch->request.version != LAUNCH_VERSION ||
            !memchr(launch->request.program, '\0', LAUNCH_PROGRAM_SIZE) || n_fds != LAUNCH_FDS)
                return -EBADMSG;
        return 0;
}

/* Both lists point into 'strings'. */
static int split_launch_strings(Launch *launch, size_t length) {
        size_t n = 0, i = 0;

        if (length == 0 || launch->strings[length - 1] != '\0')
                return -EBADMSG;
        for (const char *c = launch->strings; c < launch->strings + length; c += strlen(c) + 1)
                n++;
        if (launch->request.n_arguments == 0 || launch->request.n_arguments > n)
                return -EBADMSG;
        launch->argv = calloc(launch->request.n_arguments + 1, sizeof(char *));
        launch->environment = calloc(n - launch->request.n_arguments + 1, sizeof(char *));
        if (!launch->argv || !launch->environment)
                return -ENOMEM;
        for (char *c = launch->strings; c < launch->strings + length; c += strlen(c) + 1, i++)
                if (i < launch->request.n_arguments)
                        launch->argv[i] = c;
                else
                        launch->environment[i - launch->request.n_arguments] = c;
        return 0;
}

int launch_request_receive(int socket_fd, Launch *ret) {
        size_t length = 0;
        int r = receive_launch_packet(socket_fd, ret);

        if (r < 0)
                return r;
        r = read_stream(ret->fds[LAUNCH_FD_STRINGS], LAUNCH_STRINGS_MAX, &ret->strings, &length);
        return r < 0 ? r : split_launch_strings(ret, length);
}

void launch_done(Launch *launch) {
        for (int i = 0; i < LAUNCH_FDS; i++)
                close_fd(launch->fds[i]);
        free(launch->strings);
        free(launch->argv);
        free(launch->environment);
}
