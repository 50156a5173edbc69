/* SPDX-License-Identifier: Apache-2.0 */
/* mainstay-api: command line, the listening socket, the loop. */

#include "agent/node-api/process/api-confine.h"
#include "agent/node-api/process/node-api.h"
#include "agent/node-api/tls/signer-process.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/pipe.h"

#include <getopt.h>
#include <netdb.h>
#include <signal.h>
#include <sys/socket.h>
#include <systemd/sd-daemon.h>

enum {
        EXIT_USAGE = 2,
        IDLE_SEC_DEFAULT = 300,
        IDLE_SEC_MAX = 24 * 3600,
        BACKLOG = 128,
};

enum {
        OPTION_SOCKET = 256,
        OPTION_LISTEN,
        OPTION_ACTIVATED,
        OPTION_IDLE,
        OPTION_USER,
        OPTION_SIGNER,
        OPTION_VERSION,
        OPTION_HELP,
};

static const char api_help[] =
        "Usage: mainstay-api [OPTION…]\n"
        "Serves the kubelet's API of this node over TLS, on behalf of the local mainstayd.\n"
        "\n"
        "  --socket PATH      the agent's socket (/run/mainstay/mainstay.sock)\n"
        "  --listen ADDRESS   \"HOST:PORT\", where systemd passes no socket\n"
        "  --activated        standard input is the listening socket (set by mainstayd)\n"
        "  --idle SECONDS     exit after this many seconds without a connection (300; 0: never)\n"
        "  --user NAME        become this user if started as root\n"
        "                     (mainstay-api; mainstay-signer with --signer)\n"
        "  --signer           hold the key of the certificate (set by mainstayd)\n"
        "  --version          print the version\n"
        "  --help             print this\n"
        "\n"
        "See mainstay-api(8).\n";

static const struct option api_long_options[] = {
        { "socket", required_argument, NULL, OPTION_SOCKET },
        { "listen", required_argument, NULL, OPTION_LISTEN },
        { "activated", no_argument, NULL, OPTION_ACTIVATED },
        { "idle", required_argument, NULL, OPTION_IDLE },
        { "user", required_argument, NULL, OPTION_USER },
        { "signer", no_argument, NULL, OPTION_SIGNER },
        { "version", no_argument, NULL, OPTION_VERSION },
        { "help", no_argument, NULL, OPTION_HELP },
        { 0 },
};

static const char *arg_socket = "/run/mainstay/mainstay.sock";
static const char *arg_listen;
static bool arg_activated;
static bool arg_signer;
static const char *arg_user;
static uint64_t arg_idle_sec = IDLE_SEC_DEFAULT;

static int fail_api_usage(void) {
        (void) fprintf(stderr, "Try 'mainstay-api --help'.\n");
        return EXIT_USAGE;
}

static int parse_idle_seconds(const char *text) {
        char *end;
        unsigned long seconds = strtoul(text, &end, 10);

        if (end == text || *end != '\0' || text[0] == '-' || seconds > IDLE_SEC_MAX)
                return -EINVAL;
        arg_idle_sec = seconds;
        return 0;
}

/* < 0: continue; else the exit status. */
static int parse_api_arguments(int argc, char **argv) {
        int option;

        while ((option = getopt_long(argc, argv, "", api_long_options, NULL)) >= 0)
                switch (option) {
                case OPTION_SOCKET:
                        arg_socket = optarg;
                        break;
                case OPTION_LISTEN:
                        arg_listen = optarg;
                        break;
                case OPTION_ACTIVATED:
                        arg_activated = true;
                        break;
                case OPTION_IDLE:
                        if (parse_idle_seconds(optarg) < 0)
                                return fail_api_usage();
                        break;
                case OPTION_USER:
                        arg_user = optarg;
                        break;
                case OPTION_SIGNER:
                        arg_signer = true;
                        break;
                case OPTION_VERSION:
                        puts("mainstay-api " MAINSTAY_VERSION);
                        return EXIT_SUCCESS;
                case OPTION_HELP:
                        fputs(api_help, stdout);
                        return EXIT_SUCCESS;
                default:
                        return fail_api_usage();
                }
        return optind < argc ? fail_api_usage() : -1;
}

static int bind_api_socket(const struct addrinfo *address) {
        static const int on = 1;
        cleanup_close int fd =
                socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
            bind(fd, address->ai_addr, address->ai_addrlen) < 0 || listen(fd, BACKLOG) < 0)
                return -errno;
        return TAKE_FD(fd);
}

