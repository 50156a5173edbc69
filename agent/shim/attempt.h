/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One life of a container: what the shim knows of it, from the request to run it until it is
 * forgotten. Pure: a list of records. */

#include "agent/sandbox/protocol.h"
#include "agent/shim/container-output.h"

typedef enum AttemptState {
        ATTEMPT_STARTING, /* mounts and the runtime call are under way */
        ATTEMPT_RUNNING,  /* 'pid' is our child */
        ATTEMPT_EXITED,
        ATTEMPT_FAILED, /* it never ran; all of it is undone */
} AttemptState;

typedef struct Attempt Attempt;

struct Attempt {
        Attempt *next; /* in the order of their requests */
        AttemptState state;
        char *id;
        char *name;
        char *note;
        char *message; /* why it failed */
        unsigned number;
        pid_t pid;
        bool shares_pids; /* it has no PID namespace to itself: its first process is not all */
        bool runtime_failed;
        bool oom_killed;
        bool deleting;
        bool deleted;
        int exit_code;
        int signal;
        uint64_t started_at;
        uint64_t finished_at;
        int stop_signal;    /* 0: nobody has asked it to stop */
        uint64_t signal_at; /* boottime: stop_signal is due then; USEC_INFINITY: it was sent */
        uint64_t kill_at;   /* boottime; USEC_INFINITY: no SIGKILL is due */
        /* Gone once it is deleted: */
        char *bundle;
        char *events_file;
        uint64_t oom_kills_before; /* in its pod, when it was started */
        ContainerOutput *output;
};

typedef struct AttemptList {
        Attempt *first;
} AttemptList;

enum {
        ATTEMPTS_MAX = 256,     /* that have left something: not deleted, nor failed */
        ATTEMPTS_REMEMBERED = 2 /* others, for each container name */
};

/* Appends an attempt in ATTEMPT_STARTING, and forgets those of the same container that have
 * left nothing and are too old to matter. 0; -EEXIST when the ID is known (and has not merely
 * failed to start, in which case the record is replaced); -ENOBUFS when there are too many; -EINVAL
 * for an ID that is none; -ENOMEM. */
int attempt_new(AttemptList *list, const ShimRequest *request, Attempt **ret);

Attempt *attempt_find(const AttemptList *list, const char *id);

/* The running one whose first process this is, or NULL. */
Attempt *attempt_find_pid(const AttemptList *list, pid_t pid);

/* Another note, at most SHIM_PROTOCOL_NOTE_MAX bytes of it. */
void attempt_set_checkpoint(Attempt *attempt, const char *note);

/* Marks it deleted and lets go of what only a container needs. */
void attempt_set_deleted(Attempt *attempt);

/* What an agent is told about it. Strings are borrowed. */
ShimEvent attempt_event(const Attempt *attempt, ShimEventType type);

/* Its event of the last change of state, for an agent that has just come. */
ShimEvent attempt_last_event(const Attempt *attempt);

void attempts_free(AttemptList *list);
