/* SPDX-License-Identifier: Apache-2.0 */
#include "common/relay.h"

#include "common/cleanup.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/un.h>
#include <unistd.h>

/* "near" is whoever asks, "far" is the server. What goes there is kept until it is taken, and no
 * more is read meanwhile. What comes from there has room on the way, because it is limited. */

enum {
        CHUNK = 16 * 1024,
};

struct Relay {
        sd_event *event; /* the loop's */
        int near_fd;     /* listens, until somebody is there */
        int far_fd;
        sd_event_source *near;
        sd_event_source *far;
        bool is_accepted;
        bool is_connected;
        int error;
        size_t room; /* for what the server may still say */
        char pending[4096];
        size_t n_pending, n_taken;
};

static void stop(Relay *relay) {
        relay->near = sd_event_source_disable_unref(relay->near);
        relay->far = sd_event_source_disable_unref(relay->far);
        relay->near_fd = close_fd(relay->near_fd);
        relay->far_fd = close_fd(relay->far_fd);
}

static void push(Relay *relay) {
        size_t left = relay->n_pending - relay->n_taken;
        ssize_t n = send(relay->far_fd, relay->pending + relay->n_taken, left,
                         MSG_DONTWAIT | MSG_NOSIGNAL);

        if (n < 0 && errno != EAGAIN && errno != EINTR) {
                stop(relay);
                return;
        }
        relay->n_taken += n > 0 ? (size_t) n : 0;
        if (relay->n_taken == relay->n_pending)
                relay->n_taken = relay->n_pending = 0;
        (void) sd_event_source_set_enabled(relay->near,
                                           relay->n_pending > 0 ? SD_EVENT_OFF : SD_EVENT_ON);
        (void) sd_event_source_set_io_events(relay->far,
                                             relay->n_pending > 0 ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

static void pull(Relay *relay) {
        char chunk[CHUNK];
        ssize_t n = recv(relay->far_fd, chunk, MIN(sizeof(chunk), relay->room), MSG_DONTWAIT);

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return;
        if (n <= 0 || send(relay->near_fd, chunk, (size_t) n, MSG_DONTWAIT | MSG_NOSIGNAL) != n)
                stop(relay);
        else
                relay->room -= (size_t) n;
}

/* Neither is heard before both are there. */
static void begin(Relay *relay) {
        int is_on = relay->is_connected && relay->is_accepted ? SD_EVENT_ON : SD_EVENT_OFF;

        if (relay->is_accepted)
                (void) sd_event_source_set_enabled(relay->near, is_on);
        if (relay->is_connected)
                (void) sd_event_source_set_enabled(relay->far, is_on);
}

static int on_near(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        Relay *relay = userdata;
        ssize_t n = recv(fd, relay->pending, sizeof(relay->pending), MSG_DONTWAIT);

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return 0;
        relay->n_pending = n > 0 ? (size_t) n : 0;
        if (n > 0)
                push(relay);
        else
                stop(relay);
        return 0;
}

static bool is_ourselves(int fd) {
        struct ucred peer;
        socklen_t size = sizeof(peer);

        return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) >= 0 && peer.pid == getpid();
}

/* Everybody in our network namespace can knock. */
static int on_knock(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        Relay *relay = userdata;
        cleanup_close int accepted = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (accepted < 0 || !is_ourselves(accepted))
                return 0;
        relay->near = sd_event_source_disable_unref(relay->near);
        close_fd(relay->near_fd);
        relay->near_fd = TAKE_FD(accepted);
        relay->is_accepted = true;
        if (sd_event_add_io(relay->event, &relay->near, relay->near_fd, EPOLLIN, on_near, relay) <
            0)
                stop(relay);
        else
                begin(relay);
        return 0;
}

static void look_at_connection(Relay *relay) {
        int code = 0;
        socklen_t length = sizeof(code);

        if (getsockopt(relay->far_fd, SOL_SOCKET, SO_ERROR, &code, &length) < 0)
                code = errno;
        if (code != 0) {
                relay->error = -code;
                stop(relay);
                return;
        }
        relay->is_connected = true;
        (void) sd_event_source_set_io_events(relay->far, EPOLLIN);
        begin(relay);
}

static int on_far(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        Relay *relay = userdata;

        if (!relay->is_connected)
                look_at_connection(relay);
        else if (events & EPOLLOUT)
                push(relay);
        else
                pull(relay);
        return 0;
}

static int connect_far(Relay *relay, const struct sockaddr *address, socklen_t length) {
        relay->far_fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (relay->far_fd < 0)
                return -errno;
        return connect(relay->far_fd, address, length) < 0 && errno != EINPROGRESS ? -errno : 0;
}

static int listen_near(Relay *relay) {
        const struct sockaddr_un nameless = { .sun_family = AF_UNIX };

        relay->near_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        /* The kernel finds a name for who has none. */
        if (relay->near_fd < 0 ||
            bind(relay->near_fd, (const struct sockaddr *) &nameless,
                 offsetof(struct sockaddr_un, sun_path)) < 0 ||
            listen(relay->near_fd, 4) < 0)
                return -errno;
        return sd_event_add_io(relay->event, &relay->near, relay->near_fd, EPOLLIN, on_knock,
                               relay);
}

int relay_new(sd_event *event, const struct sockaddr *address, socklen_t length, size_t max_bytes,
              Relay **ret) {
        cleanup_with(relay_freep) Relay *relay = calloc(1, sizeof(*relay));
        int r;

        if (!relay)
                return -ENOMEM;
        *relay = (Relay){ .event = event, .near_fd = -EBADF, .far_fd = -EBADF, .room = max_bytes };
        r = listen_near(relay);
        if (r >= 0)
                r = relay->error = connect_far(relay, address, length);
        if (r >= 0)
                r = sd_event_add_io(event, &relay->far, relay->far_fd, EPOLLOUT, on_far, relay);
        if (r < 0 && relay->error == 0)
                return r;
        if (r < 0) /* told when it is asked for, as what comes later is */
                stop(relay);
        *ret = TAKE_PTR(relay);
        return 0;
}

int relay_address(const Relay *relay, struct sockaddr *ret, socklen_t *ret_length) {
        struct sockaddr_un address;
        socklen_t length = sizeof(address);

        if (getsockname(relay->near_fd, (struct sockaddr *) &address, &length) < 0)
                return -errno;
        if (length > sizeof(*ret))
                return -ENAMETOOLONG;
        memcpy(ret, &address, length);
        *ret_length = length;
        return 0;
}

Relay *relay_free(Relay *relay) {
        if (relay)
                stop(relay);
        free(relay);
        return NULL;
}

int relay_error(const Relay *relay) {
        return relay->error;
}
