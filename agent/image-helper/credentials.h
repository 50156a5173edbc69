/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What to show a registry: from the documents that "docker login" writes (~/.docker/config.json),
 * from Secrets of the types kubernetes.io/dockerconfigjson and kubernetes.io/dockercfg, and from
 * the credential helpers that such a document names. */

#include "common/error.h"

#include <jansson.h>

typedef struct Credential {
        char *user, *password;
        char *identity_token; /* to be exchanged for a token; NULL: none */
        char *registry_token; /* to be shown as it is; NULL: none */
} Credential;

typedef struct Credentials {
        Credential *items; /* the most fitting first */
        size_t n;
} Credentials;

/* Adds what a document has for "<registry>/<repository>", the longest match first. A document may
 * be a whole config.json or the inside of its "auths". Helpers are run where 'with_helpers'.
 * Entries that cannot be read are skipped. 0 or -ENOMEM. */
int credentials_add(Credentials *credentials, const json_t *document, const char *registry,
                    const char *repository, bool with_helpers);

/* Whether a key of such a document, "https://index.docker.io/v1/", "*.example.com",
 * "example.com:5000/team", is meant for the image. 0: no; more is the closer match. */
unsigned credentials_match(const char *key, const char *registry, const char *repository);

/* Wipes and frees. */
void credentials_done(Credentials *credentials);
void credential_done(Credential *credential);

/* credential-helper.c: asks docker-credential-<name>. 0; -ENOENT where it has none for that server;
 * or -errno with the sentence. */
int credential_ask_helper(const char *name, const char *server, Credential *ret, Error *reterr);
