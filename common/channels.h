/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Several streams over one WebSocket, as kubectl and the kubelet use for exec
 * ("v5.channel.k8s.io"): binary messages whose first byte is the channel. Both ends, after the
 * opening handshake. The descriptor is a non-blocking socket; the owner's loop calls
 * channels_read() and channels_write() when it is ready. */

#include "common/error.h"

enum {
        CHANNEL_INPUT = 0,
        CHANNEL_OUTPUT = 1,
        CHANNEL_ERROR = 2,
        CHANNEL_STATUS = 3,  /* a v1.Status as JSON, the last message of a session */
        CHANNEL_RESIZE = 4,  /* {"Width":80,"Height":24} */
        CHANNEL_START = 254, /* without data: a session that was held starts its command */
        CHANNEL_CLOSE = 255, /* its data is the channel that has ended */

        CHANNELS_MESSAGE_MAX = 256 * 1024, /* that we accept */
        CHANNELS_QUEUE_MAX = 64 * 1024,    /* beyond it the caller should stop reading */
};

/* The subprotocol in the handshake. */
#define CHANNELS_PROTOCOL "v5.channel.k8s.io"

typedef struct Channels Channels;

/* A whole message. */
typedef void (*channels_message_t)(unsigned char channel, const char *data, size_t length,
                                   void *userdata);

/* The descriptor stays the caller's. 0, -ENOMEM, or -ELIBACC without libwslay. */
int channels_new(int fd, bool is_client, channels_message_t on_message, void *userdata,
                 Channels **ret);
Channels *channels_free(Channels *channels);
DEFINE_CLEANUP(Channels *, channels_free)

/* Reads the available bytes and passes on the messages. 0; -ECONNRESET if the peer has closed the
 * connection, -EPROTO for invalid frames, -ENOMEM. */
int channels_read(Channels *channels);

/* Writes as much as the socket accepts. Returns like channels_read(). After a failure the peer is
 * gone: data that it sent before can still be read. */
int channels_write(Channels *channels);

/* While held, only messages that have been read already are passed on. */
void channels_hold(Channels *channels, bool is_held);

/* Queues a copy. 0 or -ENOMEM. */
int channels_send(Channels *channels, unsigned char channel, const void *data, size_t length);

/* Sends the close frame after the queue; channels_write() does it. */
void channels_close(Channels *channels);

size_t channels_queued(const Channels *channels); /* bytes of messages */
bool channels_wants_write(const Channels *channels);

/* False while the peer has not read our replies, and once it has sent its close frame: nothing is
 * read then, and further data would be reported continuously. */
bool channels_wants_read(const Channels *channels);

/* The peer has sent its close frame: channels_read() finds nothing more, and reads nothing. */
bool channels_is_closed_by_peer(const Channels *channels);

/* Both sides have sent their close frames, or the peer has and is gone. */
bool channels_is_over(const Channels *channels);
