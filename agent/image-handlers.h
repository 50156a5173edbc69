/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Connects the image store with pods, which use images, and with requests on the local socket. */

#include "agent/image/image-store.h"

/* image_store_new() by the configuration. 'userdata' is the Agent. */
int open_image_store(void *userdata, sd_event *event, const char *helper_path,
                     const char *state_dir, const Config *config, image_store_changed_t on_changed,
                     ImageStore **ret, Error *reterr);

/* Of HttpServerHandlers; likewise. */
char *agent_list_images(void *userdata);
int agent_pull_image(void *userdata, const char *image, Error *reterr);
int agent_remove_image(void *userdata, const char *image, Error *reterr);
int agent_prune_images(void *userdata, const char *image, Error *reterr);
