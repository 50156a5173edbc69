/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The data that waits to be reported: lines of JSON, each for an object (the UID of a pod, or
 * another name that a file can have). The status of an object is one line, which a newer one
 * replaces; of its events the latest REPORT_EVENTS_OF_OBJECT_MAX wait. Beyond the limit the oldest
 * lines are dropped and counted. It touches neither a file nor the clock. */

#include "common/macros.h"

#include <stdint.h>

enum {
        REPORT_EVENTS_OF_OBJECT_MAX = 8,
        REPORT_OBJECT_NAME_MAX = 240, /* a file can have it, with a suffix */
        REPORT_KEY_MAX = 253
};

/* The key of the line that is an object's status; events have others. */
#define REPORT_STATUS_KEY "status"

typedef struct ReportQueue ReportQueue;

/* 'bytes_max' is the limit of all lines together. NULL: out of memory. */
ReportQueue *report_queue_new(size_t bytes_max);
ReportQueue *report_queue_free(ReportQueue *queue);
DEFINE_CLEANUP(ReportQueue *, report_queue_free)

/* Whether an object or a key can have this name: a file name, without spaces. */
bool report_name_is_valid(const char *name);

/* Adds a line, without its line break, in place of that of the same object and key. A status that
 * is the one that the object had last changes nothing. 1; 0: nothing has changed; -EINVAL for a
 * name that is not valid, -EFBIG for a line that no request can take; -ENOMEM. */
int report_queue_put(ReportQueue *queue, const char *name, const char *key, const char *text);

/* Adds the content of an object's file (see report_queue_next_unsaved()); 'lines' is changed. 0;
 * -EBADMSG, in which case the lines before the damage are added; -ENOMEM. */
int report_queue_restore(ReportQueue *queue, const char *name, char *lines);

/* The object is gone: its status is not remembered any more; its lines still wait. */
void report_queue_forget(ReportQueue *queue, const char *name);

/* The oldest lines, each with a line break, of together at most 'bytes_max': a request. They are
 * under way from then on. Memory that the caller frees; NULL: nothing waits, or out of memory. */
char *report_queue_take(ReportQueue *queue, size_t bytes_max);

/* The newest lines of together at most 'bytes_max', oldest first, which stay in the queue. The same
 * memory; "" if there are none. */
char *report_queue_print(const ReportQueue *queue, size_t bytes_max);

/* The lines in transit have arrived, and are removed unless they were replaced in the meantime; or
 * have not. */
void report_queue_sent(ReportQueue *queue);
void report_queue_not_sent(ReportQueue *queue);

size_t report_queue_length(const ReportQueue *queue);

/* The number of lines that were dropped; may be set to the count of an earlier agent. */
uint64_t report_queue_dropped(const ReportQueue *queue);
void report_queue_set_dropped(ReportQueue *queue, uint64_t n);

/* The next object whose lines differ from those on the disk; it is being written from then on. 0:
 * there is none; 1; -ENOMEM. '*ret_name' is borrowed until it is written. '*ret_lines' is the
 * required content of its file, a line "NUMBER KEY TEXT" for each, in memory that the caller frees;
 * NULL: it has no lines, and needs no file. */
int report_queue_next_unsaved(ReportQueue *queue, const char **ret_name, char **ret_lines);
bool report_queue_has_unsaved(const ReportQueue *queue);

/* The lines that are being written are on the disk; or may not be. */
void report_queue_saved(ReportQueue *queue);
void report_queue_not_saved(ReportQueue *queue);
