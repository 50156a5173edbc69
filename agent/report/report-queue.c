/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/report/report-queue.h"

#include "common/cleanup.h"
#include "common/file.h"
#include "common/hash.h"
#include "common/list.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
        LINE_BYTES_MAX = 64 * 1024
};

#define NUMBER_MAX (UINT64_MAX / 2) /* following lines have the same number, in their order */

typedef struct QueuedLine QueuedLine;
typedef struct QueuedObject QueuedObject;

struct QueuedLine {
        QueuedLine *next; /* the next newer one */
        QueuedObject *object;
        char *key, *text;
        uint64_t number;
        bool is_under_way;
};

struct QueuedObject {
        QueuedObject *next;
        char *name;
        char status[SHA256_HEX_SIZE]; /* hash of the last status; "": unknown */
        bool is_gone;
        bool is_unsaved;
        bool is_on_disk; /* or may be on disk */
        bool is_being_written;
        bool has_lines_written; /* likewise; it will have a file */
};

struct ReportQueue {
        QueuedLine *oldest;
        QueuedObject *objects;
        size_t n, bytes, bytes_max;
        uint64_t last_number, dropped;
};

static bool is_status_key(const char *key) {
        return streq(key, REPORT_STATUS_KEY);
}

bool report_name_is_valid(const char *name) {
        size_t length = strlen(name);

        if (length == 0 || length > REPORT_OBJECT_NAME_MAX || name[0] == '.')
                return false;
        for (const char *p = name; *p; p++)
                if ((unsigned char) *p <= ' ' || *p == '/' || *p == 0x7f)
                        return false;
        return true;
}

/* ---- objects ---- */

static QueuedObject *find_queued_object(const ReportQueue *queue, const char *name) {
        QueuedObject *object = queue->objects;

        while (object && !streq(object->name, name))
                object = object->next;
        return object;
}

static QueuedObject *add_queued_object(ReportQueue *queue, const char *name) {
        QueuedObject *object = find_queued_object(queue, name);

        if (object)
                return object;
        object = calloc(1, sizeof(*object));
        if (!object)
                return NULL;
        object->name = strdup(name);
        if (!object->name) {
                free(object);
                return NULL;
        }
        LIST_PREPEND(queue->objects, object);
        return object;
}

static bool has_queued_lines(const ReportQueue *queue, const QueuedObject *object) {
        list_foreach(line, queue->oldest)
                if (line->object == object)
                        return true;
        return false;
}

/* An object that is gone, or without a status, is dropped when all of its lines were sent. */
static void drop_idle_objects(ReportQueue *queue) {
        QueuedObject **at = &queue->objects;

        while (*at) {
                QueuedObject *object = *at;

                if (object->is_on_disk || object->is_being_written ||
                    (object->status[0] && !object->is_gone) || has_queued_lines(queue, object)) {
                        at = &object->next;
                        continue;
                }
                *at = object->next;
                free(object->name);
                free(object);
        }
}

void report_queue_forget(ReportQueue *queue, const char *name) {
        QueuedObject *object = find_queued_object(queue, name);

        if (object)
                object->is_gone = true;
        drop_idle_objects(queue);
}

/* ---- lines ---- */

static void free_queued_line(QueuedLine *line) {
        free(line->key);
        free(line->text);
        free(line);
}

static void remove_queued_line(ReportQueue *queue, QueuedLine *line) {
        QueuedLine **at = &queue->oldest;

        while (*at != line)
                at = &(*at)->next;
        *at = line->next;
        queue->n--;
        queue->bytes -= strlen(line->text) + 1;
        line->object->is_unsaved = true;
        free_queued_line(line);
}

static void remove_same_line(ReportQueue *queue, const QueuedObject *object, const char *key) {
        list_foreach(line, queue->oldest)
                if (line->object == object && streq(line->key, key)) {
                        remove_queued_line(queue, line);
                        return;
                }
}

static void drop_queued_line(ReportQueue *queue, QueuedLine *line) {
        if (is_status_key(line->key))
                line->object->status[0] = '\0';
        remove_queued_line(queue, line);
        queue->dropped++;
}

