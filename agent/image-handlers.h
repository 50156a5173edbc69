/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What agent.c plugs between the image store, the pods and the socket. */

#include "agent/image/image-store.h"

/* image_store_new() with what the configuration says, for the agent 'userdata'. */
int open_image_store(void *userdata, sd_event *event, const char *helper_path,
                     const char *state_dir, const Config *config, image_store_changed_t on_changed,
                     ImageStore **ret, Error *reterr);

/* HttpServerHandlers, for the same. */
char *agent_list_images(void *userdata);
int agent_pull_image(void *userdata, const char *image, Error *reterr);
int agent_remove_image(void *userdata, const char *image, Error *reterr);
int agent_prune_images(void *userdata, const char *image, Error *reterr);
