/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of all commands and options, with which the command line is parsed and from which help
 * is printed. Option texts follow those of kubectl. */

#include "agent/cli/cli.h"

#define OPTION(name, letter, argument, help, member) \
        { name, letter, argument, help, offsetof(Options, member), false }
#define LIST_OPTION(name, letter, argument, help, member) \
        { name, letter, argument, help, offsetof(Options, member), true }

/* clang-format off */
const Option global_options[] = {
        OPTION("socket", 0,   "PATH", "socket of the agent (default: $MAINSTAY_SOCKET, else " DEFAULT_SOCKET ")", socket),
        OPTION("help",   'h', NULL,   "show this help", help),
};

static const Option get_options[] = {
        OPTION("namespace",      'n', "NAMESPACE", "namespace of the objects (default: default)", namespace),
        OPTION("all-namespaces", 'A', NULL,        "objects of all namespaces", all_namespaces),
        OPTION("selector",       'l', "SELECTOR",  "only objects with matching labels: key=value,key!=value,key,!key", selector),
        OPTION("output",         'o', "FORMAT",    "output format: wide, json, yaml or name (default: a table)", output),
        OPTION("watch",          'w', NULL,        "after listing, continue to print changes", watch),
        OPTION("no-headers",     0,   NULL,        "omit the header line", no_headers),
        OPTION("show-labels",    0,   NULL,        "pods, daemonsets, nodes: show the labels in the last column", show_labels),
};

static const Option describe_options[] = {
        OPTION("namespace",      'n', "NAMESPACE", "namespace of the objects (default: default)", namespace),
        OPTION("all-namespaces", 'A', NULL,        "objects of all namespaces", all_namespaces),
        OPTION("selector",       'l', "SELECTOR",  "only objects with matching labels: key=value,key!=value,key,!key", selector),
};

static const Option logs_options[] = {
        OPTION("namespace",      'n', "NAMESPACE", "namespace of the pod (default: default)", namespace),
        OPTION("container",      'c', "CONTAINER", "container (default: the pod's default container, else the first)", container),
        OPTION("all-containers", 0,   NULL,        "print the logs of all containers, one after another", all_containers),
        OPTION("follow",         'f', NULL,        "stream the log until the container terminates", follow),
        OPTION("previous",       'p', NULL,        "print the log of the previous instance of the container", previous),
        OPTION("tail",           0,   "LINES",     "number of most recent lines to print (default: -1, all)", tail),
        OPTION("since",          0,   "DURATION",  "only lines newer than a duration, such as 5s, 2m or 1h30m", since),
        OPTION("since-time",     0,   "TIME",      "only lines after a time, such as 2026-01-02T03:04:05Z", since_time),
        OPTION("limit-bytes",    0,   "BYTES",     "maximum number of bytes to print", limit_bytes),
        OPTION("timestamps",     0,   NULL,        "print the timestamp before each line", timestamps),
};

static const Option rollout_options[] = {
        OPTION("namespace",   'n', "NAMESPACE", "namespace of the DaemonSet or pod (default: default)", namespace),
        OPTION("revision",    0,   "NUMBER",    "history: show the pod template of a revision", revision),
        OPTION("to-revision", 0,   "NUMBER",    "undo: roll back to a revision (default: the previous one)", to_revision),
};

static const Option cp_options[] = {
        OPTION("namespace", 'n', "NAMESPACE", "namespace of the pod (default: default)", namespace),
        OPTION("container", 'c', "CONTAINER", "container (default: the pod's default container, else the first)", container),
};

static const Option top_options[] = {
        OPTION("namespace",      'n', "NAMESPACE", "namespace of the pods (default: default)", namespace),
        OPTION("all-namespaces", 'A', NULL,        "pods of all namespaces", all_namespaces),
        OPTION("selector",       'l', "SELECTOR",  "only pods with matching labels: key=value,key!=value,key,!key", selector),
        OPTION("containers",     0,   NULL,        "show the usage of each container", containers),
        OPTION("no-headers",     0,   NULL,        "omit the header line", no_headers),
};

static const Option match_options[] = {
        OPTION("labels",         0,   "LABELS",    "labels of the node: key=value,key=value", labels),
        OPTION("taints",         0,   "TAINTS",    "taints of the node: key=value:effect,key:effect", taints),
        OPTION("node",           0,   "NAME",      "name of the node (default: node)", node),
        OPTION("no-headers",     0,   NULL,        "omit the header line", no_headers),
};

