/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Settings of "mainstay-image pull": one JSON document on standard input, because some of it is
 * secret and must be neither on a command line nor on a disk. An empty input means no settings. */

#include "common/error.h"

#include <jansson.h>

typedef struct PullSettings {
        json_t *document;           /* owns the strings below */
        const char *auth_file;      /* path of a config.json, or NULL */
        const json_t *pull_secrets; /* list of {"document": "<value of a Secret>", "hasAuths": <of
                                       the type dockerconfigjson>}: docker-configs.h; or NULL */
        const json_t *auths; /* list of documents instead, as earlier agents give them; or NULL */
        const json_t *auth_hashes; /* one for each of these: the recorded data about them */
        const json_t *insecure;    /* list of "host[:port]"; or NULL */
        const json_t *mirrors;     /* list of URLs for this registry, to be tried first; or NULL */
        const char *proxy_http;    /* NULL: none, regardless of the environment */
        const char *proxy_https;
        const char *proxy_none_for;
        const json_t *certificate_directories; /* list of paths; NULL: the usual two */
        unsigned stall_seconds; /* without a byte, after which a connection is closed; 0: the
                                   default */
        bool progress;          /* lines of it on standard output */
        const json_t *signature_policy; /* the requirements for the image's signatures, see
                                         * signature-check.h; NULL: none */
        const json_t *origin;           /* the archive that the image is from; NULL: a registry */
        const json_t *access; /* which images of the store the pull may use, as the agent's
                                 image_access_to_json() has it; NULL: those that were not pulled */
        bool is_offline;      /* no registry is queried for signatures */
} PullSettings;

/* Reads the settings to the end of the stream; an empty one gives zeros. 0, or -errno with a
 * message. The caller ends 'ret' with pull_settings_done(). */
int pull_settings_read(int fd, PullSettings *ret, Error *reterr);
void pull_settings_done(PullSettings *settings);
