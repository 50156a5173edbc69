/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shim/terminal.h"

#include "common/cleanup.h"
#include "common/log.h"
#include "common/packet.h"
#include "common/pipe.h"

#include <sys/socket.h>
#include <sys/un.h>

struct Terminal {
        int epoll_fd;
        char *path;
        bool is_listening; /* otherwise the runtime has connected but has not sent the terminal */
        EpollSource source;
        terminal_master_t on_master;
        void *userdata;
};

static int listen_for_terminal(const char *path, Error *reterr) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        cleanup_close int fd = -EBADF;

        if (strlen(path) >= sizeof(address.sun_path))
                return error_setf(reterr, ENAMETOOLONG, "the path of the socket '%s' is too long",
                                  path);
        memcpy(address.sun_path, path, strlen(path));
        (void) unlink(path);
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0 || bind(fd, (const struct sockaddr *) &address, sizeof(address)) < 0 ||
            listen(fd, 1) < 0)
                return error_setf(reterr, errno, "cannot listen at '%s': %s", path,
                                  strerror(errno));
        return TAKE_FD(fd);
}

/* The name of the terminal is sent as well, but is not needed. -EAGAIN: the terminal has not been
 * sent yet. */
static int receive_master(int peer_fd) {
        union {
                struct cmsghdr header;
                char space[CMSG_SPACE(sizeof(int))];
        } control = { 0 };
        char name[256];
        struct iovec bytes = { name, sizeof(name) };
        struct msghdr message = {
                .msg_iov = &bytes,
                .msg_iovlen = 1,
                .msg_control = &control,
                .msg_controllen = sizeof(control),
        };
        int fd, r;

        if (recvmsg(peer_fd, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT) < 0)
                return -errno;
        fd = message_take_fd(&message);
        if (fd < 0)
                return -EBADMSG;
        r = fd_set_nonblocking(fd);
        if (r < 0) {
                close_fd(fd);
                return r;
        }
        return fd;
}

static void close_terminal_listener(Terminal *terminal) {
        epoll_source_remove(terminal->epoll_fd, &terminal->source);
        terminal->source.fd = close_fd(terminal->source.fd);
}

static void accept_runtime(Terminal *terminal) {
        int fd = accept4(terminal->source.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (fd < 0)
                return;
        close_terminal_listener(terminal);
        terminal->is_listening = false;
        terminal->source.fd = fd;
        (void) epoll_source_add(terminal->epoll_fd, &terminal->source, EPOLLIN);
}

void terminal_receive_master(Terminal *terminal) {
        int fd;

        if (terminal->is_listening)
                accept_runtime(terminal);
        if (terminal->is_listening || terminal->source.fd < 0)
                return;
        fd = receive_master(terminal->source.fd);
        if (fd == -EAGAIN)
                return;
        close_terminal_listener(terminal);
        if (fd < 0)
                (void) log_warning_errno(fd, "Cannot receive a terminal from the runtime");
        else
                terminal->on_master(fd, terminal->userdata);
}

static void on_terminal_socket_ready(EpollSource *source, uint32_t events) {
        terminal_receive_master(container_of(source, Terminal, source));
}

int terminal_new(int epoll_fd, const char *path, terminal_master_t on_master, void *userdata,
                 Terminal **ret, Error *reterr) {
        Terminal *terminal = calloc(1, sizeof(*terminal));
        int r;

        if (!terminal)
                return -ENOMEM;
        *terminal = (Terminal){
                .epoll_fd = epoll_fd,
                .path = strdup(path),
                .is_listening = true,
                .source = { .fd = -EBADF, .on_ready = on_terminal_socket_ready },
                .on_master = on_master,
                .userdata = userdata,
        };
        r = terminal->path ? listen_for_terminal(path, reterr) : -ENOMEM;
        if (r >= 0) {
                terminal->source.fd = r;
                r = epoll_source_add(epoll_fd, &terminal->source, EPOLLIN);
        }
        if (r < 0) {
                terminal_free(terminal);
                return r;
        }
        *ret = terminal;
        return 0;
}

Terminal *terminal_free(Terminal *terminal) {
        if (!terminal)
                return NULL;
        close_terminal_listener(terminal);
        if (terminal->path)
                (void) unlink(terminal->path);
        free(terminal->path);
        free(terminal);
        return NULL;
}
