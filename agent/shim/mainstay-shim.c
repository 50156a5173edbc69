/* SPDX-License-Identifier: Apache-2.0 */
/* The program mainstay-shim: the sandbox of a pod, or one of its commands (prepare, cleanup). */

#include "agent/shim/disk-usage.h"
#include "agent/shim/maintenance.h"
#include "agent/shim/net-devices.h"
#include "agent/shim/port-connector.h"
#include "agent/shim/root-guard.h"
#include "agent/shim/shim.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/error.h"
#include "common/log.h"
#include "common/macros.h"
#include "common/privileges.h"
#include "common/strv.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The system calls that the kernel must support. */

/* The system calls that the agent, the shim and mainstay-image require. mount_setattr is the
 * latest, from Linux 5.12. Without statx, landlock_create_ruleset and the libraries' optional calls
 * they work with reduced functionality. */
static const struct {
        const char *name;
        long number;
} needed_calls[] = {
        { "close_range", SYS_close_range },   { "getrandom", SYS_getrandom },
        { "memfd_create", SYS_memfd_create }, { "mount_setattr", SYS_mount_setattr },
        { "move_mount", SYS_move_mount },     { "open_tree", SYS_open_tree },
        { "openat2", SYS_openat2 },           { "pidfd_open", SYS_pidfd_open },
        { "renameat2", SYS_renameat2 },
};

/* 0; or -ENOSYS with a message that names the call that the kernel does not support, or that a
 * filter blocks for this process and the programs that it starts. */
static int kernel_check_calls(Error *reterr) {
        for (size_t i = 0; i < N_ELEMENTS(needed_calls); i++)
                /* These arguments are invalid for every call, so no call has an effect. */
                if (syscall(needed_calls[i].number, -1L, -1L, -1L, -1L, -1L) < 0 && errno == ENOSYS)
                        return error_setf(reterr, ENOSYS,
                                          "this kernel has no system call '%s'; Mainstay needs "
                                          "Linux 5.12 or later",
                                          needed_calls[i].name);
        return 0;
}

enum {
        EXIT_USAGE = 2,
        RUNTIME_TIMEOUT_SEC = 120,
        TIMEOUT_SEC_MAX = 24 * 3600,
};

enum {
        OPTION_POD = 256,
        OPTION_RUN_DIR,
        OPTION_RUNTIME,
        OPTION_CGROUP,
        OPTION_SHIM_CGROUP,
        OPTION_EMPTY,
        OPTION_SYNCED,
        OPTION_AGENT,
        OPTION_HOST_NETWORK,
        OPTION_HOST_IPC,
        OPTION_RUNTIME_TIMEOUT,
        OPTION_SYSTEMD_CGROUP,
        OPTION_INODES,
        OPTION_BYTES_AND_INODES,
        OPTION_SECONDS,
};

