/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The part of the agent's configuration that this program receives, as JSON. It contains no keys,
 * and the certificate comes from the signer. */

#include "common/error.h"

#include <stdint.h>

typedef struct ApiSettings {
        char *node_name;
        /* GnuTLS priority strings: for all connections; and for TLS 1.2 connections, by the
         * certificate's key (NULL: the same; "": none) */
        char *tls_priorities, *tls12_ecdsa_priorities, *tls12_rsa_priorities;
        char *version; /* the Kubernetes version, such as "v1.35.0+mainstay.1.0" */
        char *manifest_directory, *config_file;
        char *node_created;   /* creation time of the node, RFC 3339; NULL: unknown */
        char *address;        /* of the kubelet's API, from the configuration; NULL: all */
        unsigned port;        /* as above; 0: not known */
        bool is_alone;        /* the node has not joined an API server: mainstay-api serves
                               * kubectl */
        bool has_debugging;   /* enableDebuggingHandlers: exec, attach, run, logs, port-forward */
        bool has_system_logs; /* enableSystemLogHandler: /logs/ */
        bool has_log_queries; /* enableSystemLogQuery: also logs of services */
        uint64_t token_cache_usec; /* cacheTTL: how long the review of a token is cached */
        uint64_t allowed_usec;     /* how long a granted access is cached */
        uint64_t stream_idle_usec; /* streamingConnectionIdleTimeout: idle time after which a
                                      session or forwarded port ends */
} ApiSettings;

/* 0, -EBADMSG with a message, -ENOMEM. */
int api_settings_parse(const char *json, ApiSettings *ret, Error *reterr);
void api_settings_done(ApiSettings *settings);
