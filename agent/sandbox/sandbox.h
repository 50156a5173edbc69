/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The agent's end of the shim: start one for a pod, find it again after a restart, speak to it.
 *
 * A Sandbox is the agent's view of one mainstay-shim. All calls return at once; what comes of them
 * arrives as events, from the loop. Freeing a Sandbox closes the connection only: the shim and its
 * containers go on. */

#include "common/child.h"
#include "common/error.h"

#include <stdint.h>
#include <sys/types.h>
#include <systemd/sd-event.h>

/* What all sandboxes of an agent share. Strings are borrowed and outlive the sandboxes. */
typedef struct SandboxConfig {
        sd_event *event;
        const char *shim_path;    /* the mainstay-shim program */
        const char *runtime_path; /* runc or crun: a path, or a name to look for in PATH */
        const char *run_dir;      /* <run-dir>; a pod's directory is <run-dir>/pods/<uid> */
        const char *shim_cgroup; /* below it shims live, each in a group of its own, named by UID */
        struct SystemdClient *systemd; /* where systemd starts the shims; NULL: we do */
        unsigned runtime_timeout_sec;  /* of one call of the runtime; 0: two minutes */
} SandboxConfig;

typedef enum SandboxEventType {
        /* The shim has told all that it knows, after a connection: .ready. Again when the
         * connection broke and was made anew by itself. */
        SANDBOX_SYNCED,
        SANDBOX_READY,        /* sandbox_setup() is done */
        SANDBOX_SETUP_FAILED, /* .message; may be asked for again */
        SANDBOX_STARTING, /* replayed only: the attempt is being started, what comes of it follows
                           */
        SANDBOX_STARTED,  /* a container runs: .pid, .started_at */
        SANDBOX_START_FAILED, /* .message, .runtime_failed; nothing of the attempt is left running
                               */
        SANDBOX_EXITED,       /* .exit_code, .signal, .oom_killed, .started_at, .finished_at */
        SANDBOX_DELETED,      /* nothing of the attempt is left but its log */
        SANDBOX_EXEC_DONE,    /* .id of sandbox_run_program(), .exit_code, .signal, .timed_out,
                               * .output,    .error;    or .message where the program could not be started
                               */
        SANDBOX_LOST,         /* the shim is gone, by teardown or by death */
} SandboxEventType;

/* One event. Strings are valid during the callback only. While the shim tells what it knows, before
 * SANDBOX_SYNCED, each attempt it holds comes as STARTED, EXITED or START_FAILED, oldest first; one
 * that is being started comes as its event later. */
typedef struct SandboxEvent {
        SandboxEventType type;
        const char *id;   /* container ID, NULL for events of the sandbox */
        const char *name; /* container name */
        const char *note; /* what sandbox_run_container() gave along, "" if nothing */
        const char *message;
        const char *output; /* what the program wrote, cut at 48 KiB */
        const char *error;  /* the last line that it wrote to standard error */
        unsigned attempt;
        pid_t pid;
        int exit_code; /* 0..255; 128 + signal where a signal ended it, as container runtimes report
                          it */
        int signal;    /* 0 when it exited by itself */
        bool oom_killed;
        bool runtime_failed; /* the OCI runtime refused or is missing; else a mount or a file before
                                it */
        bool replayed;       /* told on connection, not as it happened */
        bool ready;
        bool timed_out;
        bool deleted;         /* replayed only: the attempt's remains are already deleted */
        uint64_t started_at;  /* realtime, microseconds */
        uint64_t finished_at; /* realtime, microseconds */
} SandboxEvent;

typedef struct Sandbox Sandbox;
typedef void (*sandbox_event_t)(Sandbox *sandbox, const SandboxEvent *event, void *userdata);

typedef struct SandboxSetupOptions {
        const char
                *fstab; /* path of the pod's fstab; its mounts are made in the shim's namespace */
        const char *hostname;  /* for the pod's UTS namespace; NULL: as it is */
        uint64_t log_max_size; /* bytes; a container's log is rotated before it grows beyond */
        unsigned log_max_files;
} SandboxSetupOptions;

typedef struct SandboxContainerConfig {
        const char *id; /* also the runtime's container ID; 64 hex digits */
        const char *name;
        unsigned attempt;
        const char *bundle;          /* directory with config.json and fstab */
        const char *log;             /* path of the log file; its directory exists */
        char *const *journal_fields; /* "NAME=value": what it writes goes to the journal as well,
                                      * with these; NULL: it does not */
        const char *
                events_file; /* cgroup file with an "oom_kill" line, read when the container ends */
        const char *note;  /* at most 1 KiB for the agent's own use; comes back with every event */
        bool has_input;    /* its standard input is open, and silent */
        bool has_terminal; /* as config.json says */
} SandboxContainerConfig;

/* Runs "mainstay-shim prepare": makes <run-dir> a private mount. Blocks; for the time before the
 * loop. */
int sandbox_prepare(const SandboxConfig *config, Error *reterr);

/* A sandbox for pod 'uid', which is validated already. Connects to nobody yet. */
int sandbox_new(const SandboxConfig *config, const char *uid, sandbox_event_t on_event,
                void *userdata, Sandbox **ret);

/* Connects to the shim of an earlier agent. 1: connected, its story follows as events up to
 * SANDBOX_SYNCED; 0: there is none; -errno. */
int sandbox_connect(Sandbox *sandbox, Error *reterr);

typedef struct SandboxStartOptions {
        const char *description;     /* for people: whose it is; NULL: only the UID is known */
        bool host_network, host_ipc; /* it stays in the host's namespaces of that kind (and UTS with
                                      * the network, as the kubelet has it) */
        bool has_systemd_cgroup;     /* the containers' groups are systemd's to make */
} SandboxStartOptions;
/* Before sandbox_start(): the OCI runtime in the place of the configuration's. Borrowed. */
void sandbox_set_runtime(Sandbox *sandbox, const char *runtime_path);