static const char help[] =
        "Usage: mainstay-shim sandbox --pod UID --run-dir DIR [OPTION]... <LISTENING-SOCKET\n"
        "       mainstay-shim prepare DIR [KUBELET_DIR]\n"
        "       mainstay-shim cleanup [--agent PID] [--shim-cgroup PATH]... [--cgroup PATH]...\n"
        "                             [--empty DIR] [DIR]...\n"
        "       mainstay-shim usage [--inodes|--bytes-and-inodes] [--seconds N] [DIR]...\n"
        "       mainstay-shim guard <STATE\n"
        "       mainstay-shim net-devices <STATE\n"
        "       mainstay-shim connect PORT [--ipv6] <SOCKET\n"
        "\n"
        "Runs the sandbox of one pod: holds its namespaces and mounts, runs its containers,\n"
        "writes their logs. The agent starts it; it outlives the agent.\n"
        "\n"
        "  sandbox   serve the pod on the socket that is the standard input\n"
        "  prepare   check the kernel, make DIR a private mount, below which sandboxes mount\n"
        "            volumes, and KUBELET_DIR a shared one, below which CSI drivers do\n"
        "  cleanup   kill all processes in the cgroups, then remove the cgroups, the contents of\n"
        "            the --empty directory, and each DIR; ends with the --agent, its parent; a\n"
        "            network plugin that a dead shim left in its cgroup has two seconds to end\n"
        "  usage     print how many bytes, or inodes, each directory takes on disk; for one that\n"
        "            takes longer than its share of N seconds, the amount so far or, with both,\n"
        "            18446744073709551615\n"
        "  guard     a hook of the OCI runtime: mask paths of the kernel in a container, and make\n"
        "            its working directory, before the runtime does\n"
        "  net-devices  a hook of the OCI runtime: move network devices of the node into the\n"
        "            network namespace of a container\n"
        "  connect   connect to a port of the loopback address of the network namespace that the\n"
        "            socket receives, and send the connection back\n"
        "\n"
        "Options of sandbox:\n"
        "  --pod UID                  the pod; its directory is DIR/pods/UID\n"
        "  --run-dir DIR              the agent's directory of run-time files\n"
        "  --runtime PROGRAM          the OCI runtime (runc)\n"
        "  --runtime-timeout SECONDS  time limit of one call of the runtime (120)\n"
        "  --cgroup PATH              the cgroup to run in\n"
        "  --host-network             stay in the host's network and UTS namespaces\n"
        "  --host-ipc                 stay in the host's IPC namespace\n"
        "  --systemd-cgroup           the runtime creates cgroups through systemd\n"
        "\n"
        "  --help, --version\n";

static int fail_shim_usage(const char *problem) {
        log_error("%s; see mainstay-shim --help", problem);
        return EXIT_USAGE;
}

static int report_shim_error(int r, Error *error) {
        if (r < 0)
                log_error("%s", error_message(error, r));
        error_done(error);
        return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* This is the first program that the agent, which may be confined, starts directly or through
 * systemd. */
static int run_prepare_verb(int argc, char **argv) {
        Error error = ERROR_NULL;
        int r;

        if ((argc != 2 && argc != 3) || argv[1][0] != '/' || (argc == 3 && argv[2][0] != '/'))
                return fail_shim_usage("Expected one or two absolute paths");
        r = kernel_check_calls(&error);
        if (r >= 0)
                r = prepare_run_directory(argv[1], &error);
        if (r >= 0 && argc == 3)
                prepare_kubelet_directory(argv[2]);
        return report_shim_error(r, &error);
}

/* Exits when the agent exits: the next agent cleans up itself and then starts the pod again, while
 * this process must no longer work in the same cgroups. 0, or the exit status. */
static int die_with_agent(const char *pid) {
        char own[16];

        if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0) {
                (void) log_error_errno(-errno, "Cannot die with the agent");
                return EXIT_FAILURE;
        }
        (void) snprintf(own, sizeof(own), "%d", (int) getppid());
        if (streq(own, pid))
                return 0;
        log_error("The agent that requested the cleanup has exited; the next one cleans up");
        return EXIT_FAILURE;
}

static int set_cleanup_path(int option, const char *path, PodRemains *remains) {
        char ***cgroups = option == OPTION_SHIM_CGROUP ? &remains->shim_cgroups : &remains->cgroups;

        if (path[0] != '/' || path[1] == '\0')
                return fail_shim_usage("Expected absolute paths other than the root");
        if (option == OPTION_EMPTY)
                remains->emptied = path;
        else if (option == OPTION_SYNCED)
                remains->synced = path;
        else if (strv_append(cgroups, path) < 0)
                return EXIT_FAILURE;
        return 0;
}

