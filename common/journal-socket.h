/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Entries for the system's journal, in its native protocol. sd_journal_sendv() is not used because
 * it blocks while the journal does not read.
 *
 * One entry is one datagram: "NAME=value
 * " of each field. Values never contain a line break, which would need a different form. */

#include "common/macros.h"

#include <stdint.h>
#include <sys/uio.h>

#define JOURNAL_SOCKET_PATH "/run/systemd/journal/socket"

typedef struct JournalSocket {
        const char *path;            /* borrowed; no journal need listen there yet */
        int (*open)(void *userdata); /* in place of journal_socket_open() of the path; or NULL */
        void *userdata;
        int fd;              /* -EBADF: not connected */
        uint64_t connect_at; /* boottime of the next attempt to connect */
} JournalSocket;

#define JOURNAL_SOCKET_NULL(where) \
        { .path = (where), .fd = -EBADF }

/* A socket that is connected to the journal at 'path'; O_CLOEXEC, and it does not block. -errno. */
int journal_socket_open(const char *path);

/* Sends an entry without waiting. 0 or -errno: -EAGAIN if the journal has not read earlier
 * entries. */
int journal_socket_send(JournalSocket *journal, const struct iovec *parts, size_t n_parts);

void journal_socket_done(JournalSocket *journal);
