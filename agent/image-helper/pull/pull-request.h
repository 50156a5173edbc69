/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Settings of "mainstay-image pull": one JSON document on standard input, because parts of it are
 * secret and must not appear on a command line or a disk. An empty input means no settings. */

#include "common/error.h"

#include <jansson.h>

typedef struct PullSettings {
        json_t *document;           /* owns the strings below */
        const char *auth_file;      /* path of a config.json, or NULL */
        const json_t *pull_secrets; /* list of {"document": "<value of a Secret>", "hasAuths":
                                       <whether of the type dockerconfigjson>}: docker-configs.h; or
                                       NULL */
        const json_t *auths; /* alternatively a list of documents, as sent by earlier agents; or
                              * NULL */
        const json_t *auth_hashes; /* one entry for each of these: the data that is recorded about
                                    * it */
        const json_t *insecure;    /* list of "host[:port]"; or NULL */
        const json_t *mirrors;     /* list of mirror URLs for this registry, which are tried first;
                                    * or NULL */
        const char *proxy_http;    /* NULL: none, even if the environment has one */
        const char *proxy_https;
        const char *proxy_none_for;
        const json_t *certificate_directories; /* list of paths; NULL: the two standard ones */
        unsigned stall_seconds; /* time without data after which a connection is closed; 0: the
                                   default */
        bool progress;          /* print progress lines on standard output */
        const json_t *signature_policy; /* the requirements for the image's signatures, see
                                         * signature-check.h; NULL: none */
        const json_t *origin;           /* the archive that contains the image; NULL: a registry */
        const json_t *access; /* the images in the store that the pull may use, from the agent's
                                 image_access_to_json(); NULL: those that were not pulled */
        bool is_offline;      /* do not query registries for signatures */
} PullSettings;

/* Reads the settings to the end of the stream; if it is empty, all are zero. 0, or -errno with a
 * message. The caller releases 'ret' with pull_settings_done(). */
int pull_settings_read(int fd, PullSettings *ret, Error *reterr);
void pull_settings_done(PullSettings *settings);