/* 0, or the exit status if the command line is invalid. */
static int parse_cleanup_options(int argc, char **argv, PodRemains *remains) {
        static const struct option options[] = {
                { "agent", required_argument, NULL, OPTION_AGENT },
                { "cgroup", required_argument, NULL, OPTION_CGROUP },
                { "shim-cgroup", required_argument, NULL, OPTION_SHIM_CGROUP },
                { "empty", required_argument, NULL, OPTION_EMPTY },
                { "synced", required_argument, NULL, OPTION_SYNCED },
                { 0 },
        };
        int option, r = 0;

        while (r == 0 && (option = getopt_long(argc, argv, "+", options, NULL)) >= 0) {
                if (option == OPTION_AGENT)
                        r = die_with_agent(optarg);
                else if (option != '?')
                        r = set_cleanup_path(option, optarg, remains);
                else
                        return EXIT_USAGE;
        }
        if (r != 0)
                return r;
        remains->directories = argv + optind;
        for (char *const *directory = remains->directories; *directory; directory++)
                if ((*directory)[0] != '/')
                        return fail_shim_usage("Expected absolute paths");
        return 0;
}

static int run_cleanup_verb(int argc, char **argv) {
        PodRemains remains = { 0 };
        Error error = ERROR_NULL;
        int r = parse_cleanup_options(argc, argv, &remains);

        if (r == 0)
                r = report_shim_error(remove_pod_remains(&remains, &error), &error);
        strv_free(remains.shim_cgroups);
        strv_free(remains.cgroups);
        return r;
}

static int parse_seconds(const char *text, uint64_t *ret_usec) {
        char *end;
        unsigned long seconds;

        errno = 0;
        seconds = strtoul(text, &end, 10);
        if (errno != 0 || end == text || *end || seconds == 0 || seconds > TIMEOUT_SEC_MAX)
                return -EINVAL;
        *ret_usec = seconds * USEC_PER_SEC;
        return 0;
}

/* 'what' is the option that selects the output; 0: bytes. */
static void print_usage_line(int what, const StorageTaken *taken) {
        if (what == OPTION_BYTES_AND_INODES)
                (void) printf("%" PRIu64 " %" PRIu64 "\n",
                              taken->is_cut ? UINT64_MAX : taken->bytes, taken->inodes);
        else
                (void) printf("%" PRIu64 "\n",
                              what == OPTION_INODES ? taken->inodes : taken->bytes);
}

