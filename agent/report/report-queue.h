/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The data that waits to be reported: lines of JSON, each of which belongs to an object (the UID of
 * a pod, or another name that is valid for a file). The status of an object is one line, which a
 * newer one replaces; of its events, the latest REPORT_EVENTS_OF_OBJECT_MAX are kept. Beyond the
 * limit the oldest lines are dropped and counted. The queue uses neither files nor the clock. */

#include "common/macros.h"

#include <stdint.h>

enum {
        REPORT_EVENTS_OF_OBJECT_MAX = 8,
        REPORT_OBJECT_NAME_MAX = 240, /* short enough for a file name with a suffix */
        REPORT_KEY_MAX = 253
};

/* The key of an object's status line; events have other keys. */
#define REPORT_STATUS_KEY "status"

typedef struct ReportQueue ReportQueue;

/* 'bytes_max' limits the size of all lines together. NULL: out of memory. */
ReportQueue *report_queue_new(size_t bytes_max);
ReportQueue *report_queue_free(ReportQueue *queue);
DEFINE_CLEANUP(ReportQueue *, report_queue_free)

/* Whether an object or a key can have this name: a file name, without spaces. */
bool report_name_is_valid(const char *name);

/* Adds a line, without its line break, or replaces the line with the same object and key. A status
 * that equals the object's last one changes nothing. 1; 0: nothing has changed; -EINVAL for an
 * invalid name; -EFBIG for a line that is too long for a request; -ENOMEM. */
int report_queue_put(ReportQueue *queue, const char *name, const char *key, const char *text);

/* Adds the content of an object's file (see report_queue_next_unsaved()); 'lines' is changed. 0;
 * -EBADMSG: only the lines before the damage were added; -ENOMEM. */
int report_queue_restore(ReportQueue *queue, const char *name, char *lines);

/* The object is gone: its last status is forgotten, but its lines still wait. */
void report_queue_forget(ReportQueue *queue, const char *name);

/* The oldest lines, each with a line break, with a total of at most 'bytes_max': the content of a
 * request. They are in transit from then on. The caller frees the result; NULL: nothing waits, or
 * out of memory. */
char *report_queue_take(ReportQueue *queue, size_t bytes_max);

/* The newest lines with a total of at most 'bytes_max', oldest first; they stay in the queue. The
 * caller frees the result; "" if there are none. */
char *report_queue_print(const ReportQueue *queue, size_t bytes_max);

/* The lines in transit have arrived, and are removed unless they were replaced in the meantime; or
 * they have not arrived, and wait again. */
void report_queue_sent(ReportQueue *queue);
void report_queue_not_sent(ReportQueue *queue);

size_t report_queue_length(const ReportQueue *queue);

/* The number of dropped lines, which can be set to the count of an earlier agent. */
uint64_t report_queue_dropped(const ReportQueue *queue);
void report_queue_set_dropped(ReportQueue *queue, uint64_t n);

/* The next object whose lines differ from those on disk; from then on it counts as being written.
 * 0: there is none; 1; -ENOMEM. '*ret_name' is borrowed until it is written. '*ret_lines' is the
 * required content of its file, a line "NUMBER KEY TEXT" for each of its lines, and is freed by the
 * caller; NULL: it has no lines, and needs no file. */
int report_queue_next_unsaved(ReportQueue *queue, const char **ret_name, char **ret_lines);
bool report_queue_has_unsaved(const ReportQueue *queue);

/* The lines that were being written are on disk; or writing them may have failed. */
void report_queue_saved(ReportQueue *queue);
void report_queue_not_saved(ReportQueue *queue);
