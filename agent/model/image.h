/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* An image that is ready to use: image/ provides it, and bundle/ creates a container's root
 * filesystem and configuration from it. */

#include "common/macros.h"

#include <sys/types.h>

/* The parts of an image that a container needs. Owned by the image store; image_ref() keeps it
 * alive. */
typedef struct Image {
        unsigned n_refs;
        char *reference; /* normalized: "docker.io/library/busybox:latest" */
        char *digest; /* of the manifest (or the configuration, for docker archives): "sha256:…" */
        char **layers; /* directories, topmost first, in the order of overlayfs */
        char **entrypoint;
        char **command;
        char **env;
        char **volumes;     /* absolute paths: each container gets its own directory for each of
                             * them */
        bool lacks_volumes; /* the volumes are unknown: the record was written by an earlier
                             * version */
        char *working_dir;  /* NULL: "/" */
        char *stop_signal;  /* NULL: SIGTERM */
        char *user;         /* as in the image; NULL: root */
        char *user_error;   /* why the user cannot be resolved; NULL: it was resolved */
        uid_t uid;          /* the user, resolved with the image's /etc/passwd and /etc/group */
        gid_t gid;
        gid_t *groups;
        size_t n_groups;
} Image;

Image *image_ref(Image *image);
Image *image_unref(Image *image);
DEFINE_CLEANUP(Image *, image_unref)
