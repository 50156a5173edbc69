/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The part of the agent's configuration that this program gets, as JSON. Keys are not among it, and
 * the certificate comes from the signer. */

#include "common/error.h"

#include <stdint.h>

typedef struct ApiSettings {
        char *node_name;
        /* GnuTLS's priority strings: of all connections; of those of TLS 1.2 by the certificate's
         * key, NULL: the same, "": none */
        char *tls_priorities, *tls12_ecdsa_priorities, *tls12_rsa_priorities;
        char *version; /* of Kubernetes, such as "v1.35.0+mainstay.1.0" */
        char *manifest_directory, *config_file;
        char *node_created;   /* since when the node exists, RFC 3339; NULL: not known */
        char *address;        /* of the kubelet's API, by the configuration; NULL: all */
        unsigned port;        /* as above; 0: not known */
        bool is_alone;        /* the node has joined no API server: it answers kubectl */
        bool has_debugging;   /* enableDebuggingHandlers: exec, attach, run, logs, port-forward */
        bool has_system_logs; /* enableSystemLogHandler: /logs/ */
        bool has_log_queries; /* enableSystemLogQuery: and those of services */
        uint64_t token_cache_usec; /* cacheTTL: for how long a result of a token is kept */
        uint64_t allowed_usec;     /* of an access that was granted */
        uint64_t stream_idle_usec; /* streamingConnectionIdleTimeout: before a session or forwarded
                                      port without a byte ends */
} ApiSettings;

/* 0, -EBADMSG with a message, -ENOMEM. */
int api_settings_parse(const char *json, ApiSettings *ret, Error *reterr);
void api_settings_done(ApiSettings *settings);
