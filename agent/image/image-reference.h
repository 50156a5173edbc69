/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Image references: normalising and splitting them. Pure. */

#include "common/error.h"

/* Parses like Docker: "busybox" is "docker.io/library/busybox:latest". 0 with the normalised name,
 * or -EINVAL with the message of Kubernetes' InvalidImageName. */
int image_reference_normalise(const char *reference, char **ret, Error *reterr);

/* The "sha256:…" at the end of a normalised reference, or NULL. */
const char *image_reference_digest(const char *reference);

/* Normalises a name that an archive gives its image. A bare word may be a tag ("latest"), which is
 * then a tag of 'stem', the archive's file name without its suffixes, as well as a name. Appends
 * valid names to 'names' without duplicates. 0 or -ENOMEM. */
int image_reference_names_from_archive(const char *name, const char *stem, char ***names);

/* "busybox" of "busybox.tar.gz" and of "busybox.tar". Memory that the caller frees, or NULL. */
char *image_archive_stem(const char *file_name);
