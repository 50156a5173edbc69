/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The agent's end of a pod sandbox: starts a pod's shim, finds it again after a restart of the
 * agent, and communicates with it through the shim's protocol.
 *
 * A Sandbox is the agent's view of one mainstay-shim. All calls return at once; results arrive as
 * events from the loop. Freeing a Sandbox closes only the connection: the shim and its containers
 * continue to run. */

#include "agent/sandbox/exec-requests.h"
#include "agent/sandbox/protocol.h"
#include "agent/sandbox/sandbox-config.h"
#include "common/child.h"
#include "common/error.h"
#include "common/process-usage.h"

#include <stdint.h>
#include <sys/types.h>
#include <systemd/sd-event.h>

typedef struct Sandbox Sandbox;
/* An event of the shim, as protocol.h defines it, or SHIM_EVENT_LOST; not SHIM_EVENT_HELLO,
 * SHIM_EVENT_ERROR, SHIM_EVENT_EXEC_DONE or SHIM_EVENT_USAGE. Strings are valid only during the
 * callback. Before SHIM_EVENT_SYNCED the shim replays each attempt that it holds as STARTED, EXITED
 * or START_FAILED, oldest first; an attempt that is being started is replayed as STARTING, and its
 * event follows later. SHIM_EVENT_SYNCED is repeated if the connection was lost and restored. */
typedef void (*sandbox_event_t)(Sandbox *sandbox, const ShimEvent *event, void *userdata);

typedef struct SandboxSetupOptions {
        const char
                *fstab; /* path of the pod's fstab, whose mounts are made in the shim's namespace */
        const char *hostname;  /* for the pod's UTS namespace; NULL: unchanged */
        uint64_t log_max_size; /* in bytes; a container's log is rotated before it exceeds this
                                * size */
        unsigned log_max_files;
} SandboxSetupOptions;

typedef struct SandboxContainerConfig {
        const char *id; /* also the runtime's container ID; 64 hex digits */
        const char *name;
        unsigned attempt;
        const char *bundle;          /* directory with config.json and fstab */
        const char *log;             /* path of the log file; its directory exists */
        char *const *journal_fields; /* "NAME=value": its output also goes to the journal, with
                                        these fields; NULL: only to the file */
        const char *events_file;     /* cgroup file with an "oom_kill" line, which is read when the
                                      * container ends */
        const char *note;   /* at most 1 KiB for the agent's own use; included in every event */
        bool has_input;     /* its standard input is open, but has no data */
        bool keeps_early;   /* with an input: the first client that attaches also gets the earlier
                             * output, unless the shim was started by an older agent */
        bool has_terminal;  /* as in config.json */
        const char *target; /* ID of a running container of the pod, whose PID namespace is bound
                               to <bundle>/pid-namespace; NULL: none */
} SandboxContainerConfig;

/* Runs "mainstay-shim prepare": makes <run-dir> a private mount, and the kubelet's directory,
 * unless it is NULL, a shared one. Blocks; to be called before the loop. */
int sandbox_prepare(const SandboxConfig *config, const char *kubelet_dir, Error *reterr);

/* Creates a sandbox for pod 'uid', which must be valid. Does not connect yet. */
int sandbox_new(const SandboxConfig *config, const char *uid, sandbox_event_t on_event,
                void *userdata, Sandbox **ret);

/* Connects to the shim that an earlier agent started. 1: connected, its state follows as events up
 * to SHIM_EVENT_SYNCED; 0: there is none; -errno. */
int sandbox_connect(Sandbox *sandbox, Error *reterr);

/* Selects another OCI runtime than the configured one; to be called before sandbox_start().
 * Borrowed. */
void sandbox_set_runtime(Sandbox *sandbox, const char *runtime_path);

/* Starts a shim and connects to it; SHIM_EVENT_SYNCED follows. <run-dir>/pods/<uid> must exist.
 * -EEXIST if a shim of the pod is already running: a pod never has two. If systemd fails to start
 * it, SHIM_EVENT_LOST follows. */
