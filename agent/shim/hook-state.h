/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The input of a hook from the OCI runtime, and the config.json of the container. */

#include "common/error.h"

#include <jansson.h>

typedef struct HookState {
        json_t *state;
        json_t *config;
        char *rootfs;
} HookState;

/* Reads the state from the descriptor. The caller releases it with hook_state_done(), even after a
 * failure. 0 or -errno with a message. */
int hook_state_load(int state_fd, HookState *ret, Error *reterr);
void hook_state_done(HookState *hook);

/* Opens a namespace of the container, such as "net". A descriptor or -errno. */
int hook_state_open_namespace(const HookState *hook, const char *name);
