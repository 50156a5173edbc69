/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The data about a container's current or last attempt for its status: image, stop signal, user. */

#include "agent/image/image-set.h"
#include "agent/pods/container/attempt-checkpoint.h"
#include "agent/pods/container/container-instance.h"
#include "agent/pods/container/terminated-containers.h"

typedef struct ContainerAttempt {
        bool has_run; /* in this sandbox, since the last restart of all containers */
        char *image_id;
        char *image_name;    /* from its spec; NULL: an earlier agent started it */
        int stop_signal;     /* 0: the default */
        unsigned generation; /* number of earlier restarts of all containers */
        ContainerUser user;  /* user of attempt: */
        unsigned user_attempt;
} ContainerAttempt;

/* To be called when an attempt starts. 0 or -ENOMEM. */
int container_attempt_start(ContainerAttempt *attempt, const Container *spec, const Image *image,
                            unsigned generation);

/* To be called when a restarted agent has found the attempt. Takes the checkpoint's image ID and
 * user. */
void container_attempt_adopt_take(ContainerAttempt *attempt, AttemptCheckpoint *checkpoint,
                                  unsigned number);

/* Reads the user of the attempt from its bundle, which must exist. */
void container_attempt_load_user(ContainerAttempt *attempt, const ContainerInstance *container,
                                 unsigned number);

/* The user of an attempt, empty if unknown, and its stop signal. 0 or -ENOMEM.
 */
int container_attempt_fill_status(ContainerAttempt *attempt, const ContainerInstance *container,
                                  unsigned number, ContainerStatus *ret);

/* The name and the digest of its image, for the status. 0 or -ENOMEM. */
int container_attempt_fill_image(const ContainerAttempt *attempt,
                                 const ContainerInstance *container, ContainerStatus *ret);

/* Adds the images whose layers are mounted for the container's process, if any. They may differ
 * from those in the spec, because a name may have come to refer to another image. */
void container_attempt_list_images(const ContainerAttempt *attempt,
                                   const ContainerInstance *container, ImageSet *ret);

/* For a container that no shim has: determines from its logs and the checkpoint of terminated
 * containers how it ended. */
void container_attempt_recover(ContainerAttempt *attempt, const ContainerInstance *container,
                               const TerminatedContainers *terminated);

/* Returns how a container ended, with the checkpoint of its attempt; messages are borrowed. False:
 * it has not ended. */
bool container_describe_end(const ContainerInstance *container, const char *checkpoint,
                            TerminatedContainer *ret);

void container_attempt_done(ContainerAttempt *attempt);
