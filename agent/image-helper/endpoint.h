/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Where an image can be had: its registry, and the mirrors that are asked before it. All that takes
 * privileges (secret files, client keys, credential helpers) is done here, before they are given
 * up. */

#include "agent/image-helper/credentials.h"
#include "agent/image-helper/digest.h"
#include "agent/image-helper/pull-settings.h"

/* A reference as the agent normalises it: "docker.io/library/busybox:latest@sha256:…". */
typedef struct PullReference {
        char *registry;
        char *repository;
        char *tag;                /* NULL: none */
        char digest[DIGEST_SIZE]; /* "": none */
} PullReference;

int pull_reference_parse(const char *text, PullReference *ret, Error *reterr);
void pull_reference_done(PullReference *reference);

typedef struct Endpoint {
        char *origin;       /* "https://registry-1.docker.io" */
        char *host;         /* "registry-1.docker.io", with its port if it has one */
        char *repository;   /* as it is called there */
        char *display;      /* what a person knows it by */
        bool may_be_plain;  /* http is fine here, and where it leads */
        bool is_unverified; /* its certificate is not looked at */
        bool is_second_try; /* of the one before it, without TLS: after a failure to connect only */
        Credentials credentials;
        int authorities_fd; /* memory files; negative: the system's, or none */
        int certificate_fd;
        int key_fd;
} Endpoint;

typedef struct Endpoints {
        Endpoint *items; /* in the order in which they are asked */
        size_t n;
        const char *proxy_http, *proxy_https, *proxy_none_for; /* borrowed of the settings */
        unsigned stall_seconds;
} Endpoints;

int endpoints_find(const PullReference *reference, const PullSettings *settings, Endpoints *ret,
                   Error *reterr);
void endpoints_done(Endpoints *endpoints);

/* certificates.c: fills in the memory files of an endpoint from <directory>/<host>/: *.crt are
 * authorities besides the system's, x.cert with x.key is what we show. 0 or -errno with the
 * sentence. */
int endpoint_load_certificates(const json_t *directories, Endpoint *endpoint, Error *reterr);
