/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The checkpoint of terminated containers: how those ended that do not run again (restart policy
 * Never or OnFailure, or a pod that has failed as a whole), in <state-dir>/pods/<uid>/ends. The
 * shim has that too, but no shim survives a reboot, or the end of a failed pod: a container that
 * succeeded before must not run again, and the exit code of one that failed must not change. */

#include "agent/pods/machine/container-machine.h"
#include "agent/pods/pod/pod-instance.h"

#define TERMINATED_FILE_NAME "ends" /* in earlier agents' directories too */

enum {
        TERMINATED_REASON_SIZE = 64,
};

/* A container that has terminated. */
typedef struct TerminatedContainer {
        const char *name;
        unsigned attempt;
        ContainerExit exit;
        char reason[TERMINATED_REASON_SIZE];
        const char *checkpoint; /* of the attempt; NULL: an earlier agent did not write it */
        bool has_previous;      /* how the attempt before it ended is known: */
        ContainerExit previous;
        char previous_reason[TERMINATED_REASON_SIZE];
        char *text; /* which contains the strings; NULL: they are borrowed */
} TerminatedContainer;

void terminated_container_done(TerminatedContainer *container);

/* Zeroed at first. */
typedef struct TerminatedContainers {
        char *text; /* as it is on disk; NULL: there is none */
        int error;  /* of the last write, as it was logged */
} TerminatedContainers;

/* Some container of the pod may terminate permanently. */
bool pod_may_complete(const PodSpec *spec);

/* Writes the file if it changes. A failure is logged; the next call tries again. */
void terminated_containers_store(TerminatedContainers *terminated, const PodInstance *pod,
                                 const TerminatedContainer *containers, size_t n);

/* Reads it; a damaged one is logged. 0, or -errno if it cannot be read. */
int terminated_containers_load(TerminatedContainers *terminated, const PodInstance *pod);

/* The recorded attempt of the container, or -1. */
int terminated_containers_last_attempt(const TerminatedContainers *terminated, const char *name);

/* Looks for one attempt; the caller ends *ret. */
bool terminated_containers_find(const TerminatedContainers *terminated, const char *name,
                                unsigned attempt, TerminatedContainer *ret);
void terminated_containers_done(TerminatedContainers *terminated);