int sandbox_start(Sandbox *sandbox, const SandboxStartOptions *start, Error *reterr);

/* Requests the pod's mounts. SHIM_EVENT_READY or SHIM_EVENT_SETUP_FAILED follows. */
int sandbox_setup(Sandbox *sandbox, const SandboxSetupOptions *setup);

/* Runs a container. SHIM_EVENT_STARTED (and later SHIM_EVENT_EXITED) or SHIM_EVENT_START_FAILED
 * follows. -ENOTSUP if it has a target, and the shim was started by an older agent. */
int sandbox_run_container(Sandbox *sandbox, const SandboxContainerConfig *run);

/* Sends 'signal' to the container's first process now, and SIGKILL after 'grace_usec', which the
 * shim does even if no agent is running. Further calls can only shorten the time. SHIM_EVENT_EXITED
 * follows. Unknown IDs are ignored. */
int sandbox_stop_container(Sandbox *sandbox, const char *id, int signal, uint64_t grace_usec);

/* The same, but the signal is delayed by 'delay_usec' or until the next sandbox_stop_container(),
 * whichever is first, to give a preStop hook time. Both times count from now. Like the next two,
 * -ENOTSUP if the shim was started by an older agent and does not support it. */
int sandbox_stop_container_delayed(Sandbox *sandbox, const char *id, int signal,
                                   uint64_t delay_usec, uint64_t grace_usec);

/* Sets 'note', the checkpoint that events of that container contain. Unknown IDs are ignored. */
int sandbox_set_container_note(Sandbox *sandbox, const char *id, const char *note);

/* Deletes an ended attempt: runtime state, mounts, and the named directories. SHIM_EVENT_DELETED
 * follows. */
int sandbox_remove_container(Sandbox *sandbox, const char *id, const char *const *directories,
                             size_t n_directories);

typedef struct SandboxProgram {
        char *const *argv;        /* argv[0] is a path */
        char *const *environment; /* the whole environment */
        const char *input;        /* its standard input; NULL: empty */
        bool in_host;             /* in the node's network and UTS namespaces, else in the pod's */
        uint64_t timeout_usec;    /* the program is killed after this time; 0: no limit */
        const char *interface;    /* NULL; otherwise the program runs only if this interface does
                                   * not exist in the network namespace in its CNI_NETNS ("": none),
                                   * and then with a dummy interface of that name ... */
        const char *address;      /* ... with this address, of either family */
        bool keeps_router_advertisements; /* the program makes the node forward IPv6, but the node
                                           * must still accept router advertisements */
} SandboxProgram;

/* Runs a program in the shim's mount namespace. 'done' is called, unless the connection or the shim
 * ends first. Programs with 'in_host' run one after the other, in the order of the requests, so
 * that two network plugins of a pod never run at the same time. -EMSGSIZE for more than a packet
 * can contain (64 KiB). */
int sandbox_run_program(Sandbox *sandbox, const SandboxProgram *program, sandbox_exec_done_t done,
                        void *userdata, SandboxExec **ret);

typedef struct SandboxSession {
        const char *container; /* ID of a running container */
        char *const *argv;     /* argv[0] is looked up in the container's PATH */
        bool has_input, has_output, has_error, has_terminal;
        bool is_held; /* the command waits for the client's message CHANNEL_START; a shim from
                         before an upgrade starts it at once */
} SandboxSession;

/* Exec session: runs a command in a container for the client of a socket, which from now on uses
 * WebSocket with the channels of common/channels.h. The shim gets a copy of the descriptor and
 * reports the result to the client, not to the agent. 0; -EBUSY if the shim cannot accept the
 * request now; another -errno. */
int sandbox_open_session(Sandbox *sandbox, const SandboxSession *session, int socket_fd);

typedef struct SandboxAttach {
        const char *container; /* ID of a running container */
        bool has_input, has_output, has_error;
        bool has_terminal;  /* the container has a terminal; the client may set its size */
        bool is_input_once; /* the container's input ends with the first client's (stdinOnce); not
                               with a terminal */
} SandboxAttach;