static int run_usage_verb(int argc, char **argv) {
        static const struct option options[] = {
                { "inodes", no_argument, NULL, OPTION_INODES },
                { "bytes-and-inodes", no_argument, NULL, OPTION_BYTES_AND_INODES },
                { "seconds", required_argument, NULL, OPTION_SECONDS },
                { 0 },
        };
        uint64_t usec = TIMEOUT_SEC_MAX * USEC_PER_SEC, end;
        int option, what = 0;

        while ((option = getopt_long(argc, argv, "+", options, NULL)) >= 0) {
                if (option == '?')
                        return EXIT_USAGE;
                if (option != OPTION_SECONDS)
                        what = option;
                else if (parse_seconds(optarg, &usec) < 0)
                        return fail_shim_usage("Expected a number of seconds");
        }
        end = now_boottime_usec() + usec;
        for (int i = optind; i < argc; i++) {
                uint64_t now = now_boottime_usec(), left = end > now ? end - now : 0;
                StorageTaken taken = storage_taken(argv[i], now + left / (uint64_t) (argc - i));

                print_usage_line(what, &taken);
        }
        return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int run_guard_verb(int argc, char **argv) {
        Error error = ERROR_NULL;

        if (argc != 1)
                return fail_shim_usage("Expected no argument");
        return report_shim_error(root_guard(STDIN_FILENO, &error), &error);
}

static int run_net_devices_verb(int argc, char **argv) {
        Error error = ERROR_NULL;

        if (argc != 1)
                return fail_shim_usage("Expected no argument");
        return report_shim_error(net_devices_move(STDIN_FILENO, &error), &error);
}

static int run_connect_verb(int argc, char **argv) {
        Error error = ERROR_NULL;
        unsigned long port = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
        bool is_ipv6 = argc == 3 && streq(argv[2], "--ipv6");
        int r;

        if (port < 1 || port > UINT16_MAX || argc > 2 + is_ipv6)
                return fail_shim_usage("Expected a port");
        r = port_connector_serve(STDIN_FILENO, (unsigned) port, is_ipv6);
        if (r < 0)
                (void) error_setf(&error, -r, "cannot pass on a connection to port %lu: %s", port,
                                  strerror(-r));
        return report_shim_error(r, &error);
}

static int set_shim_option(ShimOptions *options, int option) {
        switch (option) {
        case OPTION_POD:
                options->uid = optarg;
                return 0;
        case OPTION_RUN_DIR:
                options->run_dir = optarg;
                return 0;
        case OPTION_RUNTIME:
                options->runtime = optarg;
                return 0;
        case OPTION_CGROUP:
                options->cgroup = optarg;
                return 0;
        case OPTION_HOST_NETWORK:
                options->host_network = true;
                return 0;
        case OPTION_HOST_IPC:
                options->host_ipc = true;
                return 0;
        case OPTION_SYSTEMD_CGROUP:
                options->has_systemd_cgroup = true;
                return 0;
        case OPTION_RUNTIME_TIMEOUT:
                return parse_seconds(optarg, &options->runtime_timeout_usec);
        default:
                return -EINVAL;
        }
}

static int run_sandbox_verb(int argc, char **argv) {
        static const struct option long_options[] = {
                { "pod", required_argument, NULL, OPTION_POD },
                { "run-dir", required_argument, NULL, OPTION_RUN_DIR },
                { "runtime", required_argument, NULL, OPTION_RUNTIME },
                { "runtime-timeout", required_argument, NULL, OPTION_RUNTIME_TIMEOUT },
                { "cgroup", required_argument, NULL, OPTION_CGROUP },
                { "host-network", no_argument, NULL, OPTION_HOST_NETWORK },
                { "host-ipc", no_argument, NULL, OPTION_HOST_IPC },
                { "systemd-cgroup", no_argument, NULL, OPTION_SYSTEMD_CGROUP },
                { 0 },
        };
        ShimOptions options = {
                .runtime = "runc",
                .runtime_timeout_usec = RUNTIME_TIMEOUT_SEC * USEC_PER_SEC,
        };
        int option;

        while ((option = getopt_long(argc, argv, "+", long_options, NULL)) >= 0)
                if (set_shim_option(&options, option) < 0)
                        return fail_shim_usage("Unknown or incomplete option");
        if (optind != argc || !options.uid || strchr(options.uid, '/') || !options.run_dir ||
            options.run_dir[0] != '/')
                return fail_shim_usage("Expected --pod UID and an absolute --run-dir DIR");
        /* Containers inherit the limit. The agent inspects the shim's namespaces, so the shim stays
         * traceable. */
        privileges_forbid_cores();
        return shim_main(&options) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv) {
        static const struct {
                const char *name;
                int (*run)(int argc, char **argv);
        } verbs[] = {
                { "sandbox", run_sandbox_verb }, { "prepare", run_prepare_verb },
                { "cleanup", run_cleanup_verb }, { "usage", run_usage_verb },
                { "guard", run_guard_verb },     { "net-devices", run_net_devices_verb },
                { "connect", run_connect_verb },
        };
        const char *verb = argc > 1 ? argv[1] : "";

        if (streq(verb, "--help")) {
                (void) fputs(help, stdout);
                return EXIT_SUCCESS;
        }
        if (streq(verb, "--version")) {
                (void) printf("mainstay-shim %s\n", MAINSTAY_VERSION);
                return EXIT_SUCCESS;
        }
        for (size_t i = 0; i < N_ELEMENTS(verbs); i++)
                if (streq(verbs[i].name, verb))
                        return verbs[i].run(argc - 1, argv + 1);
        return fail_shim_usage(verb[0] ? "Unknown verb" : "Expected a verb");
}
