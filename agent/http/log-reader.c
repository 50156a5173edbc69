/* SPDX-License-Identifier: Apache-2.0 */

/* Reading a log; see the header.
 *
 * Following relies on the order of rotation: the shim renames "<n>.log", opens a new file, and
 * never writes to the old one again. So if the name refers to another file, the open file is read
 * to its end once more, and only then is the next one opened. Nothing between two files is lost or
 * read twice. */

#include "agent/http/log-reader.h"

#include "agent/http/log-files.h"
#include "agent/http/log-line.h"
#include "agent/http/log-tail.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file.h"

#include <fcntl.h>
#include <sys/stat.h>

enum {
        BLOCK_SIZE = 32 * 1024,
        LOG_READ_WORK_MAX = 256 * 1024, /* bytes read in one call */
};

struct LogReader {
        LogOptions options;
        unsigned attempt;
        bool is_live;
        int dir_fd;

        int fd;             /* the file that is being read; -EBADF: none yet */
        ino_t last_inode;   /* not following: the newest file at the start, at which reading
                             * stops */
        bool is_superseded; /* the name refers to a newer file: this one is complete */
        LogTail *tail;      /* not NULL while the first line is searched for */

        char block[BLOCK_SIZE];
        size_t start, end; /* the part that has not been parsed yet */
        LogRecord torn;    /* header of a record longer than the block, which has already been
                            * consumed */
        bool is_torn;
        bool is_since_past; /* a record was new enough, and so are all later ones */

        LogJoiner joiner;
        int64_t bytes_left; /* -1: no limit */
};

/* A pod with /var/log mounted could have created links there. */
static int open_log_directory(const char *path, Error *reterr) {
        int fd = open_no_symlinks(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);

        return fd < 0 ? error_prefixf(reterr, fd, "%s", path) : fd;
}

static int start_log_reader(LogReader *reader) {
        int r;

        if (reader->options.tail_lines >= 0)
                r = log_tail_new(reader->dir_fd, reader->attempt,
                                 (uint64_t) reader->options.tail_lines, &reader->tail);
        else
                r = log_files_open_next(reader->dir_fd, reader->attempt, -EBADF, &reader->fd);
        if (r < 0 && r != -EAGAIN)
                return r;
        return r == 0 && !reader->is_live ? -ENOENT : 0;
}

int log_reader_new(const LogSpec *spec, LogReader **ret, Error *reterr) {
        cleanup_with(log_reader_freep) LogReader *reader = calloc(1, sizeof(*reader));
        int r;

        if (!reader)
                return -ENOMEM;
        reader->options = spec->options;
        reader->attempt = spec->attempt;
        reader->is_live = spec->is_live;
        reader->fd = -EBADF;
        reader->bytes_left = spec->options.limit_bytes;
        reader->joiner.with_times = spec->options.timestamps;
        reader->is_since_past = spec->options.since_usec == 0;
        reader->dir_fd = open_log_directory(spec->directory, reterr);
        if (reader->dir_fd < 0)
                return reader->dir_fd;
        reader->last_inode = log_files_current(reader->dir_fd, spec->attempt);

        r = start_log_reader(reader);
        if (r < 0)
                return error_prefixf(reterr, r, "%s/%u.log", spec->directory, spec->attempt);
        *ret = TAKE_PTR(reader);
        return 0;
}

LogReader *log_reader_free(LogReader *reader) {
        if (!reader)
                return NULL;
        log_tail_free(reader->tail);
        log_joiner_done(&reader->joiner);
        close_fd(reader->fd);
        close_fd(reader->dir_fd);
        free(reader);
        return NULL;
}

void log_reader_set_ended(LogReader *reader) {
        reader->is_live = false;
}

int log_reader_dir_fd(const LogReader *reader) {
        return reader->dir_fd;
}

/* Continues the search for the first line; reading starts there. */
static int step_log_tail(LogReader *reader, size_t *work) {
        int r = log_tail_step(reader->tail, work, &reader->fd);

        if (r > 0)
                reader->tail = log_tail_free(reader->tail);
        return r < 0 ? r : 1;
}

static bool is_record_since(LogReader *reader, const LogRecord *record) {
        uint64_t usec;

        if (reader->is_since_past)
                return true;
        if (log_record_time(record, &usec) < 0 || usec < reader->options.since_usec)
                return false;
        reader->is_since_past = true;
        return true;
}

static int push_log_record(LogReader *reader, const LogRecord *record) {
        return is_record_since(reader, record) ? log_joiner_push(&reader->joiner, record) : 0;
}

/* A complete line, or a part of it without its newline. Lines that are not records are skipped,
 * as in the kubelet. */
static int push_log_line(LogReader *reader, const char *line, size_t length, bool is_whole) {
        LogRecord record;

        if (reader->is_torn) {
                record = reader->torn;
                record.text = line;
                record.length = length;
        } else if (log_record_parse(line, length, &record) < 0)
                return 0;
        if (!is_whole)
                record.is_partial = true;
        return push_log_record(reader, &record);
}

/* The block is full but contains no newline, so it becomes a part of a line, and the header of its
 * record is kept for the next part. The time is not kept, because a part in the middle of a line
 * needs none. */
static int push_partial_log_line(LogReader *reader) {
        const char *line = reader->block + reader->start;
        size_t length = reader->end - reader->start;
        int r;

        if (!reader->is_torn && log_record_parse(line, length, &reader->torn) < 0) {
                /* This is not a record, and the rest of the line will not be one either. */
                reader->start = reader->end = 0;
                return 0;
        }
        r = push_log_line(reader, line, length, false);
        reader->torn.time = "";
        reader->torn.time_length = 0;
        reader->is_torn = true;
        reader->start = reader->end = 0;
        return r;
}

