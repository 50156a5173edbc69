/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shim/container-log.h"

#include "common/cleanup.h"
#include "common/clock.h"

#include <sys/stat.h>

/* Lines are collected in a buffer and written with one write(2), so that a reader never sees a
 * partial line; copying takes a tenth of the time that the kernel would need for as many vectors.
 * The timestamp of all lines of a chunk is the time when the chunk was read. */

enum {
        HEAD_SIZE = sizeof("2026-01-02T03:04:05.123456789Z stdout F "),
        LOST_NOTICE_SIZE = HEAD_SIZE + 160,
        BATCH_SIZE = 64 * 1024, /* longer than the longest line */
};

struct ContainerLog {
        LogOpener opener;
        int fd; /* -EBADF if it could not be opened; retried at the next write */
        LogLimits limits;
        JournalLog *journal; /* NULL: lines are written only to the file */
        uint64_t size;
        uint64_t lost_bytes;
        int lost_errno;
        int file_error; /* why no file can be written, or why the full one could not be rotated: 0
                           or -errno */
};

/* Complete lines to be written to the file. */
typedef struct LogLineBatch {
        ContainerLog *log;
        const char *stream;
        uint64_t realtime_usec;
        size_t bytes;
        size_t text_bytes;
        size_t head_length;
        char full[HEAD_SIZE];
        char part[HEAD_SIZE];
} LogLineBatch;

/* There is only one batch at a time, so it is static; on the stack, each of its pages would be
 * touched. */
static char batch_lines[BATCH_SIZE];

static int take_log_file(ContainerLog *log, int fd_consume) {
        cleanup_close int fd = fd_consume;
        struct stat st;

        if (fstat(fd, &st) < 0)
                return -errno;
        close_fd(log->fd);
        log->size = (uint64_t) st.st_size;
        log->fd = TAKE_FD(fd);
        return 0;
}

static int open_log_file(ContainerLog *log, LogRequest request, uint64_t realtime_usec) {
        OpenedLog opened = { .fd = -EBADF };
        int r = log->opener.open(log->opener.userdata, request, realtime_usec, &opened);

        if (opened.is_rotated) {
                log->fd = close_fd(log->fd);
                log->size = 0;
        }
        return r < 0 ? r : take_log_file(log, opened.fd);
}

int container_log_new(int fd_consume, LogLimits limits, const LogOpener *opener,
                      ContainerLog **ret) {
        cleanup_close int fd = fd_consume;
        ContainerLog *log = calloc(1, sizeof(*log));

        if (!log)
                return -ENOMEM;
        *log = (ContainerLog){ .opener = *opener, .fd = -EBADF, .limits = limits };
        if (fd >= 0)
                log->file_error = take_log_file(log, TAKE_FD(fd));
        *ret = log;
        return 0;
}

void container_log_set_limits(ContainerLog *log, LogLimits limits) {
        log->limits = limits;
}

void container_log_set_journal_take(ContainerLog *log, JournalLog *journal) {
        journal_log_free(log->journal);
        log->journal = journal;
}

static void count_lost_log_bytes(ContainerLog *log, size_t bytes, int r) {
        log->lost_bytes += bytes;
        log->lost_errno = -r;
}

/* Writes all lines or none: a partly written tail is truncated. */
static int write_log_lines(ContainerLog *log, const char *lines, size_t bytes) {
        ssize_t written;

        do
                written = write(log->fd, lines, bytes);
        while (written < 0 && errno == EINTR);
        if (written < 0)
                return -errno;
        if ((size_t) written < bytes) {
                if (ftruncate(log->fd, (off_t) log->size) < 0)
                        log->size += (uint64_t) written;
                return -ENOSPC;
        }
        log->size += bytes;
        return 0;
}

/* Records in the log itself how much of it is missing. Best effort: if this fails, the next line
 * also fails, and this is called again. */
static void write_lost_bytes_notice(LogLineBatch *batch) {
        ContainerLog *log = batch->log;
        char line[LOST_NOTICE_SIZE];
        int n;

        if (log->lost_bytes == 0)
                return;
        n = snprintf(line, sizeof(line), "%s[mainstay: %llu bytes of this log were lost: %s]\n",
                     batch->full, (unsigned long long) log->lost_bytes, strerror(log->lost_errno));
        if (write_log_lines(log, line, MIN((size_t) n, sizeof(line) - 1)) >= 0)
                log->lost_bytes = 0;
}

/* The number of bytes that may still be written to the file. */
static uint64_t log_bytes_left(const ContainerLog *log) {
        if (log->limits.max_size == 0)
                return UINT64_MAX;
        return log->limits.max_size - MIN(log->size, log->limits.max_size);
}

/* A file that could not be rotated still gets the lines that fit. */
static int log_error_of_batch(const LogLineBatch *batch) {
        const ContainerLog *log = batch->log;
        size_t bytes = batch->bytes + (log->lost_bytes > 0 ? LOST_NOTICE_SIZE : 0);

        return log->fd >= 0 && bytes <= log_bytes_left(log) ? 0 : log->file_error;
}

