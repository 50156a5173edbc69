/* SPDX-License-Identifier: Apache-2.0 */
/* mainstayd: command line, signals, exit status. Everything else is in the library agent-core. */

#include "agent/agent.h"
#include "agent/metrics/journal.h"
#include "common/journal-socket.h"
#include "common/log.h"
#include "common/privileges.h"

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

enum {
        EXIT_USAGE = 2,
        AGENT_DESCRIPTORS_MAX = 1024 * 1024
};

static const char help_text[] =
        "Usage: mainstayd [OPTION…]\n"
        "Runs the pods of a directory of Kubernetes manifests on this node.\n"
        "\n"
        "  --config FILE         configuration (/etc/mainstay/config.yaml; may be absent)\n"
        "  --config-dir DIR      drop-ins of the configuration, *.conf (config.d next to it)\n"
        "  --manifest-dir DIR    manifests to run (/etc/kubernetes/manifests)\n"
        "  --state-dir DIR       persistent state (/var/lib/mainstay)\n"
        "  --run-dir DIR         runtime state and the socket (/run/mainstay)\n"
        "  --log-dir DIR         pods/ and containers/ are created below it (/var/log)\n"
        "  --kubelet-dir DIR     directories of the kubelet's plugins (/var/lib/kubelet)\n"
        "  --node-name NAME      the node's name (the host name)\n"
        "  --kubeconfig FILE     kubeconfig of an API server to join (none)\n"
        "  --bootstrap-kubeconfig FILE\n"
        "                        kubeconfig to request the first client certificate with\n"
        "  --cert-dir DIR        directory of the issued client certificate (pki in the state\n"
        "                        directory)\n"
        "  --node-ip ADDRESS[,ADDRESS]\n"
        "                        the node's address, or one of each family (that of the default\n"
        "                        route's interface)\n"
        "  --node-labels LABELS  labels of the node, KEY=VALUE,..., in addition to the\n"
        "                        configuration's\n"
        "  --register-with-taints TAINTS\n"
        "                        taints of the node, KEY=VALUE:EFFECT,..., instead of the\n"
        "                        configuration's\n"
        "  --drain               stop all pods of this node, clean up, and exit\n"
        "  --version             print the version\n"
        "  --help                print this\n"
        "\n"
        "See mainstayd(8).\n";

enum {
        OPTION_CONFIG = 256,
        OPTION_CONFIG_DIR,
        OPTION_MANIFEST_DIR,
        OPTION_STATE_DIR,
        OPTION_RUN_DIR,
        OPTION_LOG_DIR,
        OPTION_KUBELET_DIR,
        OPTION_NODE_NAME,
        OPTION_KUBECONFIG,
        OPTION_BOOTSTRAP_KUBECONFIG,
        OPTION_CERT_DIR,
        OPTION_NODE_IP,
        OPTION_NODE_LABELS,
        OPTION_REGISTER_WITH_TAINTS,
        OPTION_DRAIN,
        OPTION_VERSION,
        OPTION_HELP
};

static const struct option long_options[] = {
        { "config", required_argument, NULL, OPTION_CONFIG },
        { "config-dir", required_argument, NULL, OPTION_CONFIG_DIR },
        { "manifest-dir", required_argument, NULL, OPTION_MANIFEST_DIR },
        { "pod-manifest-path", required_argument, NULL, OPTION_MANIFEST_DIR }, /* the kubelet's */
        { "state-dir", required_argument, NULL, OPTION_STATE_DIR },
        { "run-dir", required_argument, NULL, OPTION_RUN_DIR },
        { "log-dir", required_argument, NULL, OPTION_LOG_DIR },
        { "kubelet-dir", required_argument, NULL, OPTION_KUBELET_DIR },
        { "root-dir", required_argument, NULL, OPTION_KUBELET_DIR }, /* the kubelet's */
        { "node-name", required_argument, NULL, OPTION_NODE_NAME },
        { "kubeconfig", required_argument, NULL, OPTION_KUBECONFIG },
        { "bootstrap-kubeconfig", required_argument, NULL, OPTION_BOOTSTRAP_KUBECONFIG },
        { "cert-dir", required_argument, NULL, OPTION_CERT_DIR },
        { "node-ip", required_argument, NULL, OPTION_NODE_IP },
        { "node-labels", required_argument, NULL, OPTION_NODE_LABELS },
        { "register-with-taints", required_argument, NULL, OPTION_REGISTER_WITH_TAINTS },
        { "drain", no_argument, NULL, OPTION_DRAIN },
        { "version", no_argument, NULL, OPTION_VERSION },
        { "help", no_argument, NULL, OPTION_HELP },
        { 0 },
};

