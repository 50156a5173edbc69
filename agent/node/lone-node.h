/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A node that has joined no API server: its own certificate authority, the certificate that
 * mainstay-api serves with, and kubeconfigs. The authority is created when it is first needed, and
 * stored in <state>/pki. */

#include "agent/model/config.h"
#include "common/error.h"

#include <jansson.h>
#include <systemd/sd-event.h>

typedef struct LoneNode LoneNode;

typedef struct LoneNodeSpec { /* all members are borrowed */
        sd_event *event;
        const char *state_dir;
        const char *node_name;
} LoneNodeSpec;

/* 0 or -ENOMEM. */
int lone_node_new(const LoneNodeSpec *spec, LoneNode **ret);
LoneNode *lone_node_free(LoneNode *lone);

/* Adds the authority of clients to the settings of mainstay-api, and the serving certificate with
 * its key unless the settings have one. 0, or -errno with a message. */
int lone_node_add_settings(LoneNode *lone, json_t *settings, Error *reterr);

/* The data of a kubeconfig, with a new client certificate: a JSON object that the caller frees. The
 * configuration determines where mainstay-api listens, and which serving certificate it may have.
 * 0, or -errno with a message. */
int lone_node_make_kubeconfig(LoneNode *lone, const Config *config, char **ret_json, Error *reterr);
