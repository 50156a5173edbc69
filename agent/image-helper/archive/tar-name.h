/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Names of tar entries. Pure. */

#include "common/error.h"

enum {
        TAR_NAME_LENGTH_MAX = 4095,
        TAR_NAME_DEPTH_MAX = 256
};

/* Makes the name of a tar entry, or the target of a link, relative and plain: "./a//b/", "/a/b" and
 * "a/x/../b" become "a/b", the top directory itself becomes "". -EINVAL with a message if ".."
 * leaves the top directory, -ENAMETOOLONG for a name that is too long or too deep. */
int tar_name_clean(const char *raw, char **ret, Error *reterr);

/* Splits "a/b/c" in place into "a/b" and "c"; "c" into "" and "c". Both point into one buffer,
 * which starts at the first. */
int tar_name_split(const char *clean, char **ret_parent, const char **ret_base);

typedef enum TarNameKind {
        TAR_NAME_ORDINARY,
        TAR_NAME_WHITEOUT, /* ".wh.x": hides x of the lower layers */
        TAR_NAME_OPAQUE,   /* ".wh..wh..opq": hides everything that lower layers have in this
                            * directory */
        TAR_NAME_IGNORED,  /* ".wh..wh.plnk" and the like: metadata of aufs, which is ignored */
} TarNameKind;

/* The kind of the last component; for a whiteout, *ret_hidden is the name that the whiteout hides.
 * -EINVAL for a whiteout of "", "." or "..". */
int tar_name_classify(const char *base, TarNameKind *ret_kind, const char **ret_hidden,
                      Error *reterr);

/* Whether the directory 'parent' belongs to the metadata of aufs. */
bool tar_name_is_aufs(const char *parent);

/* Whether a parent directory looks like a whiteout, which never happens in a valid layer. */
bool tar_name_is_below_whiteout(const char *parent);