static int print_usage_hint(void) {
        (void) fprintf(stderr, "Try 'mainstayd --help'.\n");
        return EXIT_USAGE;
}

/* The member that an option with a value sets; NULL: an option without a value. */
static const char **find_option_value(AgentOptions *options, int option) {
        switch (option) {
        case OPTION_CONFIG:
                return &options->config_path;
        case OPTION_CONFIG_DIR:
                return &options->config_dir;
        case OPTION_MANIFEST_DIR:
                return &options->manifest_dir;
        case OPTION_STATE_DIR:
                return &options->state_dir;
        case OPTION_RUN_DIR:
                return &options->run_dir;
        case OPTION_LOG_DIR:
                return &options->log_dir;
        case OPTION_KUBELET_DIR:
                return &options->kubelet_dir;
        case OPTION_NODE_NAME:
                return &options->node_name;
        case OPTION_KUBECONFIG:
                return &options->kubeconfig;
        case OPTION_BOOTSTRAP_KUBECONFIG:
                return &options->bootstrap_kubeconfig;
        case OPTION_CERT_DIR:
                return &options->cert_dir;
        case OPTION_NODE_IP:
                return &options->node_ip;
        case OPTION_NODE_LABELS:
                return &options->node_labels;
        case OPTION_REGISTER_WITH_TAINTS:
                return &options->register_with_taints;
        default:
                return NULL;
        }
}

/* < 0: continue; otherwise the exit status. */
static int parse_agent_arguments(int argc, char **argv, AgentOptions *ret) {
        int option;

        while ((option = getopt_long(argc, argv, "", long_options, NULL)) >= 0) {
                const char **value = find_option_value(ret, option);

                if (value) {
                        *value = optarg;
                        continue;
                }
                switch (option) {
                case OPTION_DRAIN:
                        ret->drain = true;
                        break;
                case OPTION_VERSION:
                        (void) printf("mainstayd %s\n", MAINSTAY_VERSION);
                        return EXIT_SUCCESS;
                case OPTION_HELP:
                        (void) fputs(help_text, stdout);
                        return EXIT_SUCCESS;
                default:
                        return print_usage_hint();
                }
        }
        if (optind < argc) {
                (void) fprintf(stderr, "mainstayd: unexpected argument '%s'\n", argv[optind]);
                return print_usage_hint();
        }
        return -1;
}

static void block_agent_signals(void) {
        sigset_t mask;

        /* Signals are blocked before anything else, so that no exit of a child is missed. */
        (void) sigemptyset(&mask);
        (void) sigaddset(&mask, SIGCHLD);
        (void) sigaddset(&mask, SIGTERM);
        (void) sigaddset(&mask, SIGINT);
        (void) sigaddset(&mask, SIGHUP);
        (void) sigprocmask(SIG_BLOCK, &mask, NULL);
        (void) signal(SIGPIPE, SIG_IGN);
}

/* A pod needs two descriptors, and the usual soft limit is 1024, so it is raised to the hard limit.
 * Containers inherit the limit, as in other engines. */
static void raise_descriptor_limit(void) {
        struct rlimit limit;

        if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
                return;
        limit.rlim_cur = MIN(limit.rlim_max, AGENT_DESCRIPTORS_MAX);
        (void) setrlimit(RLIMIT_NOFILE, &limit);
}

int main(int argc, char **argv) {
        AgentOptions options = { .config_path = "/etc/mainstay/config.yaml",
                                 .state_dir = "/var/lib/mainstay",
                                 .run_dir = "/run/mainstay",
                                 .log_dir = "/var/log",
                                 .kubelet_dir = "/var/lib/kubelet" };
        cleanup_error Error error = ERROR_NULL;
        int r;

        log_read_environment();
        block_agent_signals();
        journal_attach_log(JOURNAL_SOCKET_PATH);
        raise_descriptor_limit();
        /* The memory of the agent, and of the programs that it starts, contains values of Secrets.
         */
        privileges_hide_memory();
        r = parse_agent_arguments(argc, argv, &options);
        if (r >= 0)
                return r;
        r = agent_run(&options, &error);
        if (r < 0)
                log_error_message(&error, r);
        return r == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
