/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Sends entries to the system's journal in its native protocol. sd_journal_sendv() is not used
 * because it blocks if the journal does not read.
 *
 * One entry is one datagram: "NAME=value " for each field. Values never contain a line break, which
 * would require a different encoding. */

#include "common/macros.h"

#include <stdint.h>
#include <sys/uio.h>

#define JOURNAL_SOCKET_PATH "/run/systemd/journal/socket"

typedef struct JournalSocket {
        const char *path;            /* borrowed; the journal need not be listening yet */
        int (*open)(void *userdata); /* replaces journal_socket_open(path); or NULL */
        void *userdata;
        int fd;              /* -EBADF: not connected */
        uint64_t connect_at; /* boot time of the next attempt to connect */
} JournalSocket;

#define JOURNAL_SOCKET_NULL(where) \
        { .path = (where), .fd = -EBADF }

/* Returns a socket connected to the journal at 'path', O_CLOEXEC and non-blocking; or -errno. */
int journal_socket_open(const char *path);

/* Sends an entry without blocking. 0 or -errno: -EAGAIN if the journal has not read earlier
 * entries. */
int journal_socket_send(JournalSocket *journal, const struct iovec *parts, size_t n_parts);

void journal_socket_done(JournalSocket *journal);
