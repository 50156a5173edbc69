/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Packets on a socket, optionally with a descriptor. Neither function waits. */

#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>

/* Sends all of the packet, with a copy of 'pass_fd' unless that is < 0. 0 or -errno. */
int packet_send(int socket_fd, const char *data, size_t length, int pass_fd);

/* The descriptor of a message, or -EBADF. Further ones are closed: because of its padding, a
 * control buffer for one has space for two. */
int message_take_fd(struct msghdr *message);

/* Receives one packet and returns its length, which is more than 'size' if it was cut. '*ret_fd' is
 * its descriptor, or -EBADF. -errno. */
ssize_t packet_receive(int socket_fd, char *data, size_t size, int *ret_fd);