static void limit_events_of_object(ReportQueue *queue, const QueuedObject *object) {
        QueuedLine *oldest = NULL;
        size_t n = 0;

        list_foreach(line, queue->oldest)
                if (line->object == object && !is_status_key(line->key)) {
                        if (!oldest)
                                oldest = line;
                        n++;
                }
        if (n > REPORT_EVENTS_OF_OBJECT_MAX)
                drop_queued_line(queue, oldest);
}

static QueuedLine *new_queued_line(QueuedObject *object, const char *key, const char *text) {
        QueuedLine *line = calloc(1, sizeof(*line));

        if (!line)
                return NULL;
        line->object = object;
        line->key = strdup(key);
        line->text = strdup(text);
        if (line->key && line->text)
                return line;
        free_queued_line(line);
        return NULL;
}

static void insert_queued_line(ReportQueue *queue, QueuedLine *line) {
        QueuedLine **at = &queue->oldest;

        while (*at && (*at)->number <= line->number)
                at = &(*at)->next;
        line->next = *at;
        *at = line;
        queue->n++;
        queue->bytes += strlen(line->text) + 1;
        queue->last_number = MAX(queue->last_number, line->number);
}

static int add_queued_line(ReportQueue *queue, QueuedObject *object, const char *key,
                           uint64_t number, const char *text) {
        QueuedLine *line = new_queued_line(object, key, text);

        if (!line)
                return -ENOMEM;
        remove_same_line(queue, object, key);
        line->number = number;
        insert_queued_line(queue, line);
        limit_events_of_object(queue, object);
        while (queue->bytes > queue->bytes_max)
                drop_queued_line(queue, queue->oldest);
        return 1;
}

static int check_queued_line(const char *object, const char *key, const char *text) {
        if (!report_name_is_valid(object) || !report_name_is_valid(key) || strchr(text, '\n'))
                return -EINVAL;
        return strlen(text) >= LINE_BYTES_MAX ? -EFBIG : 0;
}

int report_queue_put(ReportQueue *queue, const char *name, const char *key, const char *text) {
        char digest[SHA256_HEX_SIZE];
        QueuedObject *object;
        int r = check_queued_line(name, key, text);

        if (r < 0)
                return r;
        object = add_queued_object(queue, name);
        if (!object)
                return -ENOMEM;
        if (is_status_key(key)) {
                sha256_hex(text, strlen(text), digest);
                if (streq(digest, object->status))
                        return 0;
                memcpy(object->status, digest, sizeof(digest));
                object->is_gone = false;
        }
        object->is_unsaved = true;
        return add_queued_line(queue, object, key, MIN(queue->last_number + 1, NUMBER_MAX), text);
}

/* ---- a request ---- */

char *report_queue_take(ReportQueue *queue, size_t bytes_max) {
        char *text = NULL;
        size_t size, bytes = 0;
        FILE *stream;

        if (!queue->oldest)
                return NULL;
        stream = open_memstream(&text, &size);
        if (!stream)
                return NULL;
        list_foreach(line, queue->oldest) {
                bytes += strlen(line->text) + 1;
                if (bytes > bytes_max && line != queue->oldest)
                        break;
                (void) fprintf(stream, "%s\n", line->text);
                line->is_under_way = true;
        }
        return memstream_finish(stream, &text);
}

char *report_queue_print(const ReportQueue *queue, size_t bytes_max) {
        size_t size, left = queue->bytes;
        char *text = NULL;
        FILE *stream = open_memstream(&text, &size);

        if (!stream)
                return NULL;
        list_foreach(line, queue->oldest) {
                if (left <= bytes_max)
                        (void) fprintf(stream, "%s\n", line->text);
                left -= strlen(line->text) + 1;
        }
        return memstream_finish(stream, &text);
}

void report_queue_sent(ReportQueue *queue) {
        QueuedLine *line = queue->oldest;

        while (line) {
                QueuedLine *next = line->next;

                if (line->is_under_way)
                        remove_queued_line(queue, line);
                line = next;
        }
        drop_idle_objects(queue);
}

void report_queue_not_sent(ReportQueue *queue) {
        list_foreach(line, queue->oldest)
                line->is_under_way = false;
}

size_t report_queue_length(const ReportQueue *queue) {
        return queue->n;
}

uint64_t report_queue_dropped(const ReportQueue *queue) {
        return queue->dropped;
}

