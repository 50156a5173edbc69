/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A container's lines in the system's journal, beside its log file, with fields to find them by:
 * "journalctl CONTAINER_NAME=web".
 *
 * A journal that does not read delays a container's output for at most a tenth of the time. Lines
 * that it has not taken by then are dropped and counted, and the number is written to the journal.
 */

#include "agent/sandbox/protocol.h"

#include <sys/uio.h>

typedef struct JournalLog JournalLog;

/* 'fields', "NAME=value" each, are part of every line; invalid ones are left out. 'socket_path' is
 * borrowed; no journal need listen there yet. 0 or -ENOMEM. */
int journal_log_new(const char *socket_path, const StringList *fields, JournalLog **ret);

typedef struct JournalLine {
        bool is_error; /* from standard error: PRIORITY=3, else 6 */
        bool is_part;  /* the line continues in the next entry */
        struct iovec text[2];
} JournalLine;

/* Sends a line. Never fails for the caller. */
void journal_log_line(JournalLog *journal, const JournalLine *line);

JournalLog *journal_log_free(JournalLog *journal);
DEFINE_CLEANUP(JournalLog *, journal_log_free)
