/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One container of a pod, as its parts (images, probes, hooks, logs) see it. Only pod-container.c
 * writes it. */

#include "agent/pods/machine/container-machine.h"
#include "agent/pods/pod/pod-instance.h"
#include "agent/pods/probe/handler-run.h"

enum {
        CONTAINER_ID_SIZE = 65,
};

typedef struct ContainerInstance {
        const PodInstance *pod;
        const Container *spec; /* replaced by an edit of the pod */
        ContainerMachine *machine;
} ContainerInstance;

/* Prints the ID of the container's current attempt. */
void container_instance_print_id(const ContainerInstance *container, char id[CONTAINER_ID_SIZE]);

/* Whether it is an ephemeral container, on which the pod does not depend. */
bool container_instance_is_ephemeral(const ContainerInstance *container);

/* Prints the ID of the target of an ephemeral container. 'target' is the pod's container 'name', or
 * NULL. 0; -ENOENT with a message if it is not running. */
int container_instance_print_target_id(const ContainerInstance *target, const char *name,
                                       char id[CONTAINER_ID_SIZE], Error *reterr);

/* The target of probes and hooks. 'id' holds a string of the target. */
HandlerTarget container_instance_handler_target(const ContainerInstance *container,
                                                char id[CONTAINER_ID_SIZE]);

/* See pod_worker_find_log(). */
int container_instance_find_log(const ContainerInstance *container, bool previous,
                                char **ret_directory, unsigned *ret_attempt, bool *ret_is_live,
                                Error *reterr);

/* See pod_worker_open_session(). */
int container_instance_open_session(const ContainerInstance *container,
                                    const SandboxSession *session, int socket_fd, Error *reterr);

/* See pod_worker_attach(). */
int container_instance_attach(const ContainerInstance *container, const SandboxAttach *attach,
                              int socket_fd, Error *reterr);
