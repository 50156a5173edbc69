/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Packets on a socket, optionally with a descriptor. Neither function blocks. */

#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>

/* Sends a whole packet, with a copy of 'pass_fd' unless that is < 0. 0 or -errno. */
int packet_send(int socket_fd, const char *data, size_t length, int pass_fd);

enum {
        MESSAGE_FDS_MAX = 8 /* per message */
};

/* The control buffer of a message, for its descriptors. */
typedef union MessageFds {
        struct cmsghdr header;
        char space[CMSG_SPACE(MESSAGE_FDS_MAX * sizeof(int))];
} MessageFds;

/* Makes a message pass copies of 'n' descriptors. 'space' must live as long as the message. */
void message_pass_fds(struct msghdr *message, MessageFds *space, const int *fds, size_t n);

/* Takes the first 'max' descriptors of a received message, and closes the others, because a sender
 * may pass more than expected. Returns the number in 'ret'; the rest of 'ret' is unchanged. */
size_t message_take_fds(struct msghdr *message, int *ret, size_t max);

/* The first descriptor, or -EBADF; the others are closed. */
int message_take_fd(struct msghdr *message);

/* Receives one packet and returns its length, which is more than 'size' if it was truncated; or
 * -errno. '*ret_fd' is its descriptor, or -EBADF. */
ssize_t packet_receive(int socket_fd, char *data, size_t size, int *ret_fd);
