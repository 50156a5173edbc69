/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces systemd and logind on a machine that shuts down. As a program: one socket that is
 * both PID 1's and the system bus; it starts shims. A letter on its standard input is an event: 'p'
 * a shutdown is being prepared, 'c' it was cancelled, 's' systemd stops all units, 'b' the machine
 * has booted again. As a library that is preloaded into the agent: the machine has systemd, at that
 * socket. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

/* ---- preloaded ---- */

int sd_booted(void) {
        return 1;
}

int sd_bus_set_address(sd_bus *bus, const char *address) {
        int (*set_address)(sd_bus * bus, const char *address) =
                (int (*)(sd_bus *, const char *)) dlsym(RTLD_NEXT, "sd_bus_set_address");
        const char *own = getenv("DBUS_SYSTEM_BUS_ADDRESS");

        return set_address(bus,
                           strcmp(address, "unix:path=/run/systemd/private") == 0 ? own : address);
}

/* ---- the program ---- */

enum {
        PEERS_MAX = 64,
        WORDS_MAX = 64
};

static sd_bus *peers[PEERS_MAX];
static bool is_on_bus[PEERS_MAX]; /* has sent Hello; the others are clients of PID 1 */
static bool is_preparing, is_stopping;

static void check(int r) {
        if (r < 0)
                abort();
}

static void run_shim(char *const *argv, int input_fd) {
        if (fork() != 0)
                return;
        (void) signal(SIGCHLD, SIG_DFL);
        (void) setsid();
        (void) dup2(input_fd, STDIN_FILENO);
        (void) close_range(3, ~0U, 0);
        (void) execv(argv[0], argv);
        _exit(127);
}

/* "a(sasb)" of one command. */
static void read_command(sd_bus_message *message, char **argv) {
        const char *word;
        size_t n = 0;

        check(sd_bus_message_enter_container(message, 'v', "a(sasb)"));
        check(sd_bus_message_enter_container(message, 'a', "(sasb)"));
        check(sd_bus_message_enter_container(message, 'r', "sasb"));
        check(sd_bus_message_skip(message, "s"));
        check(sd_bus_message_enter_container(message, 'a', "s"));
        while (n + 1 < WORDS_MAX && sd_bus_message_read(message, "s", &word) > 0)
                argv[n++] = strdup(word);
        check(sd_bus_message_exit_container(message));
        check(sd_bus_message_skip(message, "b"));
        for (unsigned i = 0; i < 3; i++)
                check(sd_bus_message_exit_container(message));
}

static int start_unit(sd_bus_message *message) {
        char *argv[WORDS_MAX] = { 0 };
        int input_fd = -1;

        check(sd_bus_message_skip(message, "ss"));
        check(sd_bus_message_enter_container(message, 'a', "(sv)"));
        while (sd_bus_message_enter_container(message, 'r', "sv") > 0) {
                const char *name;

                check(sd_bus_message_read(message, "s", &name));
                if (strcmp(name, "ExecStart") == 0)
                        read_command(message, argv);
                else if (strcmp(name, "StandardInputFileDescriptor") == 0)
                        check(sd_bus_message_read(message, "v", "h", &input_fd));
                else
                        check(sd_bus_message_skip(message, "v"));
                check(sd_bus_message_exit_container(message));
        }
        run_shim(argv, input_fd);
        for (size_t i = 0; argv[i]; i++)
                free(argv[i]);
        return sd_bus_reply_method_return(message, "o", "/org/freedesktop/systemd1/job/1");
}

static int give_property(sd_bus_message *message) {
        const char *interface, *property;

        check(sd_bus_message_read(message, "ss", &interface, &property));
        if (strcmp(property, "PreparingForShutdown") == 0)
                return sd_bus_reply_method_return(message, "v", "b", is_preparing);
        if (strcmp(property, "SystemState") == 0)
                return sd_bus_reply_method_return(message, "v", "s",
                                                  is_stopping ? "stopping" : "running");
        return sd_bus_reply_method_return(message, "v", "t", UINT64_MAX); /* InhibitDelayMaxUSec */
}