static const Option delete_options[] = {
        OPTION("namespace",    'n', "NAMESPACE", "namespace of the objects (default: default)", namespace),
        OPTION("selector",     'l', "SELECTOR",  "only pods with matching labels: key=value,key!=value,key,!key", selector),
        OPTION("all",          0,   NULL,        "delete all pods of the namespace", all),
        OPTION("grace-period", 0,   "SECONDS",   "seconds from SIGTERM to SIGKILL (default: the pod's grace period)", grace_period),
        OPTION("now",          0,   NULL,        "same as --grace-period 1", now),
        OPTION("wait",         0,   NULL,        "wait until the pods have terminated", wait),
        OPTION("cascade",      0,   "HOW",       "for DaemonSets: background, foreground or orphan (keep the pods)", cascade),
};

static const Option exec_options[] = {
        OPTION("namespace", 'n', "NAMESPACE", "namespace of the pod (default: default)", namespace),
        OPTION("container", 'c', "CONTAINER", "container (default: the pod's default container, else the first)", container),
        OPTION("stdin",     'i', NULL,        "pass standard input to the command", interactive),
        OPTION("tty",       't', NULL,        "allocate a terminal (TTY) for the command", tty),
};

static const Option attach_options[] = {
        OPTION("namespace", 'n', "NAMESPACE", "namespace of the pod (default: default)", namespace),
        OPTION("container", 'c', "CONTAINER", "container (default: the pod's default container, else the first)", container),
        OPTION("stdin",     'i', NULL,        "pass standard input to the container", interactive),
        OPTION("tty",       't', NULL,        "connect this terminal to the container's terminal (TTY)", tty),
};

static const Option debug_options[] = {
        OPTION("image",     0,   "IMAGE",     "image of the ephemeral container", image),
        OPTION("target",    0,   "CONTAINER", "join the PID namespace of this container, to see its processes", target),
        OPTION("container", 'c', "NAME",      "name of the ephemeral container (default: a new one)", container),
        OPTION("namespace", 'n', "NAMESPACE", "namespace of the pod (default: default)", namespace),
        OPTION("stdin",     'i', NULL,        "attach to the ephemeral container, and pass standard input to it", interactive),
        OPTION("tty",       't', NULL,        "allocate a terminal (TTY) for the ephemeral container", tty),
        OPTION("profile",   0,   "PROFILE",   "privileges: general, baseline, netadmin or sysadmin (default: general)", profile),
};

static const Option wait_options[] = {
        OPTION("bootstrap", 0, NULL, "wait for all pods with the annotation mainstay.dev/bootstrap", bootstrap),
        OPTION("critical",  0, NULL, "wait for all pods with the annotation or label mainstay.dev/critical", critical),
        OPTION("timeout",   0, "DURATION", "fail after a duration, such as 30s or 5m (default: never)", timeout),
};

static const Option images_options[] = {
        OPTION("output",     'o', "FORMAT", "ls: output format, json or yaml (default: a table)", output),
        OPTION("no-headers", 0,   NULL,     "omit the header line", no_headers),
        OPTION("name",       0,   "NAME",   "import: name of the image to make from a tar with a root file system", name),
        LIST_OPTION("config", 0,  "CHANGE", "import: an instruction, such as 'CMD [\"/bin/app\"]'; may be repeated", config),
        LIST_OPTION("change", 'c', "CHANGE", "import: same as --config", config),
};

static const Option kubeconfig_options[] = {
        OPTION("server", 0, "URL", "address of mainstay-api (default: from the configuration)", server),
};

static const Option source_options[] = {
        OPTION("key",       0, "FILE",    "sign: Ed25519 private key, in PEM", key),
        OPTION("fleet",     0, "NAME",    "sign, verify: name of the fleet", fleet),
        OPTION("number",    0, "NUMBER",  "sign: number of the index (default: one more than that of the existing index)", number),
        OPTION("expires",   0, "WHEN",    "sign: expiry, as a time or in days (default: 90d)", expires),
        OPTION("next-keys", 0, "KEYS", "sign: public keys, separated by commas; one must sign the next index (default: as before)", next_keys),
        OPTION("progress-deadline-seconds", 0, "SECONDS", "sign: seconds after which a node on which not everything is ready returns to the previous index", progress_deadline),
        OPTION("platform",  0, "PLATFORMS", "sign: platforms of the images, separated by commas (default: that of this machine)", platform),
        OPTION("from",      0, "PATHS",   "sign: OCI archives and layouts that may have the images, separated by commas (default: registries only)", from),
        OPTION("cache",     0, "DIRECTORY", "sign: directory for images of the last indexes, for deltas (default: in the user's cache)", cache),
        OPTION("deltas",    0, "NUMBER",  "sign: number of previous indexes from whose images deltas are made (default: 3)", deltas),
        OPTION("no-images", 0, NULL,      "sign: name no images; nodes pull them from registries", no_images),
        OPTION("check",     0, NULL,      "sign: only show what would be signed and fetched", check),
        OPTION("rotate",    0, NULL,      "identity: create a new one; the others can still decrypt values encrypted for them", rotate),
        OPTION("remove-old", 0, NULL,     "identity: remove all except the newest one", remove_old),
        OPTION("keys",      0, "KEYS", "verify: public keys, separated by commas; one must have signed the index", keys),
};

