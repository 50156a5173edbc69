/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Several streams over one WebSocket, as used by kubectl and the kubelet for exec
 * ("v5.channel.k8s.io"): binary messages whose first byte is the channel. Implements both ends
 * after the opening handshake. The descriptor is a non-blocking socket; the owner's loop calls
 * channels_read() and channels_write() when it is ready. */

#include "common/error.h"

enum {
        CHANNEL_INPUT = 0,
        CHANNEL_OUTPUT = 1,
        CHANNEL_ERROR = 2,
        CHANNEL_STATUS = 3,  /* a v1.Status as JSON, the last message of a session */
        CHANNEL_RESIZE = 4,  /* {"Width":80,"Height":24} */
        CHANNEL_START = 254, /* has no data; starts the command of a held session */
        CHANNEL_CLOSE = 255, /* its data is the number of the channel that has ended */

        CHANNELS_MESSAGE_MAX = 256 * 1024, /* largest accepted message */
        CHANNELS_QUEUE_MAX = 64 * 1024,    /* beyond this, the caller should stop reading */
};

/* The subprotocol in the handshake. */
#define CHANNELS_PROTOCOL "v5.channel.k8s.io"

typedef struct Channels Channels;

/* A whole message. */
typedef void (*channels_message_t)(unsigned char channel, const char *data, size_t length,
                                   void *userdata);

/* The caller keeps the descriptor. 0, -ENOMEM, or -ELIBACC without libwslay. */
int channels_new(int fd, bool is_client, channels_message_t on_message, void *userdata,
                 Channels **ret);
Channels *channels_free(Channels *channels);
DEFINE_CLEANUP(Channels *, channels_free)

/* Reads the available bytes and passes on the messages. 0; -ECONNRESET if the peer has closed the
 * connection, -EPROTO for invalid frames, -ENOMEM. */
int channels_read(Channels *channels);

/* Writes as much as the socket accepts. Returns the same as channels_read(). After a failure the
 * peer is gone, but data that it sent before can still be read. */
int channels_write(Channels *channels);

/* While the channels are held, only messages that have already been read are passed on. */
void channels_hold(Channels *channels, bool is_held);

/* Queues a copy. 0 or -ENOMEM. */
int channels_send(Channels *channels, unsigned char channel, const void *data, size_t length);

/* Queues the close frame; channels_write() sends it. */
void channels_close(Channels *channels);

size_t channels_queued(const Channels *channels); /* in bytes of messages */
bool channels_wants_write(const Channels *channels);

/* Whether to poll for input: false while the peer does not read replies, and once it has sent its
 * close frame. Nothing is read then, so poll() would report pending data continuously. */
bool channels_wants_read(const Channels *channels);

/* Whether the peer has sent its close frame: channels_read() reads nothing more. */
bool channels_is_closed_by_peer(const Channels *channels);

/* Whether both sides have sent their close frames, or the peer has sent its own and is gone. */
bool channels_is_over(const Channels *channels);
