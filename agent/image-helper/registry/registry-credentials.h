/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Registry credentials: from the files that "docker login" writes (~/.docker/config.json), from
 * Secrets of the types kubernetes.io/dockerconfigjson and kubernetes.io/dockercfg, and from the
 * credential helpers that such a file names. */

#include "common/error.h"

#include <jansson.h>

typedef struct Credential {
        char *user, *password;
        char *identity_token; /* identity token, to be exchanged for an access token; NULL: none */
        char *registry_token; /* token for the registry itself; NULL: none */
        int secret;           /* number of the Secret that contains it; -1: the node's own */
} Credential;

typedef struct Credentials {
        Credential *items; /* best match first */
        size_t n;
} Credentials;

/* Adds the credentials for "<registry>/<repository>" from a document, the longest match first. A
 * document is a whole config.json or the object in its "auths". Helpers are run if 'with_helpers'.
 * Invalid entries are skipped. 0 or -ENOMEM. */
int credentials_add(Credentials *credentials, const json_t *document, const char *registry,
                    const char *repository, bool with_helpers);

/* Appends all of 'from' that fit. 0 or -ENOMEM. */
int credentials_append_take(Credentials *credentials, Credentials *from);

/* Whether a key of such a document, "https://index.docker.io/v1/", "*.example.com",
 * "example.com:5000/team", matches the image. 0: no; a larger number is a closer match. */
unsigned credentials_match(const char *key, const char *registry, const char *repository);

/* Wipes and frees. */
void credentials_done(Credentials *credentials);
void credential_done(Credential *credential);

/* credential-helper.c: runs docker-credential-<name>. 0; -ENOENT if it has no credentials for the
 * server; or -errno with a message. */
int credential_ask_helper(const char *name, const char *server, Credential *ret, Error *reterr);
