/* SPDX-License-Identifier: Apache-2.0 */

/* The last lines of a log (tailLines); see the header. */

#include "agent/http/log-tail.h"

#include "agent/http/log-files.h"
#include "agent/http/log-line.h"
#include "common/cleanup.h"

#include <sys/stat.h>

enum {
        BLOCK_SIZE = 32 * 1024,
        HEADER_SIZE = 64, /* enough for time, stream and tag of a record */
};

struct LogTail {
        int dir_fd; /* the reader's */
        unsigned attempt;
        uint64_t lines_left;

        int fd;
        off_t position; /* all newlines from here on have been counted */
        off_t line_end; /* of the line that starts before 'position'; -1: unknown */
        off_t size;
        char block[BLOCK_SIZE];
};

/* Opens the file before the current one. 1, 0 if there is none, -errno. */
static int open_previous_log_file(LogTail *tail) {
        struct stat st;
        int fd, r;

        r = log_files_open_previous(tail->dir_fd, tail->attempt, tail->fd, &fd);
        if (r <= 0)
                return r;
        if (fstat(fd, &st) < 0) {
                r = -errno;
                close_fd(fd);
                return r;
        }
        close_fd(tail->fd);
        tail->fd = fd;
        tail->position = tail->size = st.st_size;
        tail->line_end = -1;
        return 1;
}

int log_tail_new(int dir_fd, unsigned attempt, uint64_t lines, LogTail **ret) {
        LogTail *tail = calloc(1, sizeof(*tail));
        int r;

        if (!tail)
                return -ENOMEM;
        tail->dir_fd = dir_fd;
        tail->attempt = attempt;
        tail->lines_left = lines;
        tail->fd = -EBADF;
        r = open_previous_log_file(tail);
        if (r < 0) {
                log_tail_free(tail);
                return r;
        }
        *ret = tail;
        return r;
}

LogTail *log_tail_free(LogTail *tail) {
        if (tail)
                close_fd(tail->fd);
        free(tail);
        return NULL;
}

/* Whether the line at 'offset' is the end of a joined line: a record marked F. */
static bool ends_log_line(LogTail *tail, off_t offset, off_t block_start, size_t block_length) {
        char header[HEADER_SIZE];
        const char *line = header;
        size_t length = (size_t) MIN(tail->line_end - offset, (off_t) HEADER_SIZE);
        LogRecord record;

        if (offset >= block_start && offset + (off_t) length <= block_start + (off_t) block_length)
                line = tail->block + (offset - block_start);
        else if (pread(tail->fd, header, length, offset) != (ssize_t) length)
                return false;
        return log_record_parse(line, length, &record) >= 0 && !record.is_partial;
}

/* Counts the line from 'offset' to line_end. True if the requested lines start at its end. */
static bool count_log_line(LogTail *tail, off_t offset, off_t block_start, size_t block_length) {
        if (tail->line_end < 0 || !ends_log_line(tail, offset, block_start, block_length))
                return false;
        if (tail->lines_left == 0)
                return true;
        tail->lines_left--;
        return false;
}

static int set_log_tail_start(LogTail *tail, off_t offset, int *ret_fd) {
        if (tail->fd >= 0 && lseek(tail->fd, offset, SEEK_SET) < 0)
                return -errno;
        if (tail->fd >= 0)
                *ret_fd = TAKE_FD(tail->fd);
        return 1;
}

int log_tail_step(LogTail *tail, size_t *work, int *ret_fd) {
        off_t block_start = MAX(tail->position - BLOCK_SIZE, (off_t) 0);
        size_t length = (size_t) (tail->position - block_start);
        ssize_t n;
        int r;

        if (tail->fd < 0)
                return set_log_tail_start(tail, 0, ret_fd);
        if (length == 0) {
                /* The first line of a file has no newline before it. */
                if (count_log_line(tail, 0, 0, 0))
                        return set_log_tail_start(tail, tail->line_end + 1, ret_fd);
                r = open_previous_log_file(tail);
                if (r == 0)
                        return set_log_tail_start(tail, 0, ret_fd);
                return r < 0 ? r : 0;
        }
        n = pread(tail->fd, tail->block, length, block_start);
        if (n < 0)
                return -errno;
        if ((size_t) n < length) /* it was truncated */
                return set_log_tail_start(tail, 0, ret_fd);
        *work += length;
        for (size_t i = length; i > 0; i--) {
                if (tail->block[i - 1] != '\n')
                        continue;
                if (count_log_line(tail, block_start + (off_t) i, block_start, length))
                        return set_log_tail_start(tail, tail->line_end + 1, ret_fd);
                tail->line_end = block_start + (off_t) i - 1;
        }
        tail->position = block_start;
        return 0;
}
