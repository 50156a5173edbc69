/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The endpoints of an image: its registry, preceded by the mirrors. Everything that needs
 * privileges (secret files, client keys, credential helpers) is done here, before they are
 * dropped. */

#include "agent/image-helper/pull/digest.h"
#include "agent/image-helper/pull/pull-request.h"
#include "agent/image-helper/registry/registry-credentials.h"
#include "common/image-reference.h"

/* Parses a reference from the agent: normalised, with a tag or a digest. */
int pull_reference_parse(const char *text, ImageReference *ret, Error *reterr);

typedef struct Endpoint {
        char *origin;       /* "https://registry-1.docker.io" */
        char *host;         /* "registry-1.docker.io", with a port if it has one */
        char *repository;   /* name of the repository at this endpoint */
        char *display;      /* name in messages */
        bool may_be_plain;  /* http is permitted, also for redirects */
        bool is_unverified; /* its certificate is not verified */
        bool is_second_try; /* the previous endpoint without TLS, used only if connecting to that
                             * one failed */
        bool is_loopback;   /* plain HTTP is permitted, but only to this machine and without a proxy
                             */
        Credentials credentials;
        int authorities_fd; /* memory files; negative: the system's, or none */
        int certificate_fd;
        int key_fd;
} Endpoint;

typedef struct Endpoints {
        Endpoint *items; /* in the order of attempts */
        size_t n;
        const char *proxy_http, *proxy_https, *proxy_none_for; /* borrowed from the settings */
        const json_t *pull_secrets; /* credentials that a fetcher adds; also borrowed */
        unsigned stall_seconds;
} Endpoints;

/* The endpoints of an image, in the order of attempts. Borrows from the settings. 0, or -errno with
 * a message; the caller releases 'ret' with endpoints_done(). */
int endpoints_find(const ImageReference *reference, const PullSettings *settings, Endpoints *ret,
                   Error *reterr);
void endpoints_done(Endpoints *endpoints);

/* certificates.c: fills in the memory files of an endpoint from <directory>/<host>/: *.crt are
 * authorities in addition to the system's, x.cert and x.key are the client certificate. 0 or -errno
 * with a message. */
int endpoint_load_certificates(const json_t *directories, Endpoint *endpoint, Error *reterr);
