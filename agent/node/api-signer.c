/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node/api-signer.h"

#include "agent/kubeclient/tls-config.h"
#include "agent/model/signer-protocol.h"
#include "common/child.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/log.h"
#include "common/packet.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/wait.h>

enum {
        HASH_MAX = 128, /* authorities' hash, in hex */
};

struct ApiSigner {
        ApiSignerSpec spec;
        uint8_t ticket_key[TICKET_KEY_SIZE];
        char *material;
        bool has_sent_material;
        int fd; /* the agent's end of the signer's standard input; -EBADF: it does not run */
        sd_event_source *source, *exit_source;
};

/* ---- the key of tickets ---- */

static int make_ticket_key(const char *path, uint8_t key[TICKET_KEY_SIZE]) {
        cleanup_close int fd =
                open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);

        if (fd < 0)
                return -errno;
        if (getrandom(key, TICKET_KEY_SIZE, 0) != TICKET_KEY_SIZE)
                return -EIO;
        return write_all(fd, (const char *) key, TICKET_KEY_SIZE);
}

/* Connections of mainstay-api outlive an agent, so their tickets must do so as well. */
static int find_ticket_key(ApiSigner *signer) {
        cleanup_free char *path = path_join(signer->spec.run_dir, "node-api.key");
        cleanup_close int fd = path ? open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC) : -EBADF;

        if (!path)
                return -ENOMEM;
        if (fd >= 0 && read(fd, signer->ticket_key, TICKET_KEY_SIZE) == TICKET_KEY_SIZE)
                return 0;
        return make_ticket_key(path, signer->ticket_key);
}

int api_signer_new(const ApiSignerSpec *spec, ApiSigner **ret, Error *reterr) {
        ApiSigner *signer = calloc(1, sizeof(*signer));
        int r;

        if (!signer)
                return -ENOMEM;
        signer->spec = *spec;
        signer->fd = -EBADF;
        r = find_ticket_key(signer);
        if (r < 0) {
                api_signer_free(signer);
                return error_prefixf(reterr, r, "%s/node-api.key", spec->run_dir);
        }
        *ret = signer;
        return 0;
}

const uint8_t *api_signer_ticket_key(const ApiSigner *signer) {
        return signer->ticket_key;
}

/* ---- the process ---- */

/* The signer ends when its input is closed. */
static void disconnect_signer(ApiSigner *signer) {
        signer->source = sd_event_source_disable_unref(signer->source);
        signer->fd = close_fd(signer->fd);
        signer->has_sent_material = false;
}

ApiSigner *api_signer_free(ApiSigner *signer) {
        if (!signer)
                return NULL;
        disconnect_signer(signer);
        sd_event_source_disable_unref(signer->exit_source);
        secret_free(signer->material);
        explicit_bzero(signer->ticket_key, sizeof(signer->ticket_key));
        free(signer);
        return NULL;
}

static int on_signer_exit(sd_event_source *source, const siginfo_t *si, void *userdata) {
        ApiSigner *signer = userdata;

        signer->exit_source = sd_event_source_disable_unref(signer->exit_source);
        if (si->si_code != CLD_EXITED || si->si_status != 0)
                log_warning("The signer of '%s' %s %d", signer->spec.program,
                            si->si_code == CLD_EXITED ? "exited with status"
                                                      : "was killed by signal",
                            si->si_status);
        disconnect_signer(signer);
        return 0;
}

static int on_signer_packet(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        ApiSigner *signer = userdata;
        char hash[HASH_MAX + 1] = "";
        cleanup_close int passed = -EBADF;
        ssize_t n = packet_receive(fd, hash, HASH_MAX, &passed);

        if (n == -EAGAIN || n == -EINTR)
                return 0;
        if (n <= 0)
                disconnect_signer(signer);
        else if (n <= HASH_MAX)
                signer->spec.on_authorities(hash, signer->spec.userdata);
        return 0;
}

static int watch_signer(ApiSigner *signer, pid_t pid) {
        int r = sd_event_add_io(signer->spec.event, &signer->source, signer->fd, EPOLLIN,
                                on_signer_packet, signer);

        if (r < 0)
                return r;
        sd_event_source_disable_unref(TAKE_PTR(signer->exit_source)); /* child source of the
                                                                       * previous signer, which is
                                                                       * ending */
        r = sd_event_add_child(signer->spec.event, &signer->exit_source, pid, WEXITED,
                               on_signer_exit, signer);
        return r < 0 ? r : child_source_rearm(signer->exit_source);
}

static int start_signer(ApiSigner *signer) {
        char option[] = "--signer";
        char *const argv[] = { signer->spec.program, option, NULL };
        int fds[2], r;
        pid_t pid = 0;

        if (signer->fd >= 0)
                return 0;
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) < 0)
                return -errno;
        r = child_spawn_detached(argv, fds[1], -EBADF, &pid);
        close_fd(fds[1]);
        signer->fd = fds[0];
        if (r >= 0)
                r = watch_signer(signer, pid);
        if (r < 0)
                disconnect_signer(signer);
        return r;
}

static int send_material(ApiSigner *signer) {
        size_t length = strlen(strna(signer->material)), size = 1 + TICKET_KEY_SIZE + length;
        char *packet;
        int r;

        if (signer->has_sent_material || length == 0)
                return 0;
        packet = malloc(size + 1);
        if (!packet)
                return -ENOMEM;
        packet[0] = SIGNER_MATERIAL;
        memcpy(packet + 1, signer->ticket_key, TICKET_KEY_SIZE);
        memcpy(packet + 1 + TICKET_KEY_SIZE, signer->material, length + 1);
        r = size > SIGNER_PACKET_MAX ? -EMSGSIZE : packet_send(signer->fd, packet, size, -EBADF);
        explicit_bzero(packet, size);
        free(packet);
        signer->has_sent_material = r >= 0;
        return r;
}

int api_signer_set_material(ApiSigner *signer, char *json_consume) {
        bool is_same = streq_ptr(signer->material, json_consume);
        int r;

        secret_free(signer->material);
        signer->material = json_consume;
        signer->has_sent_material &= is_same;
        r = signer->fd >= 0 ? send_material(signer) : 0;
        if (r < 0)
                disconnect_signer(signer); /* the next one gets the material */
        return r == -EMSGSIZE ? r : 0;
}

int api_signer_connect(ApiSigner *signer) {
        cleanup_close int theirs = -EBADF;
        int fds[2], r = start_signer(signer);

        if (r >= 0)
                r = send_material(signer);
        if (r < 0)
                return r;
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) < 0)
                return -errno;
        theirs = fds[1];
        r = packet_send(signer->fd, (const char[]){ SIGNER_CLIENT }, 1, theirs);
        if (r >= 0)
                return fds[0];
        close_fd(fds[0]);
        disconnect_signer(signer);
        return r;
}
