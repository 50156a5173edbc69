/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Several streams over one WebSocket, as kubectl and the kubelet have them for exec
 * ("v5.channel.k8s.io"): binary messages whose first byte says which stream the rest belongs to.
 * Both ends, after the opening handshake. The descriptor is a socket that does not block; whoever
 * owns the loop calls channels_read() and channels_write() when it is ready. */

#include "common/error.h"

enum {
        CHANNEL_INPUT = 0,
        CHANNEL_OUTPUT = 1,
        CHANNEL_ERROR = 2,
        CHANNEL_STATUS = 3,  /* a v1.Status as JSON, the last message of a session */
        CHANNEL_RESIZE = 4,  /* {"Width":80,"Height":24} */
        CHANNEL_CLOSE = 255, /* its data is the channel that is at its end */

        CHANNELS_MESSAGE_MAX = 256 * 1024, /* that we take */
        CHANNELS_QUEUE_MAX = 64 * 1024,    /* whoever reads for us should stop here */
};

/* The subprotocol, as it is named in the handshake. */
#define CHANNELS_PROTOCOL "v5.channel.k8s.io"

typedef struct Channels Channels;

/* A whole message. */
typedef void (*channels_message_t)(unsigned char channel, const char *data, size_t length,
                                   void *userdata);

/* The descriptor stays the caller's. 0 or -ENOMEM. */
int channels_new(int fd, bool is_client, channels_message_t on_message, void *userdata,
                 Channels **ret);
Channels *channels_free(Channels *channels);
DEFINE_CLEANUP(Channels *, channels_free)

/* Reads what is there and gives the messages. 0; -ECONNRESET when the other side is gone, -EPROTO
 * when it says what is no WebSocket, -ENOMEM. */
int channels_read(Channels *channels);

/* Writes what the socket takes. As channels_read(). */
int channels_write(Channels *channels);

/* While held, no message is given but those that have been read already. */
void channels_hold(Channels *channels, bool is_held);

/* Queues a copy. 0 or -ENOMEM. */
int channels_send(Channels *channels, unsigned char channel, const void *data, size_t length);

/* The last that we say, after what is queued; channels_write() does it. */
void channels_close(Channels *channels);

size_t channels_queued(const Channels *channels); /* bytes of messages */
bool channels_wants_write(const Channels *channels);

/* False while the other side has not taken what we have to say to it: nothing is read then. */
bool channels_wants_read(const Channels *channels);

/* Both sides have said their last. */
bool channels_is_over(const Channels *channels);
