/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A WebSocket whose messages belong to channels: the first byte is the number of the channel. With
 * base64, a message is text: a digit for the channel, followed by the encoded data. Pure: bytes in,
 * data of channels out; calls in, bytes out. */

#include "agent/node-api/http/byte-queue.h"

typedef struct ChannelSocket ChannelSocket;

/* Data of a channel. Binary messages are passed on in pieces, as they arrive; base64 messages when
 * they are complete. Called from channel_socket_receive(); it must not free the socket. */
typedef void (*channel_data_t)(unsigned char channel, const char *data, size_t length,
                               void *userdata);

/* 'output' receives the data to be written; it and 'userdata' are borrowed. 0 or -ENOMEM. */
int channel_socket_new(bool is_base64, channel_data_t on_data, void *userdata, ByteQueue *output,
                       ChannelSocket **ret);
ChannelSocket *channel_socket_free(ChannelSocket *socket);
DEFINE_CLEANUP(ChannelSocket *, channel_socket_free)

/* For use in the callback: whether this data is the beginning of its message. */
bool channel_socket_is_first_data(const ChannelSocket *socket);

/* Takes bytes from the client. 0; 1: the client has closed the connection properly, and sends
 * nothing more; -EPROTO, -ENOBUFS, -ENOMEM: the connection must be closed. */
int channel_socket_receive(ChannelSocket *socket, const void *data, size_t length);

/* Sends data as one message. Does nothing after a close frame. 0; -ENOBUFS, -ENOMEM. */
int channel_socket_send(ChannelSocket *socket, unsigned char channel, const void *data,
                        size_t length);

/* Sends the close frame of a normal end. 0; -ENOBUFS, -ENOMEM. */
int channel_socket_close(ChannelSocket *socket);
