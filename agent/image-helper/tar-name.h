/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Names as tars have them. Pure. */

#include "common/error.h"

enum {
        TAR_NAME_LENGTH_MAX = 4095,
        TAR_NAME_DEPTH_MAX = 256
};

/* Makes a name of a tar entry relative and plain: "./a//b/" and "/a/b" become "a/b", the top itself
 * becomes "". -EINVAL with the sentence for "..", -ENAMETOOLONG for what is too long or too deep.
 */
int tar_name_clean(const char *raw, char **ret, Error *reterr);

/* As tar_name_clean(), for a link's target: ".." goes up where there is something to go up from,
 * else -EINVAL. */
int tar_name_resolve(const char *raw, char **ret);

/* Splits "a/b/c" in place into "a/b" and "c"; "c" into "" and "c". Both point into a copy that is
 * the first of them. */
int tar_name_split(const char *clean, char **ret_parent, const char **ret_base);

typedef enum TarNameKind {
        TAR_NAME_ORDINARY,
        TAR_NAME_WHITEOUT, /* ".wh.x": hides x of the layers below */
        TAR_NAME_OPAQUE,   /* ".wh..wh..opq": hides all of them in this directory */
        TAR_NAME_IGNORED,  /* ".wh..wh.plnk" and such: the plumbing of a file system nobody has */
} TarNameKind;

/* What the last component asks for; of a whiteout *ret_hidden is the name it hides. -EINVAL for a
 * whiteout of nothing, of "." and of "..". */
int tar_name_classify(const char *base, TarNameKind *ret_kind, const char **ret_hidden,
                      Error *reterr);

/* Lies in a directory of such plumbing. */
bool tar_name_is_aufs(const char *parent);

/* Has a directory in it that looks like a whiteout: no layer can mean that. */
bool tar_name_is_below_whiteout(const char *parent);