/* Attach session: connects the client of a socket, as above, to the streams of the container
 * itself. Output is copied to each client; a client that does not read is dropped, so neither the
 * container nor its log waits for a client. 0; -EBUSY; -ENOTSUP if the shim was started by an older
 * agent; another -errno. */
int sandbox_attach(Sandbox *sandbox, const SandboxAttach *attach, int socket_fd);

/* Whether the shim supports sandbox_attach(). */
bool sandbox_can_attach(const Sandbox *sandbox);

typedef struct SandboxContainerExec {
        const char *container; /* ID of a running container */
        char *const *argv;     /* argv[0] is looked up in the container's PATH */
        uint64_t timeout_usec; /* the program is killed after this time; 0: no limit */
} SandboxContainerExec;

/* Runs a program in a container (exec probes, hooks), as its user and with its environment. Like
 * sandbox_run_program(), but both streams are in the result's output, truncated to 10 KiB. */
int sandbox_exec_in_container(Sandbox *sandbox, const SandboxContainerExec *spec,
                              sandbox_exec_done_t done, void *userdata, SandboxExec **ret);

/* Sets the hot-plug devices of a running container (device_edits_print_live()) to exactly these:
 * its device cgroup permits them, and their nodes are in its /dev. A failure is logged. -ENOTSUP if
 * the shim was started by an older agent. */
int sandbox_set_container_devices(Sandbox *sandbox, const char *id, char *const *devices);

/* Requests a count of the open descriptors of the shim's containers, unless one is already in
 * progress. No event follows. -ENOTCONN; -ENOTSUP if the shim was started by an older agent. */
int sandbox_request_usage(Sandbox *sandbox);

/* The last response about a running container (by ID), and the time of its arrival (realtime).
 * NULL: there was none. Valid until the loop runs. */
const ProcessUsage *sandbox_container_usage(const Sandbox *sandbox, const char *id,
                                            uint64_t *ret_taken_at);

/* Tears the sandbox down: the shim kills running processes, drops its mounts and exits.
 * SHIM_EVENT_LOST follows. */
int sandbox_teardown(Sandbox *sandbox);

/* The shim's pid while it is connected and known, else 0. */
pid_t sandbox_pid(const Sandbox *sandbox);

/* Whether the shim creates mount points in volumes and copies content of images into them; a shim
 * from before an upgrade does not support these lines of a container's fstab. */
bool sandbox_prepares_volumes(const Sandbox *sandbox);

bool sandbox_is_connected(const Sandbox *sandbox);

/* A descriptor of the network namespace of a connected shim; -ENOENT if it is the node's; another
 * -errno if it is unknown. */
int sandbox_open_network_namespace(const Sandbox *sandbox);

Sandbox *sandbox_free(Sandbox *sandbox);
DEFINE_CLEANUP(Sandbox *, sandbox_free)

/* The data that "mainstay-shim cleanup" removes once the shim of a pod is gone. */
typedef struct SandboxCleanup {
        const char *uid;     /* cgroup of its shim, which is killed first if it is still running; or
                              * NULL */
        const char *cgroup;  /* the pod's cgroup: its processes are killed, and it is removed */
        const char *emptied; /* absolute; its contents are removed, the directory stays; or NULL */
        const char *const *directories; /* absolute; removed with their contents */
        size_t n_directories;
        const char *synced; /* absolute; removed last, even if a child that syncs its files still
                               creates names in it (common/fsync-queue.h); or NULL */
} SandboxCleanup;

/* Kills and removes everything that may be left of a pod, in a child process; may be repeated at
 * any time. */
int sandbox_cleanup(const SandboxConfig *config, const SandboxCleanup *cleanup, child_done_t done,
                    void *userdata, Child **ret, Error *reterr);

/* The cgroup below which all shims are. Borrowed; NULL: they are in the agent's own cgroup. */
const char *sandbox_group_of_shims(const SandboxConfig *config);
