/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Image references: a single grammar, and one spelling for each image. Pure.
 *
 * The grammar is that of github.com/distribution/reference,
 *
 *     [domain "/"] component { "/" component } [":" tag] ["@" digest]
 *
 * with the domains of registry-name.h. The first component is a domain if it contains a dot, a
 * colon or an upper-case letter, or is "localhost". The only digest algorithm is sha256. */

#include "common/error.h"

/* The parts of a reference. */
typedef struct ImageReference {
        char *registry;   /* normalised: "docker.io", "example.com:5000" */
        char *repository; /* "library/busybox" */
        char *tag;        /* NULL: none */
        char *digest;     /* "sha256:…"; NULL: none */
} ImageReference;

/* Completes "busybox" to docker.io and library/busybox; no tag is added. 0, -EINVAL with a message,
 * or -ENOMEM. */
int image_reference_parse(const char *text, ImageReference *ret, Error *reterr);
void image_reference_done(ImageReference *reference);

/* Formats the whole reference. NULL: out of memory. */
char *image_reference_format(const ImageReference *reference);

/* Parses like Docker: "busybox" is "docker.io/library/busybox:latest". 0 with the normalised name,
 * -EINVAL with the message of Kubernetes' InvalidImageName, or -ENOMEM. */
int image_reference_normalise(const char *reference, char **ret, Error *reterr);

/* Whether 'text', in any spelling, is the image with this normalised name. */
bool image_reference_equals(const char *text, const char *normal);

/* The "sha256:…" at the end of a normalised reference, or NULL. */
const char *image_reference_digest(const char *reference);

/* "example.com/team/app" for "EXAMPLE.com/team/app:1@sha256:…". 0, -EINVAL or -ENOMEM. */
int image_reference_repository(const char *reference, char **ret, Error *reterr);

/* Normalises a possible prefix of references, a registry or a registry with the beginning of a
 * path: "example.com:5000", "docker.io/library". It must start with a domain, because it is not
 * completed. 0, -EINVAL with a message, or -ENOMEM. */
int image_reference_normalise_prefix(const char *prefix, char **ret, Error *reterr);
