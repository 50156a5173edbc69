/* SPDX-License-Identifier: Apache-2.0 */

/* CRI log lines; see the header. */

#include "agent/http/log-line.h"

#include "common/cleanup.h"
#include "common/clock.h"

/* Longer lines are returned in pieces, so that a line without end does not exhaust memory. */
enum {
        LOG_LINE_BYTES_MAX = 64 * 1024
};

/* The word up to the next space, which is skipped; NULL if there is no space. */
static const char *parse_log_word(const char **p, const char *end, size_t *ret_length) {
        const char *word = *p;
        const char *space = memchr(word, ' ', (size_t) (end - word));

        if (!space)
                return NULL;
        *ret_length = (size_t) (space - word);
        *p = space + 1;
        return word;
}

static bool word_is(const char *word, size_t length, const char *expected) {
        return length == strlen(expected) && memcmp(word, expected, length) == 0;
}

int log_record_parse(const char *line, size_t length, LogRecord *ret) {
        const char *p = line, *end = line + length, *word;
        LogRecord record = { 0 };
        size_t n = 0;

        record.time = parse_log_word(&p, end, &record.time_length);
        if (!record.time || record.time_length < 2 || record.time_length > LOG_TIME_MAX)
                return -EBADMSG;

        word = parse_log_word(&p, end, &n);
        if (word && word_is(word, n, "stdout"))
                record.stream = LOG_STDOUT;
        else if (word && word_is(word, n, "stderr"))
                record.stream = LOG_STDERR;
        else
                return -EBADMSG;

        /* Tags are separated by colons, the first is F or P. An empty text may come without its
         * space. */
        word = parse_log_word(&p, end, &n);
        if (!word) {
                word = p;
                n = (size_t) (end - p);
                p = end;
        }
        if (n < 1 || (word[0] != 'F' && word[0] != 'P') || (n > 1 && word[1] != ':'))
                return -EBADMSG;
        record.is_partial = word[0] == 'P';
        record.text = p;
        record.length = (size_t) (end - p);
        *ret = record;
        return 0;
}

int log_record_time(const LogRecord *record, uint64_t *ret_usec) {
        char text[LOG_TIME_MAX + 1];

        if (record->time_length >= sizeof(text))
                return -EBADMSG;
        memcpy(text, record->time, record->time_length);
        text[record->time_length] = '\0';
        return parse_rfc3339(text, ret_usec) < 0 ? -EBADMSG : 0;
}

/* Moves the buffered part of a stream's line into 'out'. */
static int flush_log_part(LogJoiner *joiner, unsigned stream) {
        Buffer *part = &joiner->parts[stream];
        int r = 0;

        if (joiner->has_open && joiner->opened != stream)
                r = buffer_append(&joiner->out, "\n", 1, SIZE_MAX);
        if (r >= 0)
                r = buffer_append(&joiner->out, part->data, part->length, SIZE_MAX);
        part->length = 0;
        joiner->has_open = true;
        joiner->opened = stream;
        return r;
}

/* Nearly all lines consist of one record, which is copied only once. */
static int append_whole_log_line(LogJoiner *joiner, const LogRecord *record) {
        size_t time_length = joiner->with_times ? record->time_length + 1 : 0;
        size_t length = time_length + record->length + 1;
        char *line = buffer_reserve(&joiner->out, length);

        if (!line)
                return -ENOMEM;
        if (time_length > 0) {
                memcpy(line, record->time, record->time_length);
                line[record->time_length] = ' ';
        }
        memcpy(line + time_length, record->text, record->length);
        memcpy(line + length - 1, "\n", sizeof("\n"));
        joiner->out.length += length;
        return 0;
}

int log_joiner_push(LogJoiner *joiner, const LogRecord *record) {
        Buffer *part = &joiner->parts[record->stream];
        bool has_started =
                part->length > 0 || (joiner->has_open && joiner->opened == record->stream);
        int r;

        if (!record->is_partial && part->length == 0 && !joiner->has_open)
                return append_whole_log_line(joiner, record);
        if (joiner->with_times && !has_started) {
                r = buffer_append(part, record->time, record->time_length, SIZE_MAX);
                if (r < 0)
                        return r;
                r = buffer_append(part, " ", 1, SIZE_MAX);
                if (r < 0)
                        return r;
        }
        r = buffer_append(part, record->text, record->length, SIZE_MAX);
        if (r < 0)
                return r;
        if (record->is_partial)
                return part->length < LOG_LINE_BYTES_MAX ? 0
                                                         : flush_log_part(joiner, record->stream);

        r = flush_log_part(joiner, record->stream);
        joiner->has_open = false;
        return r < 0 ? r : buffer_append(&joiner->out, "\n", 1, SIZE_MAX);
}

int log_joiner_flush(LogJoiner *joiner) {
        for (unsigned stream = 0; stream < N_LOG_STREAMS; stream++) {
                int r = joiner->parts[stream].length > 0 ? flush_log_part(joiner, stream) : 0;

                if (r < 0)
                        return r;
        }
        return 0;
}

void log_joiner_done(LogJoiner *joiner) {
        free(joiner->out.data);
        for (unsigned stream = 0; stream < N_LOG_STREAMS; stream++)
                free(joiner->parts[stream].data);
        *joiner = (LogJoiner){ 0 };
}