/* Starts a shim and connects to it; SANDBOX_SYNCED follows. <run-dir>/pods/<uid> exists. A shim
 * that lives already is -EEXIST, so that no pod can have two. Where systemd is asked to start it
 * and does not, SANDBOX_LOST follows. */
int sandbox_start(Sandbox *sandbox, const SandboxStartOptions *start, Error *reterr);

/* Asks for the pod's mounts. SANDBOX_READY or SANDBOX_SETUP_FAILED follows. */
int sandbox_setup(Sandbox *sandbox, const SandboxSetupOptions *setup);

/* Runs a container. SANDBOX_STARTED (then, one day, SANDBOX_EXITED) or SANDBOX_START_FAILED
 * follows. */
int sandbox_run_container(Sandbox *sandbox, const SandboxContainerConfig *run);

/* Sends 'signal' to the container's first process now and SIGKILL after 'grace_usec', which goes on
 * when the agent is gone. Called again it can only shorten the time. SANDBOX_EXITED follows.
 * Unknown IDs are ignored. */
int sandbox_stop_container(Sandbox *sandbox, const char *id, int signal, uint64_t grace_usec);

/* The same, but the signal waits for 'delay_usec' or another sandbox_stop_container(), whichever is
 * first: for what is done to the container before. Both times are from now on. Like the next two
 * -ENOTSUP where the shim is of an agent before us that did not know of it. */
int sandbox_stop_container_delayed(Sandbox *sandbox, const char *id, int signal,
                                   uint64_t delay_usec, uint64_t grace_usec);

/* From now on 'note' is what comes back with the events of that container. Unknown IDs are ignored.
 */
int sandbox_set_container_note(Sandbox *sandbox, const char *id, const char *note);

/* Removes an ended attempt: runtime state, mounts, and the directories named. SANDBOX_DELETED
 * follows. */
int sandbox_remove_container(Sandbox *sandbox, const char *id, const char *const *directories,
                             size_t n_directories);

typedef struct SandboxProgram {
        const char *id;           /* comes back with the event; at most 128 bytes */
        char *const *argv;        /* argv[0] is a path */
        char *const *environment; /* all of it */
        const char *input;        /* what it reads from its standard input; NULL: nothing */
        bool in_host;             /* in the node's network and UTS namespaces, else in the pod's */
        uint64_t timeout_usec;    /* then it is killed; 0: never */
        const char *interface;    /* NULL; or it is run only where the network namespace that its
                                   * CNI_NETNS names, "" for none, does not have this interface,
                                   * and in place of that finds a stand-in which has it ... */
        const char *address;      /* ... with this address, of either family */
} SandboxProgram;

/* Runs a program in the shim's mount namespace. SANDBOX_EXEC_DONE follows, unless the connection or
 * the shim ends before. Those of 'in_host' run one after another, in the order of the requests, so
 * that no two of a pod's network plugins ever run at the same time. -EMSGSIZE for more than a
 * packet holds (64 KiB). */
int sandbox_run_program(Sandbox *sandbox, const SandboxProgram *exec);

typedef struct SandboxSession {
        const char *container; /* ID of one that runs */
        char *const *argv;     /* argv[0] is looked for in the container's PATH */
        bool has_input, has_output, has_error, has_terminal;
} SandboxSession;

/* Runs a command in a container for somebody at the other end of a socket, which speaks WebSocket
 * with the channels of common/channels.h from here on. The shim gets a copy of the descriptor and
 * tells the client, not us, what comes of it. 0; -EBUSY when the shim does not listen just now;
 * another -errno. */
int sandbox_open_session(Sandbox *sandbox, const SandboxSession *session, int socket_fd);

typedef struct SandboxContainerExec {
        const char *id;        /* comes back with the event; at most 128 bytes */
        const char *container; /* ID of one that runs */
        char *const *argv;     /* argv[0] is looked for in the container's PATH */
        uint64_t timeout_usec; /* then it is killed; 0: never */
} SandboxContainerExec;

/* Runs a program in a container, as its user and with its environment. SANDBOX_EXEC_DONE follows as
 * above, with both streams in .output, cut at 10 KiB; .message says why it could not be run. */
int sandbox_exec_in_container(Sandbox *sandbox, const SandboxContainerExec *exec);

/* Ends the shim: kills what still runs, drops its mounts. SANDBOX_LOST follows. */
int sandbox_teardown(Sandbox *sandbox);

/* The shim's pid while connected and known, else 0. */
pid_t sandbox_pid(const Sandbox *sandbox);
bool sandbox_is_connected(const Sandbox *sandbox);

/* A descriptor of the network namespace of a shim that is connected, or -ENOENT where it is the
 * node's; another -errno where nobody knows. */
int sandbox_open_network_namespace(const Sandbox *sandbox);

Sandbox *sandbox_free(Sandbox *sandbox);
DEFINE_CLEANUP(Sandbox *, sandbox_free)

/* What "mainstay-shim cleanup" removes once the shim of a pod is gone. */
typedef struct SandboxCleanup {
        const char *uid;    /* whose shim is ended first, should it live; or NULL */
        const char *cgroup; /* the pod's group: its processes are killed, then it is removed */
        const char *const *directories; /* absolute; removed with all that is in them */
        size_t n_directories;
} SandboxCleanup;

/* Ends and removes whatever a pod may have left, in a child; may be asked for again at any time. */
int sandbox_cleanup(const SandboxConfig *config, const SandboxCleanup *cleanup, child_done_t done,
                    void *userdata, Child **ret, Error *reterr);
