/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shim/journal-log.h"

#include "common/cleanup.h"
#include "common/clock.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>

#define PERIOD_USEC (1 * USEC_PER_SEC)
#define PATIENCE_MS 100 /* per period */

enum {
        PARTS = 5
};

struct JournalLog {
        JournalSocket socket;
        char *fields; /* "NAME=value\n" for each field */
        size_t fields_length;
        uint64_t n_lost;
};

/* The time for which the process, which serves all containers of the pod, may still wait in this
 * period. */
static struct {
        uint64_t begins;
        int patience_ms;
} period;

char *journal_fields_format(const StringList *fields) {
        char *text = NULL;
        size_t length;
        FILE *out = open_memstream(&text, &length);

        for (size_t i = 0; out && i < fields->n; i++)
                if (strchr(fields->items[i], '=') && !strchr(fields->items[i], '\n'))
                        (void) fprintf(out, "%s\n", fields->items[i]);
        if (out && fclose(out) == 0)
                return text;
        free(text);
        return NULL;
}

int journal_log_new(const JournalSocket *socket, const char *fields, JournalLog **ret) {
        JournalLog *journal = calloc(1, sizeof(*journal));

        if (!journal)
                return -ENOMEM;
        journal->socket = *socket;
        journal->fields = strdup(fields);
        if (!journal->fields) {
                free(journal);
                return -ENOMEM;
        }
        journal->fields_length = strlen(fields);
        *ret = journal;
        return 0;
}

/* Waits until the journal has read data, or the waiting time is used up. */
static bool wait_for_journal(JournalLog *journal) {
        struct pollfd poller = { .fd = journal->socket.fd, .events = POLLOUT };
        uint64_t now = now_boottime_usec(), waited;

        if (now - period.begins >= PERIOD_USEC) {
                period.begins = now;
                period.patience_ms = PATIENCE_MS;
        }
        if (period.patience_ms <= 0 || poll(&poller, 1, period.patience_ms) < 0)
                return false;
        waited = now_boottime_usec() - now;
        period.patience_ms -= (int) MIN(waited / USEC_PER_MSEC + 1, (uint64_t) PATIENCE_MS);
        return (poller.revents & POLLOUT) != 0;
}

static int send_journal_line(JournalLog *journal, const struct iovec parts[static PARTS]) {
        int r;

        do
                r = journal_socket_send(&journal->socket, parts, PARTS);
        while (r == -EAGAIN && wait_for_journal(journal));
        return r;
}

static struct iovec text_vector(const char *text) {
        return (struct iovec){ (void *) (uintptr_t) text, strlen(text) };
}

static void send_lost_lines_notice(JournalLog *journal) {
        char text[128] = "";
        struct iovec parts[PARTS] = {
                { journal->fields, journal->fields_length },
                text_vector("PRIORITY=4\n"),
                text_vector(text),
        };

        (void) snprintf(text, sizeof(text),
                        "MESSAGE=[mainstay: %" PRIu64 " lines did not reach the journal]\n",
                        journal->n_lost);
        parts[2].iov_len = strlen(text);
        if (send_journal_line(journal, parts) >= 0)
                journal->n_lost = 0;
}

void journal_log_line(JournalLog *journal, const JournalLine *line) {
        struct iovec parts[PARTS] = {
                { journal->fields, journal->fields_length },
                text_vector(line->is_error ? "PRIORITY=3\nMESSAGE=" : "PRIORITY=6\nMESSAGE="),
                line->text[0],
                line->text[1],
                text_vector(line->is_part ? "\nCONTAINER_PARTIAL_MESSAGE=true\n" : "\n"),
        };

        if (journal->n_lost > 0)
                send_lost_lines_notice(journal);
        if (send_journal_line(journal, parts) < 0)
                journal->n_lost++;
}

JournalLog *journal_log_free(JournalLog *journal) {
        if (!journal)
                return NULL;
        if (journal->n_lost > 0)
                send_lost_lines_notice(journal);
        journal_socket_done(&journal->socket);
        free(journal->fields);
        free(journal);
        return NULL;
}
