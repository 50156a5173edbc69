/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cli/cli.h"

/* All commands and all options: the command line is parsed by these tables, help is printed from
 * them. */

#define OPTION(name, letter, argument, help, member) \
        { name, letter, argument, help, offsetof(Options, member) }

/* clang-format off */
const Option global_options[] = {
        OPTION("socket", 0,   "PATH", "the agent's socket (MAINSTAY_SOCKET, " DEFAULT_SOCKET ")", socket),
        OPTION("help",   'h', NULL,   "say this", help),
};

static const Option get_options[] = {
        OPTION("namespace",      'n', "NAMESPACE", "pods of this namespace (default)", namespace),
        OPTION("all-namespaces", 'A', NULL,        "pods of all namespaces", all_namespaces),
        OPTION("selector",       'l', "SELECTOR",  "pods with these labels: key=value,key!=value,key,!key", selector),
        OPTION("output",         'o', "FORMAT",    "wide, json, yaml or name", output),
        OPTION("watch",          'w', NULL,        "go on with what changes", watch),
        OPTION("no-headers",     0,   NULL,        "print no headings", no_headers),
};

static const Option describe_options[] = {
        OPTION("namespace",      'n', "NAMESPACE", "pods of this namespace (default)", namespace),
        OPTION("all-namespaces", 'A', NULL,        "pods of all namespaces", all_namespaces),
        OPTION("selector",       'l', "SELECTOR",  "pods with these labels: key=value,key!=value,key,!key", selector),
};

static const Option logs_options[] = {
        OPTION("namespace",      'n', "NAMESPACE", "the pod's namespace (default)", namespace),
        OPTION("container",      'c', "CONTAINER", "this container (the first)", container),
        OPTION("all-containers", 0,   NULL,        "all containers, one after the other", all_containers),
        OPTION("follow",         'f', NULL,        "go on until the container ends", follow),
        OPTION("previous",       'p', NULL,        "of the attempt before the last restart", previous),
        OPTION("tail",           0,   "LINES",     "the last lines only; -1: all", tail),
        OPTION("since",          0,   "DURATION",  "not older than this: 5s, 2m, 1h30m", since),
        OPTION("since-time",     0,   "TIME",      "not older than this: 2026-01-02T03:04:05Z", since_time),
        OPTION("limit-bytes",    0,   "BYTES",     "no more than this many", limit_bytes),
        OPTION("timestamps",     0,   NULL,        "each line with its time", timestamps),
};

static const Option rollout_options[] = {
        OPTION("namespace",   'n', "NAMESPACE", "the daemonset's namespace (default)", namespace),
        OPTION("revision",    0,   "NUMBER",    "history: show this revision", revision),
        OPTION("to-revision", 0,   "NUMBER",    "undo: go to this revision (the one before)", to_revision),
};

static const Option cp_options[] = {
        OPTION("namespace", 'n', "NAMESPACE", "the pod's namespace (default)", namespace),
        OPTION("container", 'c', "CONTAINER", "this container (the first)", container),
};

static const Option top_options[] = {
        OPTION("namespace",      'n', "NAMESPACE", "pods of this namespace (default)", namespace),
        OPTION("all-namespaces", 'A', NULL,        "pods of all namespaces", all_namespaces),
        OPTION("selector",       'l', "SELECTOR",  "pods with these labels", selector),
        OPTION("containers",     0,   NULL,        "each container by itself", containers),
        OPTION("no-headers",     0,   NULL,        "print no headings", no_headers),
};

static const Option match_options[] = {
        OPTION("labels",         0,   "LABELS",    "the node's labels: key=value,key=value", labels),
        OPTION("taints",         0,   "TAINTS",    "its taints: key=value:effect,key:effect", taints),
        OPTION("node",           0,   "NAME",      "its name (node)", node),
        OPTION("no-headers",     0,   NULL,        "print no headings", no_headers),
};

static const Option delete_options[] = {
        OPTION("namespace",    'n', "NAMESPACE", "pods of this namespace (default)", namespace),
        OPTION("selector",     'l', "SELECTOR",  "pods with these labels", selector),
        OPTION("all",          0,   NULL,        "all pods of the namespace", all),
        OPTION("grace-period", 0,   "SECONDS",   "time to end before SIGKILL (the pod's own)", grace_period),
        OPTION("now",          0,   NULL,        "no more than a second to end", now),
        OPTION("wait",         0,   NULL,        "go on when they have ended", wait),
        OPTION("cascade",      0,   "HOW",       "of a daemonset: background, or orphan to leave its pods", cascade),
};

static const Option exec_options[] = {
        OPTION("namespace", 'n', "NAMESPACE", "the pod's namespace (default)", namespace),
        OPTION("container", 'c', "CONTAINER", "this container (the first)", container),
        OPTION("stdin",     'i', NULL,        "pass on standard input", interactive),
        OPTION("tty",       't', NULL,        "in a terminal", tty),
};

static const Option wait_options[] = {
        OPTION("bootstrap", 0, NULL, "for all with the annotation mainstay.dev/bootstrap", bootstrap),
};

static const Option images_options[] = {
        OPTION("output",     'o', "FORMAT", "json or yaml", output),
        OPTION("no-headers", 0,   NULL,     "print no headings", no_headers),
};

const Command commands[] = {
        { "get", "RESOURCE [NAME...]", "show pods, daemonsets, nodes, events, configmaps, secrets or classes",
          get_options, N_ELEMENTS(get_options), run_get },
        { "describe", "pod|daemonset|node [NAME...]", "show all there is to know about them",
          describe_options, N_ELEMENTS(describe_options), run_describe },
        { "logs", "POD [CONTAINER]", "show what a container wrote",
          logs_options, N_ELEMENTS(logs_options), run_logs },
        { "exec", "POD -- COMMAND...", "run a command in a container",
          exec_options, N_ELEMENTS(exec_options), run_exec },
        { "rollout", "history|status|undo|restart daemonset/NAME", "follow and turn back updates of daemonsets",
          rollout_options, N_ELEMENTS(rollout_options), run_rollout },
        { "cp", "FROM TO", "copy files out of a container or into it",
          cp_options, N_ELEMENTS(cp_options), run_cp },
        { "top", "pods [NAME...]", "show what pods use of processor and memory",
          top_options, N_ELEMENTS(top_options), run_top },
        { "match", "FILE...", "show which manifests would run on a node, and why; needs no agent",
          match_options, N_ELEMENTS(match_options), run_match },
        { "delete", "pod|daemonset NAME...", "end pods, which begin anew; remove daemonsets with their files",
          delete_options, N_ELEMENTS(delete_options), run_delete },
        { "wait", "--bootstrap", "go on when the pods that others need are ready",
          wait_options, N_ELEMENTS(wait_options), run_wait },
        { "images", "[ls | pull IMAGE... | import FILE... | export IMAGE FILE | rm IMAGE... | prune | verify | repair]",
          "show, fetch and remove images",
          images_options, N_ELEMENTS(images_options), run_images },
        { "validate", "FILE...", "check manifests; '-' is standard input; needs no agent",
          NULL, 0, run_validate },
        { "diff", "FILE...", "show what an edit would do to the pods that run; '-' is standard input",
          NULL, 0, run_diff },
        { "debug", "dump | log-level [error|warning|info|debug]",
          "print the state of the agent, or print or set its log level",
          NULL, 0, run_debug },
        { "version", "", "show the versions of this program and of the agent",
          NULL, 0, run_version },
        { "help", "[COMMAND]", "explain a command",
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
