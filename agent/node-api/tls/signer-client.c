/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node-api/tls/signer-client.h"

#include "agent/model/signer-protocol.h"
#include "common/cleanup.h"

#include <poll.h>
#include <sys/socket.h>

enum {
        REPLY_MSEC = 5000
};

void signer_client_connect(SignerClient *client, int fd_consume) {
        signer_client_disconnect(client);
        client->fd = fd_consume;
}

void signer_client_disconnect(SignerClient *client) {
        client->fd = close_fd(client->fd);
}

/* A late reply to this request would stay in the socket and be taken for the next reply, so the
 * connection must end. */
static ssize_t exchange_packets(const SignerClient *client, const void *request, size_t length,
                                char *reply, size_t size) {
        struct pollfd wait = { .fd = client->fd, .events = POLLIN };
        ssize_t n;

        if (client->fd < 0)
                return -ENOTCONN;
        if (send(client->fd, request, length, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
                return -errno;
        if (poll(&wait, 1, REPLY_MSEC) <= 0)
                return -ETIMEDOUT;
        n = recv(client->fd, reply, size, MSG_DONTWAIT);
        return n < 0 ? -errno : n == 0 ? -ECONNRESET : n;
}

int signer_client_ask(void *userdata, const void *request, size_t length, char **ret,
                      size_t *ret_length, Error *reterr) {
        static char reply[SIGNER_PACKET_MAX];
        SignerClient *client = userdata;
        ssize_t n = exchange_packets(client, request, length, reply, sizeof(reply));

        if (n < 0)
                return error_prefixf(reterr, (int) n, "the signer");
        if (reply[0] != SIGNER_DONE)
                return error_setf(reterr, EACCES, "%.*s", (int) n - 1, reply + 1);
        *ret = calloc(1, (size_t) n);
        if (!*ret)
                return -ENOMEM;
        memcpy(*ret, reply + 1, (size_t) n - 1);
        *ret_length = (size_t) n - 1;
        return 0;
}
