/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* An attempt: one run of a container, from the request to start it until its record is dropped.
 * Pure: a list of records, no process and no file. */

#include "agent/sandbox/protocol.h"
#include "agent/shim/container-output.h"

typedef enum AttemptState {
        ATTEMPT_STARTING, /* mounts are made and the runtime runs */
        ATTEMPT_RUNNING,  /* 'pid' is a child of the shim */
        ATTEMPT_ENDING,   /* its process has been reaped; its output is being written */
        ATTEMPT_EXITED,
        ATTEMPT_FAILED, /* it never ran; everything has been undone */
} AttemptState;

typedef struct Attempt Attempt;

struct Attempt {
        Attempt *next; /* in the order of the requests */
        AttemptState state;
        char *id;
        char *name;
        char *note;
        char *message; /* why it failed */
        unsigned number;
        pid_t pid;
        bool has_target;  /* it is in the PID namespace of another container */
        bool shares_pids; /* it has no separate PID namespace, so other processes may outlive the
                           * first one */
        bool runtime_failed;
        bool oom_killed;
        bool deleting;
        bool deleted;
        int exit_code;
        int signal;
        uint64_t started_at;
        uint64_t finished_at;
        int stop_signal;     /* 0: no stop was requested */
        uint64_t signal_at;  /* awake time when stop_signal is due; USEC_INFINITY: already sent */
        uint64_t kill_at;    /* awake time; USEC_INFINITY: no SIGKILL is due */
        uint64_t drained_by; /* while ending: awake time until which its output is awaited */
        /* Freed once the attempt has been deleted: */
        char *bundle;
        char *events_file;
        uint64_t oom_kills_before; /* count of its pod when it started */
        ContainerOutput *output;
};

typedef struct AttemptList {
        Attempt *first;
} AttemptList;

enum {
        ATTEMPTS_MAX = 256,     /* limit of attempts that have left something behind: neither
                                 * deleted nor failed */
        ATTEMPTS_REMEMBERED = 2 /* limit per container name of attempts that have left nothing
                                 * behind */
};

/* Appends an attempt in ATTEMPT_STARTING, and drops old records of the same container whose
 * attempts have left nothing behind. 0; -EEXIST if the ID is in use (the record of a failed start
 * is replaced); -ENOBUFS if there are too many; -EINVAL for an invalid ID; -ENOMEM. */
int attempt_new(AttemptList *list, const ShimRequest *request, Attempt **ret);

Attempt *attempt_find(const AttemptList *list, const char *id);

/* The attempt whose output has this number, or NULL. */
Attempt *attempt_find_output(const AttemptList *list, unsigned output_id);

/* The running attempt with this first process, or NULL. */
Attempt *attempt_find_pid(const AttemptList *list, pid_t pid);

/* Replaces the checkpoint; at most SHIM_PROTOCOL_NOTE_MAX bytes are kept. */
void attempt_set_checkpoint(Attempt *attempt, const char *note);

/* Marks the attempt as deleted, and frees the memory that only an existing container needs. */
void attempt_set_deleted(Attempt *attempt);

/* The event that reports the attempt to an agent. Strings are borrowed. */
ShimEvent attempt_event(const Attempt *attempt, ShimEventType type);

/* The event about its last change of state, for a newly connected agent. */
ShimEvent attempt_last_event(const Attempt *attempt);

void attempts_free(AttemptList *list);
