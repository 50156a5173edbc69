/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shim/container-log.h"

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/failpoint.h"
#include "common/file.h"
#include "common/log.h"
#include "common/strv.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/stat.h>
#include <time.h>

/* Lines are gathered in a buffer and written with one write(2), so that a reader never sees half a
 * line: the copy costs a tenth of what the kernel takes for as many vectors. All lines of a chunk
 * carry the time when the chunk was read. */

enum {
        HEAD_SIZE = sizeof("2026-01-02T03:04:05.123456789Z stdout F "),
        LOST_NOTICE_SIZE = HEAD_SIZE + 160,
        BATCH_SIZE = 64 * 1024, /* more than the longest line */
        ROTATIONS_PER_SECOND_MAX = 1000000,
        STAMP_SIZE = sizeof(".20260102-030405.000001"),
};

struct ContainerLog {
        int dir_fd;
        int fd; /* -EBADF when it could not be opened; retried at the next write */
        char *name;
        LogLimits limits;
        JournalLog *journal; /* NULL: lines are written to the file only */
        uint64_t size;
        uint64_t
                rotated_second; /* second of the last rotation, and the number of rotations in it */
        unsigned rotated_number;
        uint64_t lost_bytes;
        int lost_errno;
        int file_error; /* why no file can be written, or why the full one could not be rotated: 0
                           or -errno */
};

/* Whole lines to be written to the file. */
typedef struct LogLineBatch {
        ContainerLog *log;
        const char *stream;
        uint64_t realtime_usec;
        size_t bytes;
        size_t text_bytes;
        size_t head_length;
        char full[HEAD_SIZE];
        char part[HEAD_SIZE];
        char lines[BATCH_SIZE];
} LogLineBatch;

/* A disk error does not stop the container. Every other error refuses the start. */
static bool is_disk_error(int r) {
        return r == -ENOSPC || r == -EDQUOT || r == -EIO || r == -EROFS || r == -ENOMEM ||
               r == -EMFILE || r == -ENFILE;
}

static int open_log_file(ContainerLog *log) {
        cleanup_close int fd = openat(log->dir_fd, log->name,
                                      O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK |
                                              O_NOCTTY | O_CLOEXEC,
                                      0640);
        struct stat st;

        FAIL_AT("log.open");
        if (fd < 0)
                return -errno;
        if (fstat(fd, &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode) || st.st_nlink > 1)
                return -EINVAL;
        log->size = (uint64_t) st.st_size;
        log->fd = TAKE_FD(fd);
        return 0;
}

int container_log_open(const char *path, LogLimits limits, ContainerLog **ret, Error *reterr) {
        cleanup_with(container_log_freep) ContainerLog *log = calloc(1, sizeof(*log));
        const char *name;
        int r;

        if (!log)
                return -ENOMEM;
        log->dir_fd = log->fd = -EBADF;
        log->limits = limits;
        if (path[0] != '/')
                return error_setf(reterr, EINVAL, "'%s' is not a path of a log file", path);
        log->dir_fd = open_parent_no_symlinks(path, &name);
        if (log->dir_fd >= 0 && !(log->name = strdup(name)))
                return -ENOMEM;
        r = log->dir_fd < 0 ? log->dir_fd : open_log_file(log);
        log->file_error = r;
        if (r < 0 && (log->dir_fd < 0 || !is_disk_error(r)))
                return error_setf(reterr, -r, "cannot open the log '%s': %s", path, strerror(-r));
        *ret = TAKE_PTR(log);
        return 0;
}

void container_log_remove_empty(const ContainerLog *log) {
        if (log->fd >= 0 && log->size == 0)
                (void) unlinkat(log->dir_fd, log->name, 0);
}

void container_log_set_limits(ContainerLog *log, LogLimits limits) {
        log->limits = limits;
}

void container_log_set_journal_take(ContainerLog *log, JournalLog *journal) {
        journal_log_free(log->journal);
        log->journal = journal;
}

static int compare_rotated_names(const void *a, const void *b) {
        return strcmp(*(const char *const *) a, *(const char *const *) b);
}

