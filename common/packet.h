/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A packet on a socket, and a descriptor that may come along with it. Neither waits. */

#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>

/* Sends all of the packet, with a copy of 'pass_fd' unless that is < 0. 0 or -errno. */
int packet_send(int socket_fd, const char *data, size_t length, int pass_fd);

/* The descriptor that came with a message, or -EBADF. Where several came, the others are closed:
 * the padding of a control buffer for one has room for two. */
int message_take_fd(struct msghdr *message);

/* Receives one packet and gives its length, which is more than 'size' where it was cut. '*ret_fd'
 * is the descriptor that came with it, or -EBADF. -errno. */
ssize_t packet_receive(int socket_fd, char *data, size_t size, int *ret_fd);
