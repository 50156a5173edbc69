/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Packets on a socket, optionally with a descriptor. Neither function waits. */

#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>

/* Sends all of the packet, with a copy of 'pass_fd' unless that is < 0. 0 or -errno. */
int packet_send(int socket_fd, const char *data, size_t length, int pass_fd);

enum {
        MESSAGE_FDS_MAX = 8 /* of one message */
};

/* The control buffer of a message, for its descriptors. */
typedef union MessageFds {
        struct cmsghdr header;
        char space[CMSG_SPACE(MESSAGE_FDS_MAX * sizeof(int))];
} MessageFds;

/* Has a message pass copies of 'n' descriptors. 'space' is as long in use as the message. */
void message_pass_fds(struct msghdr *message, MessageFds *space, const int *fds, size_t n);

/* Takes the first 'max' descriptors of a received message, and closes the others, as a sender may
 * pass more than were asked for. The number in 'ret'; the rest of it is unchanged. */
size_t message_take_fds(struct msghdr *message, int *ret, size_t max);

/* The first one, or -EBADF; the others are closed. */
int message_take_fd(struct msghdr *message);

/* Receives one packet and returns its length, which is more than 'size' if it was cut. '*ret_fd' is
 * its descriptor, or -EBADF. -errno. */
ssize_t packet_receive(int socket_fd, char *data, size_t size, int *ret_fd);