/* Removes the oldest rotated files until 'keep' are left. Their names sort by age. */
static void remove_oldest_rotated_logs(ContainerLog *log, size_t keep) {
        cleanup_strv char **names = NULL;
        cleanup_closedir DIR *dir = NULL;
        size_t prefix = strlen(log->name), n = 0;
        struct dirent *entry;
        int fd = openat(log->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        dir = fd < 0 ? NULL : fdopendir(fd);
        if (!dir) {
                close_fd(fd);
                return;
        }
        while ((entry = readdir(dir)))
                if (strncmp(entry->d_name, log->name, prefix) == 0 &&
                    entry->d_name[prefix] == '.' && strv_append(&names, entry->d_name) >= 0)
                        n++;
        if (n == 0)
                return;
        qsort(names, n, sizeof(*names), compare_rotated_names);
        for (size_t i = 0; i + keep < n; i++)
                (void) unlinkat(log->dir_fd, names[i], 0);
}

/* Renames the file to a name that sorts after all earlier ones, even when several rotations happen
 * in one second or the clock is set back. */
static int rename_full_log(ContainerLog *log, uint64_t realtime_usec) {
        uint64_t second = MAX(realtime_usec / USEC_PER_SEC, log->rotated_second);
        unsigned first = second == log->rotated_second ? log->rotated_number + 1 : 0;
        char stamp[STAMP_SIZE];
        struct tm tm;
        size_t n;

        utc_from_seconds(second, &tm);
        n = strftime(stamp, sizeof(stamp), ".%Y%m%d-%H%M%S", &tm);
        for (unsigned i = first; i < ROTATIONS_PER_SECOND_MAX; i++) {
                cleanup_free char *name = NULL;

                if (i > 0)
                        (void) snprintf(stamp + n, sizeof(stamp) - n, ".%06u", i);
                if (asprintf(&name, "%s%s", log->name, stamp) < 0) {
                        name = NULL;
                        return -ENOMEM;
                }
                log->rotated_second = second;
                log->rotated_number = i;
                if (renameat2(log->dir_fd, log->name, log->dir_fd, name, RENAME_NOREPLACE) >= 0 ||
                    errno == ENOENT) /* the file was removed: create it again */
                        return 0;
                if (errno != EEXIST)
                        return -errno;
        }
        return -EEXIST;
}

static int rotate_container_log(ContainerLog *log, uint64_t realtime_usec) {
        int r = rename_full_log(log, realtime_usec);

        if (r < 0)
                return r;
        FAIL_AT("log.rotate");
        log->fd = close_fd(log->fd);
        log->size = 0;
        remove_oldest_rotated_logs(log, log->limits.max_files > 1 ? log->limits.max_files - 1 : 0);
        return open_log_file(log);
}

static void count_lost_log_bytes(ContainerLog *log, size_t bytes, int r) {
        log->lost_bytes += bytes;
        log->lost_errno = -r;
}

/* Writes whole lines or none: a partly written tail is truncated. */
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
 * fails too, and this is called again. */
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

/* How many bytes the file may still take. */
static uint64_t log_bytes_left(const ContainerLog *log) {
        if (log->limits.max_size == 0)
                return UINT64_MAX;
        return log->limits.max_size - MIN(log->size, log->limits.max_size);
}

static void flush_log_batch(LogLineBatch *batch) {
        ContainerLog *log = batch->log;
        int r = log->file_error;

        if (batch->bytes == 0)
                return;
        if (log->fd >= 0 && r >= 0) {
                write_lost_bytes_notice(batch);
                r = write_log_lines(log, batch->lines, batch->bytes);
        }
        if (r < 0)
                count_lost_log_bytes(log, batch->text_bytes, r);
        batch->bytes = batch->text_bytes = 0;
}

/* Rotates when the batch with this line does not fit into the file. A line longer than the limit
 * gets a file of its own. */
static void make_room_in_log(LogLineBatch *batch, size_t line_bytes) {
        ContainerLog *log = batch->log;
        int before = log->file_error;

        if (log->lost_bytes > 0)
                line_bytes += LOST_NOTICE_SIZE;
        if (batch->bytes + line_bytes > BATCH_SIZE)
                flush_log_batch(batch);
        if (batch->bytes + line_bytes <= log_bytes_left(log))
                return;
        flush_log_batch(batch);
        if (log->fd < 0 || log->size == 0 || line_bytes <= log_bytes_left(log))
                return;
        log->file_error = rotate_container_log(log, batch->realtime_usec);
        if (log->file_error < 0 && before >= 0)
                log_warning_errno(log->file_error, "Cannot rotate log '%s'", log->name);
}

static void append_to_batch(LogLineBatch *batch, const void *data, size_t length) {
        if (length == 0)
                return;
        memcpy(batch->lines + batch->bytes, data, length);
        batch->bytes += length;
}

static void send_line_to_journal(JournalLog *journal, bool full, const LogStreamBuffer *stream,
                                 const char *text, size_t length) {
        journal_log_line(journal, &(JournalLine){
                                          .is_error = streq(stream->name, "stderr"),
                                          .is_part = !full,
                                          .text = { { stream->carry, stream->carry_length },
                                                    { (void *) (uintptr_t) text, length } },
                                  });
}

/* One line: what was carried over, then 'text'. */
static void add_log_line(LogLineBatch *batch, bool full, LogStreamBuffer *stream, const char *text,
                         size_t length) {
        make_room_in_log(batch, batch->head_length + stream->carry_length + length + 1);
        append_to_batch(batch, full ? batch->full : batch->part, batch->head_length);
        append_to_batch(batch, stream->carry, stream->carry_length);
        append_to_batch(batch, text, length);
        append_to_batch(batch, "\n", 1);
        batch->text_bytes += stream->carry_length + length;
        if (batch->log->journal)
                send_line_to_journal(batch->log->journal, full, stream, text, length);
        stream->carry_length = 0;
}

static void carry_partial_line(LogLineBatch *batch, LogStreamBuffer *stream, const char *text,
                               size_t length) {
        char *larger;

        if (length == 0)
                return;
        larger = realloc(stream->carry, stream->carry_length + length);
        if (!larger) {
                count_lost_log_bytes(batch->log, length, -ENOMEM);
                return;
        }
        memcpy(larger + stream->carry_length, text, length);
        stream->carry = larger;
        stream->carry_length += length;
}

static void log_batch_init(LogLineBatch *batch, ContainerLog *log, const LogStreamBuffer *stream,
                           uint64_t realtime_usec) {
        char stamp[RFC3339_SIZE];

        if (log->fd < 0)
                log->file_error = open_log_file(log);
        batch->log = log;
        batch->realtime_usec = realtime_usec;
        batch->bytes = batch->text_bytes = 0;
        (void) format_rfc3339_nano(stamp, realtime_usec);
        (void) snprintf(batch->full, sizeof(batch->full), "%s %s F ", stamp, stream->name);
        (void) snprintf(batch->part, sizeof(batch->part), "%s %s P ", stamp, stream->name);
        batch->head_length = strlen(batch->full);
}

static void free_empty_carry(LogStreamBuffer *stream) {
        if (stream->carry_length == 0) {
                free(stream->carry);
                stream->carry = NULL;
        }
}

void container_log_write(ContainerLog *log, LogStreamBuffer *stream, const char *data,
                         size_t length, uint64_t realtime_usec) {
        LogLineBatch batch;

        log_batch_init(&batch, log, stream, realtime_usec);
        while (length > 0) {
                const char *newline = memchr(data, '\n', length);
                size_t text = newline ? (size_t) (newline - data) : length;
                size_t room = LOG_LINE_MAX - stream->carry_length;

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

        if (stream->carry_length == 0)
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
        close_fd(log->dir_fd);
        free(log->name);
        free(log);
        return NULL;
}

void log_stream_buffer_done(LogStreamBuffer *stream) {
        free(stream->carry);
        stream->carry = NULL;
        stream->carry_length = 0;
}
