/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A container's lines in the system's journal, in addition to its log file, with searchable fields:
 * "journalctl CONTAINER_NAME=web".
 *
 * If journald does not read, it delays a container's output for at most a tenth of the time. Lines
 * that it has not accepted by then are dropped and counted, and the number is written to the
 * journal. */

#include "agent/sandbox/protocol.h"
#include "common/journal-socket.h"

#include <sys/uio.h>

typedef struct JournalLog JournalLog;

/* The lines "NAME=value" that are part of every entry; the caller frees them; invalid ones are
 * omitted. NULL: out of memory. */
char *journal_fields_format(const StringList *fields);

/* 'fields' are these lines, and are copied; the socket is opened later. 0 or -ENOMEM. */
int journal_log_new(const JournalSocket *socket, const char *fields, JournalLog **ret);

typedef struct JournalLine {
        bool is_error; /* from standard error: PRIORITY=3, else 6 */
        bool is_part;  /* the line continues in the next entry */
        struct iovec text[2];
} JournalLine;

/* Sends a line. Never fails for the caller. */
void journal_log_line(JournalLog *journal, const JournalLine *line);

JournalLog *journal_log_free(JournalLog *journal);
DEFINE_CLEANUP(JournalLog *, journal_log_free)
