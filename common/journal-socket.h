/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The system's journal, in its native protocol, which sd_journal_sendv() speaks too; but that waits
 * for a journal that does not read, for as long as that takes.
 *
 * One entry is one datagram: "NAME=value\n" of each field. Only a value with a line break in it
 * would need another form: there is none. */

#include "common/macros.h"

#include <stdint.h>
#include <sys/uio.h>

#define JOURNAL_SOCKET_PATH "/run/systemd/journal/socket"

typedef struct JournalSocket {
        const char *path;    /* borrowed; nobody need listen there yet */
        int fd;              /* -EBADF: nobody listened */
        uint64_t connect_at; /* boottime: not tried again before that */
} JournalSocket;

#define JOURNAL_SOCKET_NULL(where) \
        { .path = (where), .fd = -EBADF }

/* Sends an entry and waits for nothing. 0 or -errno: -EAGAIN when the journal has not read what it
 * was sent before. */
int journal_socket_send(JournalSocket *journal, const struct iovec *parts, size_t n_parts);

void journal_socket_done(JournalSocket *journal);
