/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What agent.c plugs between the image store, the pods and the socket. */

#include "agent/image/image.h"

/* image_store_new() with what the configuration says, for the agent 'userdata'. */
int images_open(void *userdata, sd_event *event, const char *helper_path, const char *state_dir,
                const Config *config, image_store_changed_t on_changed, ImageStore **ret,
                Error *reterr);

/* ServeHandlers, for the same. */
char *images_serve_list(void *userdata);
int images_serve_pull(void *userdata, const char *image, Error *reterr);
int images_serve_remove(void *userdata, const char *image, Error *reterr);
int images_serve_prune(void *userdata, const char *image, Error *reterr);
