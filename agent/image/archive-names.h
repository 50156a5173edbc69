/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The names of images in an archive. Pure. */

/* Normalises the name of an image in an archive. A bare word may be a tag ("latest"), so it is used
 * both as a name and as a tag of 'stem', the archive's file name without its suffixes. Appends
 * valid names to 'names' without duplicates. 0 or -ENOMEM. */
int archive_names_add(const char *name, const char *stem, char ***names);

/* "busybox" for "busybox.tar.gz" and for "busybox.tar". The caller frees it; NULL: out of
 * memory. */
char *image_archive_stem(const char *file_name);
