/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* An image as the rooms hand it on: image/ has it, bundle/ makes a container of it. */

#include "common/macros.h"

#include <sys/types.h>

/* What a container needs of an image. Owned by the store; a caller keeps it by image_ref(). */
typedef struct Image {
        unsigned n_refs;
        char *reference; /* as normalised: "docker.io/library/busybox:latest" */
        char *digest; /* of the manifest (or the configuration, for docker archives): "sha256:…" */
        char **layers; /* directories, the topmost first, as overlayfs takes them */
        char **entrypoint;
        char **command;
        char **env;
        char *working_dir; /* NULL: "/" */
        char *stop_signal; /* NULL: SIGTERM */
        char *user;        /* as the image has it, NULL: root */
        uid_t uid;         /* the user, resolved in the image's own /etc/passwd and /etc/group */
        gid_t gid;
        gid_t *groups;
        size_t n_groups;
} Image;

Image *image_ref(Image *image);
Image *image_unref(Image *image);
DEFINE_CLEANUP(Image *, image_unref)
