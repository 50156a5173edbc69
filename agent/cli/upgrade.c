/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cli/upgrade.h"

#include "agent/cli/agent-client.h"
#include "common/channels.h"
#include "common/cleanup.h"
#include "common/text.h"
#include "common/unix-socket.h"
#include "common/websocket-handshake.h"

#include <sys/socket.h>

enum {
        ANSWER_MAX = 16 * 1024,
};

static int connect_to_agent(const char *path, int *ret, Error *reterr) {
        int fd = unix_connect(path, SOCK_STREAM);

        if (fd == -ENAMETOOLONG)
                return error_setf(reterr, ENAMETOOLONG, "the path of the socket %s is too long",
                                  path);
        if (fd < 0)
                return client_explain_connection(-fd, path, reterr);
        *ret = fd;
        return 0;
}

/* Byte by byte, so that no data after the header is consumed. */
static int read_response_head(int fd, char *ret, size_t size) {
        size_t n = 0;

        while (n < size - 1) {
                ssize_t got = read(fd, ret + n, 1);

                if (got < 0 && errno == EINTR)
                        continue;
                if (got <= 0)
                        return got < 0 ? -errno : -ECONNRESET;
                ret[++n] = '\0';
                if (n >= 4 && streq(ret + n - 4, "\r\n\r\n"))
                        return 0;
        }
        return -EMSGSIZE;
}

/* The one-line message of an error response. */
static int read_upgrade_error(int fd, long status, Error *reterr) {
        char text[1024];
        size_t n = 0;

        while (n < sizeof(text) - 1) {
                ssize_t got = read(fd, text + n, sizeof(text) - 1 - n);

                if (got <= 0)
                        break;
                n += (size_t) got;
                if (memchr(text, '\n', n))
                        break;
        }
        text[n] = '\0';
        return client_explain_refusal(status, text, reterr);
}

static int send_upgrade_request(int fd, const char *text) {
        for (size_t left = strlen(text); left > 0;) {
                ssize_t n = send(fd, text, left, MSG_NOSIGNAL);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                text += n;
                left -= (size_t) n;
        }
        return 0;
}

int upgrade_connect(const char *socket_path, const char *path, int *ret, Error *reterr) {
        char key[WEBSOCKET_ACCEPT_SIZE], accept[WEBSOCKET_ACCEPT_SIZE], head[ANSWER_MAX];
        cleanup_free char *request = NULL;
        cleanup_close int fd = -EBADF;
        int r = connect_to_agent(socket_path, &fd, reterr);

        if (r < 0)
                return r;
        request = text_format("GET %s HTTP/1.1\r\nHost: mainstay\r\nConnection: Upgrade\r\n"
                              "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                              "Sec-WebSocket-Key: %s\r\nSec-WebSocket-Protocol: " CHANNELS_PROTOCOL
                              "\r\n\r\n",
                              path, websocket_new_key(key));
        if (!request)
                return -ENOMEM;
        r = send_upgrade_request(fd, request);
        if (r >= 0 ||
            r == -EPIPE) /* it may have replied to the beginning of a request that is too long */
                r = read_response_head(fd, head, sizeof(head));
        if (r < 0)
                return error_setf(reterr, -r,
                                  "the agent at %s closed the connection within its response (%s)",
                                  socket_path, strerror(-r));
        if (strncmp(head, "HTTP/1.1 101 ", 13) != 0)
                return read_upgrade_error(fd, strtol(head + strcspn(head, " "), NULL, 10), reterr);
        if (!strstr(head, websocket_accept_key(key, accept)))
                return error_setf(reterr, EPROTO, "the agent at %s does not support WebSocket",
                                  socket_path);
        *ret = TAKE_FD(fd);
        return 0;
}