static void flush_log_batch(LogLineBatch *batch) {
        ContainerLog *log = batch->log;
        int r;

        if (batch->bytes == 0)
                return;
        r = log_error_of_batch(batch);
        if (log->fd >= 0 && r >= 0) {
                write_lost_bytes_notice(batch);
                r = write_log_lines(log, batch_lines, batch->bytes);
        }
        if (r < 0)
                count_lost_log_bytes(log, batch->text_bytes, r);
        batch->bytes = batch->text_bytes = 0;
}

/* Rotates the file if the batch with this line does not fit. A line longer than the limit gets a
 * separate file. */
static void make_room_in_log(LogLineBatch *batch, size_t line_bytes) {
        ContainerLog *log = batch->log;

        if (log->lost_bytes > 0)
                line_bytes += LOST_NOTICE_SIZE;
        if (batch->bytes + line_bytes > BATCH_SIZE)
                flush_log_batch(batch);
        if (batch->bytes + line_bytes <= log_bytes_left(log))
                return;
        flush_log_batch(batch);
        if (log->fd < 0 || log->size == 0 || line_bytes <= log_bytes_left(log))
                return;
        log->file_error = open_log_file(log, LOG_REQUEST_ROTATE, batch->realtime_usec);
}

static void append_to_batch(LogLineBatch *batch, const void *data, size_t length) {
        if (length == 0)
                return;
        memcpy(batch_lines + batch->bytes, data, length);
        batch->bytes += length;
}

static void send_line_to_journal(JournalLog *journal, bool full, const LogStreamBuffer *stream,
                                 const char *text, size_t length) {
        journal_log_line(journal, &(JournalLine){
                                          .is_error = streq(stream->name, "stderr"),
                                          .is_part = !full,
                                          .text = { { stream->carry.data, stream->carry.length },
                                                    { (void *) (uintptr_t) text, length } },
                                  });
}

/* Adds one line: the carried-over part, then 'text'. */
static void add_log_line(LogLineBatch *batch, bool full, LogStreamBuffer *stream, const char *text,
                         size_t length) {
        make_room_in_log(batch, batch->head_length + stream->carry.length + length + 1);
        append_to_batch(batch, full ? batch->full : batch->part, batch->head_length);
        append_to_batch(batch, stream->carry.data, stream->carry.length);
        append_to_batch(batch, text, length);
        append_to_batch(batch, "\n", 1);
        batch->text_bytes += stream->carry.length + length;
        if (batch->log->journal)
                send_line_to_journal(batch->log->journal, full, stream, text, length);
        stream->carry.length = 0;
}

static void carry_partial_line(LogLineBatch *batch, LogStreamBuffer *stream, const char *text,
                               size_t length) {
        int r = length > 0 ? buffer_append(&stream->carry, text, length, LOG_LINE_MAX) : 0;

        if (r < 0)
                count_lost_log_bytes(batch->log, length, r);
}

static void log_batch_init(LogLineBatch *batch, ContainerLog *log, const LogStreamBuffer *stream,
                           uint64_t realtime_usec) {
        char stamp[RFC3339_SIZE];

        if (log->fd < 0)
                log->file_error = open_log_file(log, LOG_REQUEST_OPEN, realtime_usec);
        batch->log = log;
        batch->realtime_usec = realtime_usec;
        batch->bytes = batch->text_bytes = 0;
        (void) format_rfc3339_nano(stamp, realtime_usec);
        (void) snprintf(batch->full, sizeof(batch->full), "%s %s F ", stamp, stream->name);
        (void) snprintf(batch->part, sizeof(batch->part), "%s %s P ", stamp, stream->name);
        batch->head_length = strlen(batch->full);
}

static void free_empty_carry(LogStreamBuffer *stream) {
        if (stream->carry.length == 0)
                buffer_done(&stream->carry);
}

void container_log_write(ContainerLog *log, LogStreamBuffer *stream, const char *data,
                         size_t length, uint64_t realtime_usec) {
        LogLineBatch batch;

        log_batch_init(&batch, log, stream, realtime_usec);
        while (length > 0) {
                const char *newline = memchr(data, '\n', length);
                size_t text = newline ? (size_t) (newline - data) : length;
                size_t room = LOG_LINE_MAX - stream->carry.length;

                if (text > room) {
                        add_log_line(&batch, false, stream, data, room);
                        text = room;
                } else if (newline) {
                        add_log_line(&batch, true, stream, data, text);
                        text++;
                } else
                        carry_partial_line(&batch, stream, data, text);
                data += text;
                length -= text;
        }
        flush_log_batch(&batch);
        free_empty_carry(stream);
}

void container_log_end_line(ContainerLog *log, LogStreamBuffer *stream, uint64_t realtime_usec) {
        LogLineBatch batch;

        if (stream->carry.length == 0)
                return;
        log_batch_init(&batch, log, stream, realtime_usec);
        add_log_line(&batch, false, stream, NULL, 0);
        flush_log_batch(&batch);
        free_empty_carry(stream);
}

ContainerLog *container_log_free(ContainerLog *log) {
        if (!log)
                return NULL;
        journal_log_free(log->journal);
        close_fd(log->fd);
        free(log);
        return NULL;
}

void log_stream_buffer_done(LogStreamBuffer *stream) {
        buffer_done(&stream->carry);
}