static int give_lock(sd_bus_message *message) {
        int pipes[2], r;

        check(pipe2(pipes, O_CLOEXEC));
        r = sd_bus_reply_method_return(message, "h", pipes[1]);
        (void) close(pipes[1]);
        return r; /* the other end stays open: it does not matter when the lock is released */
}

static int on_message(sd_bus_message *message, void *userdata, sd_bus_error *ret_error) {
        const char *member = sd_bus_message_get_member(message);
        bool *is_bus = userdata;
        int r;

        if (sd_bus_message_is_method_call(message, NULL, NULL) <= 0)
                return 0;
        if (strcmp(member, "Hello") == 0) {
                *is_bus = true;
                r = sd_bus_reply_method_return(message, "s", ":1.1");
        } else if (strcmp(member, "Inhibit") == 0)
                r = give_lock(message);
        else if (strcmp(member, "Get") == 0)
                r = give_property(message);
        else if (strcmp(member, "StartTransientUnit") == 0)
                r = start_unit(message);
        else
                r = sd_bus_reply_method_return(message, NULL);
        return r < 0 ? r : 1;
}

static void prepare_shutdown(bool begins) {
        is_preparing = begins;
        for (size_t i = 0; i < PEERS_MAX; i++) {
                sd_bus_message *signal = NULL;

                if (!peers[i] || !is_on_bus[i])
                        continue;
                check(sd_bus_message_new_signal(peers[i], &signal, "/org/freedesktop/login1",
                                                "org.freedesktop.login1.Manager",
                                                "PrepareForShutdown"));
                check(sd_bus_message_set_sender(signal, ":1.0"));
                check(sd_bus_message_append(signal, "b", begins));
                (void) sd_bus_send(peers[i], signal, NULL);
                sd_bus_message_unref(signal);
        }
}

static int on_event(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        char letter;

        if (read(fd, &letter, 1) <= 0)
                return sd_event_exit(sd_event_source_get_event(source), 0);
        if (letter == 's')
                is_stopping = true;
        else if (letter == 'b')
                is_preparing = is_stopping = false;
        else
                prepare_shutdown(letter == 'p');
        return write(STDOUT_FILENO, &letter, 1) == 1 ? 0 : -1;
}

static int on_connection(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        int peer = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        size_t i = 0;

        while (i < PEERS_MAX && peers[i])
                i++;
        if (peer < 0 || i == PEERS_MAX)
                abort();
        check(sd_bus_new(&peers[i]));
        check(sd_bus_set_fd(peers[i], peer, peer));
        check(sd_bus_set_server(peers[i], true, (sd_id128_t){ .bytes = { 1 } }));
        check(sd_bus_negotiate_fds(peers[i], true));
        check(sd_bus_add_filter(peers[i], NULL, on_message, &is_on_bus[i]));
        check(sd_bus_start(peers[i]));
        check(sd_bus_attach_event(peers[i], sd_event_source_get_event(source),
                                  SD_EVENT_PRIORITY_NORMAL));
        return 0;
}

int main(int argc, char **argv) {
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        sd_event *event = NULL;

        if (argc != 2 || strlen(argv[1]) >= sizeof(address.sun_path))
                return 2;
        memcpy(address.sun_path, argv[1], strlen(argv[1]));
        (void) signal(SIGCHLD, SIG_IGN);
        (void) signal(SIGPIPE, SIG_IGN);
        check(bind(fd, (struct sockaddr *) &address, sizeof(address)));
        check(listen(fd, PEERS_MAX));
        check(sd_event_new(&event));
        check(sd_event_add_io(event, NULL, fd, EPOLLIN, on_connection, NULL));
        check(sd_event_add_io(event, NULL, STDIN_FILENO, EPOLLIN, on_event, NULL));
        return sd_event_loop(event) < 0;
}
