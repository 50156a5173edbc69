/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The settings that mainstay-api requests on the local socket: it does not have the key of the node
 * and reads no files. */

#include "agent/model/config.h"
#include "agent/node/lone-node.h"
#include "agent/node/self-signed.h"

typedef struct NodeApiSettingsSpec { /* all members are borrowed */
        const Config *config;
        const char *node_name;
        const char *manifest_dir, *config_file;
        uint64_t created;        /* creation time of the node; realtime, 0: not known */
        const char *issued_pair; /* the certificate that the API server has issued, and its key, in
                                    PEM; it has precedence; NULL: none */
        LoneNode *lone;          /* NULL: the node has joined an API server */
        SelfSigned *self_signed; /* certificate that is used if there is no other one; or NULL */
} NodeApiSettingsSpec;

/* JSON that the caller frees. The second result is only for the signer: the serving certificate,
 * its key and the authorities of clients; free it with secret_free(). 0, or -errno with a
 * message. */
int node_api_settings_to_json(const NodeApiSettingsSpec *spec, char **ret_json, char **ret_material,
                              Error *reterr);

/* The permissions of clients, with the kubelet's defaults: authentication and authorization of the
 * configuration. */
typedef struct NodeAccessSettings {
        bool has_anonymous, has_token_reviews, has_access_reviews;
        uint64_t token_usec, allowed_usec, denied_usec;
} NodeAccessSettings;

/* authentication and authorization of the configuration, with the kubelet's defaults. Pure. */
NodeAccessSettings node_access_settings(const Config *config);
