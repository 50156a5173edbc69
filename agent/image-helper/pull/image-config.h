/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* An image's configuration, application/vnd.oci.image.config.v1+json, reduced to the members that
 * are needed to run the image. Labels, ports and history are ignored. */

#include "agent/image-helper/pull/digest.h"
#include "common/error.h"

#include <stdint.h>

enum {
        LAYERS_MAX = 256,
        IMAGE_VOLUMES_MAX = 256,
};

typedef struct ImageConfig {
        char *os;
        char *architecture;
        char *variant;
        char **entrypoint;
        char **command;
        char **env;        /* each "NAME=value", without duplicates */
        char *working_dir; /* absolute and plain, or NULL */
        char *user;        /* unparsed, or NULL */
        char **volumes;    /* absolute and plain; not "/", which is writable anyway */
        char *stop_signal; /* "SIGTERM", "SIGRTMIN+3", or NULL; unknown signals are ignored */
        char (*diff_ids)[DIGEST_SIZE]; /* lowest first */
        size_t n_diff_ids;
} ImageConfig;

/* Parses and checks the untrusted configuration of an image. 0; -EBADMSG, -E2BIG or -EINVAL with a
 * message if it is invalid or exceeds a limit; -ENOMEM. */
int image_config_parse(const char *text, size_t length, ImageConfig **ret, Error *reterr);
ImageConfig *image_config_free(ImageConfig *config);
DEFINE_CLEANUP(ImageConfig *, image_config_free)

/* Normalises "TERM", "SIGTERM", "15", "SIGRTMIN+3", "RTMAX-1" in upper or lower case to "SIGTERM",
 * "SIGRTMIN+3". 0, and the caller frees the result; or -EINVAL. */
int normalize_signal_name(const char *text, char **ret);