static const Option secret_options[] = {
        OPTION("namespace", 'n', "NAMESPACE", "namespace of the Secret (default: default)", namespace),
        OPTION("type",      0,   "TYPE",      "type of the Secret (default: Opaque)", type),
        LIST_OPTION("recipient", 'r', "RECIPIENT", "encrypt: a recipient of age; may be repeated", recipients),
        LIST_OPTION("recipients-file", 'R', "FILE", "encrypt: a file with a recipient on each line; may be repeated", recipient_files),
};

const Command commands[] = {
        { "get", "RESOURCE [NAME...]", "list pods, daemonsets, nodes, events, images, configmaps, secrets, priorityclasses or runtimeclasses",
          get_options, N_ELEMENTS(get_options), run_get },
        { "describe", "pod|daemonset|node [NAME...]", "show details of pods, DaemonSets or the node",
          describe_options, N_ELEMENTS(describe_options), run_describe },
        { "logs", "POD [CONTAINER]", "print the log of a container",
          logs_options, N_ELEMENTS(logs_options), run_logs },
        { "exec", "POD -- COMMAND...", "run a command in a container",
          exec_options, N_ELEMENTS(exec_options), run_exec },
        { "attach", "POD", "attach to a running container",
          attach_options, N_ELEMENTS(attach_options), run_attach },
        { "rollout", "history|status|undo|restart daemonset/NAME | status pod/NAME", "show, undo or restart the rollout of a DaemonSet, or show that of a pod",
          rollout_options, N_ELEMENTS(rollout_options), run_rollout },
        { "cp", "FROM TO", "copy files and directories to or from a container",
          cp_options, N_ELEMENTS(cp_options), run_cp },
        { "top", "pods [NAME...]", "show CPU and memory usage of pods",
          top_options, N_ELEMENTS(top_options), run_top },
        { "match", "FILE...", "show which manifests would run on a node, and why; '-' is standard input; needs no agent",
          match_options, N_ELEMENTS(match_options), run_match },
        { "delete", "pod|daemonset NAME...", "stop pods, which are then started again, or remove DaemonSets with their files",
          delete_options, N_ELEMENTS(delete_options), run_delete },
        { "wait", "--bootstrap|--critical", "wait until the bootstrap pods, or the critical ones, are ready",
          wait_options, N_ELEMENTS(wait_options), run_wait },
        { "images", "[ls | pull IMAGE... | import FILE... | export IMAGE FILE | diff OLD NEW FILE | rm IMAGE... | prune | verify | repair]",
          "list, pull, import, export, compare, verify or remove images",
          images_options, N_ELEMENTS(images_options), run_images },
        { "validate", "FILE...", "check manifests for errors; '-' is standard input; needs no agent",
          NULL, 0, run_validate },
        { "diff", "FILE...", "show what a changed manifest would do to running pods; '-' is standard input",
          NULL, 0, run_diff },
        { "debug", "bundle FILE | dump | log-level [error|warning|info|debug] | POD --image IMAGE [-- COMMAND...]",
          "collect the data for a bug report, print the state of the agent, print or set its log level, or add an ephemeral container to a pod",
          debug_options, N_ELEMENTS(debug_options), run_debug },
        { "secret", "encrypt|seal NAME KEY=FILE...",
          "print a Secret whose values are encrypted for nodes, or sealed for this machine; '-' is standard input; needs no agent",
          secret_options, N_ELEMENTS(secret_options), run_secret },
        { "source", "[status | identity | sign MANIFESTS DIRECTORY | verify DIRECTORY | report FILE...]",
          "show sources of manifests or this node's identity, or create and check a signed index of manifests",
          source_options, N_ELEMENTS(source_options), run_source },
        { "kubeconfig", "", "print a kubeconfig for kubectl on a node that has not joined an API server",
          kubeconfig_options, N_ELEMENTS(kubeconfig_options), run_kubeconfig },
        { "version", "", "show the versions of this program and of the agent",
          NULL, 0, run_version },
        { "help", "[COMMAND]", "show the usage and options of a command",
          NULL, 0, run_help },
};
/* clang-format on */

const size_t n_commands = N_ELEMENTS(commands);
const size_t n_global_options = N_ELEMENTS(global_options);

const Command *find_command(const char *name) {
        for (size_t i = 0; i < n_commands; i++)
                if (streq(commands[i].name, name))
                        return &commands[i];
        return NULL;
}
