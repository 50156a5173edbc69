/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The names that an archive gives its images. Pure. */

/* Normalises a name that an archive gives its image. A bare word may be a tag ("latest"), which is
 * then a tag of 'stem', the archive's file name without its suffixes, as well as a name. Appends
 * valid names to 'names' without duplicates. 0 or -ENOMEM. */
int archive_names_add(const char *name, const char *stem, char ***names);

/* "busybox" of "busybox.tar.gz" and of "busybox.tar". Memory that the caller frees, or NULL. */
char *image_archive_stem(const char *file_name);