void report_queue_set_dropped(ReportQueue *queue, uint64_t n) {
        queue->dropped = n;
}

/* ---- the disk ---- */

static int restore_queued_line(ReportQueue *queue, const char *name, const char *key,
                               uint64_t number, const char *text) {
        QueuedObject *object;
        int r = check_queued_line(name, key, text);

        if (r < 0)
                return -EBADMSG;
        object = add_queued_object(queue, name);
        if (!object)
                return -ENOMEM;
        object->is_on_disk = true;
        if (is_status_key(key))
                sha256_hex(text, strlen(text), object->status);
        return add_queued_line(queue, object, key, number, text);
}

/* A line without its newline; the text is modified. */
static int parse_queued_line(ReportQueue *queue, const char *name, char *line) {
        char *key, *text;
        uint64_t number;

        if (*line < '0' || *line > '9')
                return -EBADMSG;
        number = strtoull(line, &key, 10);
        text = *key == ' ' ? strchr(key + 1, ' ') : NULL;
        if (!text || number > NUMBER_MAX)
                return -EBADMSG;
        *text++ = '\0';
        return restore_queued_line(queue, name, key + 1, number, text);
}

int report_queue_restore(ReportQueue *queue, const char *name, char *lines) {
        char *line = lines, *end;

        while ((end = strchr(line, '\n'))) {
                int r;

                *end = '\0';
                r = parse_queued_line(queue, name, line);
                if (r < 0)
                        return r;
                line = end + 1;
        }
        return *line ? -EBADMSG : 0;
}

static int print_queued_lines(const ReportQueue *queue, const QueuedObject *object, char **ret) {
        char *text = NULL;
        size_t size;
        FILE *stream = open_memstream(&text, &size);

        if (!stream)
                return -ENOMEM;
        list_foreach(line, queue->oldest)
                if (line->object == object)
                        (void) fprintf(stream, "%" PRIu64 " %s %s\n", line->number, line->key,
                                       line->text);
        *ret = memstream_finish(stream, &text);
        return *ret ? 0 : -ENOMEM;
}

/* Lines that arrived and were sent before they were saved need no file. */
static bool needs_saving(const ReportQueue *queue, const QueuedObject *object) {
        return object->is_unsaved && (object->is_on_disk || has_queued_lines(queue, object));
}

static QueuedObject *find_unsaved_object(const ReportQueue *queue) {
        QueuedObject *object = queue->objects;

        while (object && !needs_saving(queue, object))
                object = object->next;
        return object;
}

int report_queue_next_unsaved(ReportQueue *queue, const char **ret_name, char **ret_lines) {
        QueuedObject *object = find_unsaved_object(queue);
        int r;

        *ret_lines = NULL;
        if (!object)
                return 0;
        object->has_lines_written = has_queued_lines(queue, object);
        r = object->has_lines_written ? print_queued_lines(queue, object, ret_lines) : 0;
        if (r < 0)
                return r;
        object->is_unsaved = false;
        object->is_being_written = object->is_on_disk = true;
        *ret_name = object->name;
        return 1;
}

void report_queue_saved(ReportQueue *queue) {
        list_foreach(object, queue->objects)
                if (object->is_being_written) {
                        object->is_being_written = false;
                        object->is_on_disk = object->has_lines_written;
                }
        drop_idle_objects(queue);
}

void report_queue_not_saved(ReportQueue *queue) {
        list_foreach(object, queue->objects) {
                object->is_unsaved |= object->is_being_written;
                object->is_being_written = false;
        }
}

bool report_queue_has_unsaved(const ReportQueue *queue) {
        return find_unsaved_object(queue) != NULL;
}

/* ---- start and end ---- */

ReportQueue *report_queue_new(size_t bytes_max) {
        ReportQueue *queue = calloc(1, sizeof(*queue));

        if (queue)
                queue->bytes_max = bytes_max;
        return queue;
}

ReportQueue *report_queue_free(ReportQueue *queue) {
        if (!queue)
                return NULL;
        while (queue->oldest)
                remove_queued_line(queue, queue->oldest);
        while (queue->objects) {
                QueuedObject *object = queue->objects;

                queue->objects = object->next;
                free(object->name);
                free(object);
        }
        free(queue);
        return NULL;
}
