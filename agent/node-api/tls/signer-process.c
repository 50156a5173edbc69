/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node-api/tls/signer-process.h"

#include "agent/model/signer-protocol.h"
#include "agent/node-api/process/api-confine.h"
#include "agent/node-api/tls/signer.h"
#include "common/cleanup.h"
#include "common/packet.h"

#include <poll.h>
#include <unistd.h>

enum {
        CLIENTS_MAX = 16,      /* number of mainstay-api's connections */
        IDLE_MSEC = 60 * 1000, /* without any */
};

typedef struct SignerProcess {
        Signer *signer;
        struct pollfd sockets[1 + CLIENTS_MAX]; /* the agent is the first */
        nfds_t n;
        char packet[SIGNER_PACKET_MAX];
} SignerProcess;

static void add_client(SignerProcess *process, int fd_consume) {
        if (fd_consume >= 0 && process->n < N_ELEMENTS(process->sockets))
                process->sockets[process->n++] =
                        (struct pollfd){ .fd = fd_consume, .events = POLLIN };
        else
                close_fd(fd_consume);
}

/* -errno: the agent is gone. */
static int take_agent_packet(SignerProcess *process) {
        cleanup_close int fd = -EBADF;
        ssize_t n = packet_receive(STDIN_FILENO, process->packet, sizeof(process->packet), &fd);
        const char *hash;

        if (n == -EAGAIN || n == -EINTR)
                return 0;
        if (n <= 0 || n > SIGNER_PACKET_MAX)
                return n < 0 ? (int) n : -ECONNRESET;
        if (process->packet[0] == SIGNER_CLIENT)
                add_client(process, TAKE_FD(fd));
        if (process->packet[0] != SIGNER_MATERIAL || n <= 1 + TICKET_KEY_SIZE)
                return 0;
        signer_use_material(process->signer, (const uint8_t *) process->packet + 1,
                            process->packet + 1 + TICKET_KEY_SIZE,
                            (size_t) n - 1 - TICKET_KEY_SIZE);
        explicit_bzero(process->packet, (size_t) n);
        hash = signer_authorities(process->signer);
        (void) packet_send(STDIN_FILENO, hash, strlen(hash) + 1, -EBADF);
        return 0;
}

/* False: the client is gone, or sends data that mainstay-api never would. */
static bool answer_client(SignerProcess *process, int socket_fd) {
        cleanup_close int fd = -EBADF;
        cleanup_free char *answer = NULL;
        size_t length;
        ssize_t n = packet_receive(socket_fd, process->packet, sizeof(process->packet), &fd);

        if (n == -EAGAIN || n == -EINTR)
                return true;
        return n > 0 && n <= SIGNER_PACKET_MAX &&
               signer_answer(process->signer, process->packet, (size_t) n, &answer, &length) >= 0 &&
               packet_send(socket_fd, answer, length, -EBADF) >= 0;
}

static void answer_clients(SignerProcess *process) {
        for (nfds_t i = process->n - 1; i > 0; i--) {
                struct pollfd *client = &process->sockets[i];

                if (client->revents == 0 || answer_client(process, client->fd))
                        continue;
                close_fd(client->fd);
                *client = process->sockets[--process->n];
        }
}

/* New material is processed before the requests that depend on it. */
static int serve_signer(SignerProcess *process) {
        int r = 0;

        while (r >= 0) {
                int n = poll(process->sockets, process->n, process->n > 1 ? -1 : IDLE_MSEC);

                if (n < 0 && errno != EINTR)
                        return -errno;
                if (n == 0)
                        return 0;
                if (n > 0 && process->sockets[0].revents)
                        r = take_agent_packet(process);
                else if (n > 0)
                        answer_clients(process);
        }
        return r == -ECONNRESET ? 0 : r;
}

int run_signer_process(const char *user, Error *reterr) {
        static SignerProcess process = { .sockets = { { .fd = STDIN_FILENO, .events = POLLIN } },
                                         .n = 1 };
        int r = confine_signer_process(user, reterr);

        if (r < 0)
                return r;
        r = signer_new(&process.signer);
        if (r < 0)
                return r;
        r = confine_signer_calls(reterr);
        if (r < 0)
                return r;
        r = serve_signer(&process);
        return r < 0 ? error_prefixf(reterr, r, "the signer") : 0;
}
