/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A container's lines in the system's journal, beside its log file, with fields by which they are
 * found: "journalctl CONTAINER_NAME=web".
 *
 * A journal that does not read holds up a container's output for at most a tenth of the time; what
 * is not taken by then is counted, and the journal is told how much it lacks. */

#include "agent/sandbox/protocol.h"

#include <sys/uio.h>

typedef struct JournalLog JournalLog;

/* 'fields', "NAME=value" each, are those that every line bears; one that cannot be one is left out.
 * 'socket_path' is borrowed; nobody need listen there yet. 0 or -ENOMEM. */
int journal_log_new(const char *socket_path, const StringList *fields, JournalLog **ret);

typedef struct JournalLine {
        bool is_error; /* from standard error: PRIORITY=3, else 6 */
        bool is_part;  /* of a line that goes on */
        struct iovec text[2];
} JournalLine;

/* Sends a line. Never fails, as far as the container is concerned. */
void journal_log_line(JournalLog *journal, const JournalLine *line);

JournalLog *journal_log_free(JournalLog *journal);
DEFINE_CLEANUP(JournalLog *, journal_log_free)
