/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The images of one container. Pulls the images that the container mounts as volumes one after
 * another, then its own, with the pod's imagePullSecrets, reports failures with the kubelet's
 * reasons (ErrImagePull, ImagePullBackOff), and holds the images for as long as the attempt may
 * run. */

#include "agent/pods/container/container-instance.h"

typedef struct ContainerImages {
        const ContainerInstance *container;
        Image *image; /* for the next attempt */
        ImageRequest *request;
        unsigned n_failures;   /* consecutive failures */
        bool is_pulling;       /* the image is being pulled from a registry */
        uint64_t asked_at;     /* boot time */
        char *secret_problems; /* message about unusable imagePullSecrets, or NULL */
        Image **volumes;       /* indexed by the pod's volumes; NULL for those that it does not
                                * mount */
        size_t n_volumes;
        size_t pending_volume; /* index of the volume whose image is being requested */
        bool awaits_secrets;   /* waits for an imagePullSecret to be decrypted */
} ContainerImages;

/* The result is passed to the container's machine: container_machine_on_image_ready() or
 * …_failed(). */
void container_images_request(ContainerImages *images);

/* To be called when objects have changed: repeats the request for an image that waits for a
 * Secret. */
void container_images_on_objects_changed(ContainerImages *images);
void container_images_cancel(ContainerImages *images);

/* The message about the pull of a waiting container, which the caller frees; NULL: no pull is in
 * progress. */
char *container_images_progress(const ContainerImages *images);

void container_images_done(ContainerImages *images);