/* "HOST:PORT"; an IPv6 address in brackets. */
static int listen_on(const char *text, Error *reterr) {
        static const struct addrinfo hints = { .ai_flags =
                                                       AI_PASSIVE | AI_NUMERICHOST | AI_NUMERICSERV,
                                               .ai_socktype = SOCK_STREAM };
        cleanup_free char *host = strdup(text);
        char *port = host ? strrchr(host, ':') : NULL, *name = host;
        struct addrinfo *address;
        int r;

        if (!port)
                return error_setf(reterr, EINVAL, "--listen must be HOST:PORT, not '%s'", text);
        *port++ = '\0';
        if (name[0] == '[' && name[strlen(name) - 1] == ']') {
                name[strlen(name) - 1] = '\0';
                name++;
        }
        if (getaddrinfo(name[0] ? name : NULL, port, &hints, &address) != 0)
                return error_setf(reterr, EINVAL, "'%s' is not a numeric address and port", text);
        r = bind_api_socket(address);
        freeaddrinfo(address);
        return r < 0 ? error_prefixf(reterr, r, "cannot listen at %s", text) : r;
}

static int take_activated_listener(Error *reterr) {
        return sd_is_socket(STDIN_FILENO, AF_UNSPEC, SOCK_STREAM, /* listening= */ 1) > 0
                       ? STDIN_FILENO
                       : error_setf(reterr, EINVAL,
                                    "with --activated standard input must be a listening socket");
}

/* Makes the socket from systemd non-blocking, because clients are accepted until the queue is
 * empty. */
static int take_unit_listener(void) {
        int r = fd_set_nonblocking(SD_LISTEN_FDS_START);

        return r < 0 ? r : SD_LISTEN_FDS_START;
}

/* The socket that systemd or mainstayd has passed, or a newly created one. */
static int open_api_listener(bool *ret_by_systemd, Error *reterr) {
        int n = sd_listen_fds(/* unset_environment= */ true);

        *ret_by_systemd = n == 1;
        if (n == 1)
                return take_unit_listener();
        if (arg_activated)
                return take_activated_listener(reterr);
        if (n > 1)
                return error_setf(reterr, EINVAL, "systemd passed %d sockets, not one", n);
        if (n < 0 || !arg_listen)
                return error_setf(reterr, EINVAL,
                                  "systemd passed no socket, and --listen is not given");
        return listen_on(arg_listen, reterr);
}

static int watch_api_signals(sd_event *event) {
        sigset_t signals;
        int r;

        (void) sigemptyset(&signals);
        (void) sigaddset(&signals, SIGTERM);
        (void) sigaddset(&signals, SIGINT);
        if (sigprocmask(SIG_BLOCK, &signals, NULL) < 0)
                return -errno;
        r = sd_event_add_signal(event, NULL, SIGTERM, NULL, NULL);
        return r < 0 ? r : sd_event_add_signal(event, NULL, SIGINT, NULL, NULL);
}

/* The pipe has no reader, so mainstayd has ended, and its successor must be able to listen. */
static int on_launcher_gone(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        (void) sd_event_source_set_enabled(source, SD_EVENT_OFF);
        node_api_stop_accepting(userdata);
        return 0;
}

static int watch_launcher(sd_event *event, NodeApi *server) {
        return arg_activated
                       ? sd_event_add_io(event, NULL, STDOUT_FILENO, 0, on_launcher_gone, server)
                       : 0;
}

static int run_api(sd_event *event, int listen_fd_consume, bool by_systemd, Error *reterr) {
        cleanup_with(node_api_freep) NodeApi *server = NULL;
        NodeApiConfig config = { .event = event,
                                 .listen_fd_consume = listen_fd_consume,
                                 .is_by_systemd = by_systemd,
                                 .agent_socket = arg_socket,
                                 .idle_usec = arg_idle_sec * USEC_PER_SEC };
        int r = confine_api_process(arg_user ? arg_user : "mainstay-api", reterr);

        if (r < 0)
                return r;
        r = watch_api_signals(event);
        if (r < 0)
                return r;
        r = node_api_new(&config, &server, reterr);
        if (r < 0)
                return r;
        r = watch_launcher(event, server);
        if (r < 0)
                return r;
        if (!arg_activated)
                (void) sd_notify(0, "READY=1"); /* needs a socket, which is forbidden later */
        r = confine_api_system_calls(reterr);
        return r < 0 ? r : sd_event_loop(event);
}

static int serve_api(Error *reterr) {
        cleanup_with(sd_event_unrefp) sd_event *event = NULL;
        bool by_systemd;
        int listen_fd = open_api_listener(&by_systemd, reterr);
        int r = listen_fd < 0 ? listen_fd : sd_event_new(&event);

        return r < 0 ? r : run_api(event, listen_fd, by_systemd, reterr);
}

int main(int argc, char **argv) {
        cleanup_error Error error = ERROR_NULL;
        int r = parse_api_arguments(argc, argv);

        if (r >= 0)
                return r;
        log_read_environment();
        (void) signal(SIGPIPE, SIG_IGN);
        r = arg_signer ? run_signer_process(arg_user ? arg_user : "mainstay-signer", &error)
                       : serve_api(&error);
        if (r >= 0 && arg_signer)
                _exit(EXIT_SUCCESS); /* the filter permits none of the system calls that exit(3)
                                      * makes */
        if (r >= 0)
                return EXIT_SUCCESS;
        log_error_message(&error, r);
        return EXIT_FAILURE;
}
