/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The text of a response that is generated piece by piece: a list or a watch is never completely in
 * memory. */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

typedef struct StreamText {
        char *text; /* the current piece */
        size_t length, taken;
} StreamText;

/* Sets the next piece. 1, or -ENOMEM. */
int stream_text_format(StreamText *text, const char *before, const char *json, const char *after);

/* Fills the buffer from the pieces that 'next' sets with stream_text_format(). 'next' returns 1, or
 * any return value that read() of a ResponseStreamKind may have. */
ssize_t stream_text_read(StreamText *text, int (*next)(void *), void *userdata, char *buffer,
                         size_t size);
void stream_text_done(StreamText *text);

/* On request, a watch marks the point when it has sent all existing objects:
 * {"type":"BOOKMARK"}. */
typedef struct WatchBookmark {
        bool is_due;
} WatchBookmark;

/* 1 with the line as the next piece; 0: the line is not due; -ENOMEM. */
int watch_bookmark_format(WatchBookmark *bookmark, StreamText *text);