/* Takes the next line out of the block. 1, 0 if there is none, -errno. */
static int parse_log_block(LogReader *reader) {
        const char *line = reader->block + reader->start;
        const char *newline = memchr(line, '\n', reader->end - reader->start);
        int r;

        if (!newline) {
                if (reader->end - reader->start == BLOCK_SIZE)
                        return push_partial_log_line(reader) < 0 ? -ENOMEM : 1;
                return 0;
        }
        r = push_log_line(reader, line, (size_t) (newline - line), true);
        reader->start += (size_t) (newline - line) + 1;
        reader->is_torn = false;
        return r < 0 ? r : 1;
}

/* Bytes read into the block, 0 at the end of the file, -errno. */
static ssize_t fill_log_block(LogReader *reader) {
        ssize_t n;

        if (reader->fd < 0)
                return 0;
        if (reader->start > 0) {
                memmove(reader->block, reader->block + reader->start, reader->end - reader->start);
                reader->end -= reader->start;
                reader->start = 0;
        }
        n = read(reader->fd, reader->block + reader->end, BLOCK_SIZE - reader->end);
        if (n < 0)
                return -errno;
        reader->end += (size_t) n;
        return n;
}

/* The file is complete, and its last line has no newline, because its writer died. */
static int finish_log_file(LogReader *reader) {
        int r = 0;

        if (reader->end > reader->start)
                r = push_log_line(reader, reader->block + reader->start,
                                  reader->end - reader->start, false);
        reader->start = reader->end = 0;
        reader->is_torn = false;
        return r;
}

/* A file that was last written before the requested time has only older records. */
static void skip_old_log_file(LogReader *reader) {
        struct stat st;

        if (reader->is_since_past || fstat(reader->fd, &st) < 0)
                return;
        if ((uint64_t) st.st_mtim.tv_sec < reader->options.since_usec / USEC_PER_SEC)
                (void) lseek(reader->fd, 0, SEEK_END);
}

/* 1 if the next file is open, 0 if there is none yet, -errno. */
static int open_next_log_file(LogReader *reader) {
        int fd, r;

        r = log_files_open_next(reader->dir_fd, reader->attempt, reader->fd, &fd);
        if (r <= 0)
                return r;
        r = finish_log_file(reader);
        close_fd(reader->fd);
        reader->fd = fd;
        reader->is_superseded = false;
        skip_old_log_file(reader);
        return r < 0 ? r : 1;
}

/* The file was truncated in place, so it is read from its start. */
static bool was_log_file_truncated(LogReader *reader, const struct stat *st) {
        if (lseek(reader->fd, 0, SEEK_CUR) <= st->st_size)
                return false;
        (void) lseek(reader->fd, 0, SEEK_SET);
        reader->start = reader->end = 0;
        reader->is_torn = false;
        return true;
}

/* All files are read: 0 if more may be written, 1 if buffered output is left, -ENODATA. */
static int handle_log_end(LogReader *reader) {
        bool may_grow = reader->options.follow && reader->is_live;
        size_t length = reader->joiner.out.length;
        int r = may_grow ? 0 : finish_log_file(reader);

        if (r < 0)
                return r;
        r = log_joiner_flush(&reader->joiner);
        if (r < 0)
                return r;
        if (reader->joiner.out.length > length)
                return 1;
        return may_grow ? 0 : -ENODATA;
}

/* At the end of a file. 1 if there is more to read, 0 if not yet, -ENODATA, -errno. */
static int advance_log_file(LogReader *reader) {
        struct stat st;
        int r;

        if (reader->fd >= 0) {
                if (fstat(reader->fd, &st) < 0)
                        return -errno;
                if (was_log_file_truncated(reader, &st))
                        return 1;
                if (!reader->options.follow && st.st_ino == reader->last_inode)
                        return handle_log_end(reader);
                if (!reader->is_superseded) {
                        if (log_files_current(reader->dir_fd, reader->attempt) == st.st_ino)
                                return handle_log_end(reader);
                        reader->is_superseded = true;
                        return 1;
                }
        }
        r = open_next_log_file(reader);
        return r == 0 ? handle_log_end(reader) : r;
}

/* One step. Returns 1, or a result of log_reader_read(). */
static int step_log_reader(LogReader *reader, size_t *work) {
        ssize_t n;
        int r;

        if (reader->tail)
                return step_log_tail(reader, work);
        r = parse_log_block(reader);
        if (r != 0)
                return r;
        n = fill_log_block(reader);
        if (n < 0)
                return (int) n;
        *work += (size_t) n;
        return n > 0 ? 1 : advance_log_file(reader);
}

static ssize_t copy_log_output(LogReader *reader, char *buffer, size_t size) {
        Buffer *out = &reader->joiner.out;
        size_t n = MIN(size, out->length);

        if (reader->bytes_left >= 0) {
                n = MIN(n, (size_t) reader->bytes_left);
                reader->bytes_left -= (int64_t) n;
        }
        if (n == 0)
                return -ENODATA;
        memcpy(buffer, out->data, n);
        out->length -= n;
        memmove(out->data, out->data + n, out->length);
        return (ssize_t) n;
}

ssize_t log_reader_read(LogReader *reader, char *buffer, size_t size) {
        size_t work = 0;

        /* Lines are collected until they fill the buffer, because each chunk costs a system call.
         */
        while (reader->joiner.out.length < size && reader->bytes_left != 0) {
                int r;

                if (work > LOG_READ_WORK_MAX)
                        break;
                r = step_log_reader(reader, &work);
                if (r > 0)
                        continue;
                if (reader->joiner.out.length > 0)
                        break;
                return r;
        }
        if (reader->joiner.out.length == 0 && reader->bytes_left != 0)
                return -EAGAIN;
        return copy_log_output(reader, buffer, size);
}
