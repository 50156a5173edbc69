/* SPDX-License-Identifier: Apache-2.0 */
#include "common/journal-socket.h"

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/unix-socket.h"

#include <sys/socket.h>

#define CONNECT_USEC (1 * USEC_PER_SEC)

int journal_socket_open(const char *path) {
        return unix_connect(path, SOCK_DGRAM | SOCK_NONBLOCK);
}

static int connect_journal_socket(JournalSocket *journal) {
        uint64_t now = now_boottime_usec();
        int r;

        if (now < journal->connect_at)
                return -ENOTCONN;
        journal->connect_at = now + CONNECT_USEC;
        r = journal->open ? journal->open(journal->userdata) : journal_socket_open(journal->path);
        if (r < 0)
                return r;
        journal->fd = r;
        return 0;
}

int journal_socket_send(JournalSocket *journal, const struct iovec *parts, size_t n_parts) {
        int r;

        for (;;) {
                r = journal->fd < 0 ? connect_journal_socket(journal) : 0;
                if (r < 0)
                        return r;
                /* writev(2) is used because the shim's copier may not call sendmsg(2), which could
                 * address another receiver. */
                if (writev(journal->fd, parts, (int) n_parts) >= 0)
                        return 0;
                r = -errno;
                if (r == -ECONNREFUSED || r == -ENOTCONN) /* a new journal may be listening by
                                                           * now */
                        journal->fd = close_fd(journal->fd);
                else if (r != -EINTR)
                        return r;
        }
}

void journal_socket_done(JournalSocket *journal) {
        journal->fd = close_fd(journal->fd);
}
