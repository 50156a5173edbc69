/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Responses that are streams: lists, watches and logs. A stream is pulled: libmicrohttpd requests
 * bytes when the client can receive them, so a slow client costs no memory. */

#include "agent/http/http-connection.h"

#include <sys/types.h>

enum {
        UNBOUNDED_STREAMS_MAX = 24, /* fewer than connections, so that other requests can always be
                                     * served */
        UNBOUNDED_STREAMS_OF_ROOT = 6, /* in addition */
};

typedef struct ResponseStream ResponseStream;

/* All streams of a server. */
typedef struct ResponseStreams {
        sd_event *event;
        void (*schedule_run)(void *userdata); /* libmicrohttpd runs again in the next turn */
        void *userdata;
        ResponseStream *first;
        unsigned n_unbounded; /* streams that do not end by themselves */
} ResponseStreams;

/* The source of the bytes of a stream. */
typedef struct ResponseStreamKind {
        const char *content_type;
        bool is_unbounded; /* counts against UNBOUNDED_STREAMS_MAX, has no deadline */

        /* Returns the number of bytes written (> 0); 0: nothing now; response_stream_wake()
         * follows; -EAGAIN: call again in another turn; -ENODATA: the end; another -errno: the
         * response is aborted. */
        ssize_t (*read)(void *source, char *buffer, size_t size);
        void (*free)(void *source);
} ResponseStreamKind;

/* Replies with the data that the kind reads from the source, which is freed in any case. */
enum MHD_Result response_stream_start(ResponseStreams *streams, struct MHD_Connection *http,
                                      const ResponseStreamKind *kind, void *source_consume,
                                      ResponseStream **ret);

/* The next stream of a kind after 'previous' (NULL: the first), or NULL; and its source. */
ResponseStream *response_stream_next(const ResponseStreams *streams, const ResponseStreamKind *kind,
                                     const ResponseStream *previous);
void *response_stream_source(const ResponseStream *stream);

/* More data can be read. */
void response_stream_wake(ResponseStream *stream);

/* Ends the connection, regardless of its state. */
void response_stream_abort(ResponseStream *stream);

/* Resumes the streams that paused for one turn. */
void response_streams_resume_yielding(ResponseStreams *streams);

/* To be called before libmicrohttpd is stopped, which is not possible with suspended
 * connections. */
void response_streams_abort_all(ResponseStreams *streams);
