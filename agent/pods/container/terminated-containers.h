/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The checkpoint of terminated containers: how containers that do not run again ended (restart
 * policy Never or OnFailure, or a pod that has failed as a whole), in <state-dir>/pods/<uid>/ends.
 * The shim also has this information, but it does not survive a reboot or the end of a failed pod:
 * a container that has succeeded must not run again, and the exit code of one that has failed must
 * not change. */

#include "agent/pods/machine/container-machine.h"
#include "agent/pods/pod/pod-instance.h"

#define TERMINATED_FILE_NAME "ends" /* also used in the directories of earlier agents */

enum {
        TERMINATED_REASON_SIZE = 64,
};

/* A container that has terminated. */
typedef struct TerminatedContainer {
        const char *name;
        unsigned attempt;
        ContainerExit exit;
        char reason[TERMINATED_REASON_SIZE];
        const char *checkpoint; /* of the attempt; NULL: written by an earlier agent */
        bool has_previous;      /* how the previous attempt ended is known: */
        ContainerExit previous;
        char previous_reason[TERMINATED_REASON_SIZE];
        char *text; /* contains the strings; NULL: they are borrowed */
} TerminatedContainer;

void terminated_container_done(TerminatedContainer *container);

/* Initially { 0 }. */
typedef struct TerminatedContainers {
        char *text; /* as on disk; NULL: no file */
        int error;  /* logged error of the last write */
} TerminatedContainers;

/* Whether any container of the pod can terminate permanently. */
bool pod_may_complete(const PodSpec *spec);

/* Writes the file if its content has changed. A failure is logged, and the next call tries
 * again. */
void terminated_containers_store(TerminatedContainers *terminated, const PodInstance *pod,
                                 const TerminatedContainer *containers, size_t n);

/* Reads the file; a damaged one is logged. 0, or -errno if it cannot be read. */
int terminated_containers_load(TerminatedContainers *terminated, const PodInstance *pod);

/* The recorded attempt of the container, or -1. */
int terminated_containers_last_attempt(const TerminatedContainers *terminated, const char *name);

/* Finds the record of one attempt; the caller releases *ret. */
bool terminated_containers_find(const TerminatedContainers *terminated, const char *name,
                                unsigned attempt, TerminatedContainer *ret);
void terminated_containers_done(TerminatedContainers *terminated);
