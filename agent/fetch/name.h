/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Names as tars have them. Pure. */

#include "common/error.h"

enum {
        NAME_LENGTH_MAX = 4095,
        NAME_DEPTH_MAX = 256
};

/* Makes a name of a tar entry relative and plain: "./a//b/" and "/a/b" become "a/b", the top itself
 * becomes "". -EINVAL with the sentence for "..", -ENAMETOOLONG for what is too long or too deep.
 */
int name_clean(const char *raw, char **ret, Error *reterr);

/* As name_clean(), for a link's target: ".." goes up where there is something to go up from, else
 * -EINVAL. */
int name_resolve(const char *raw, char **ret);

/* Splits "a/b/c" in place into "a/b" and "c"; "c" into "" and "c". Both point into a copy that is
 * the first of them. */
int name_split(const char *clean, char **ret_parent, const char **ret_base);

typedef enum NameKind {
        NAME_ORDINARY,
        NAME_WHITEOUT, /* ".wh.x": hides x of the layers below */
        NAME_OPAQUE,   /* ".wh..wh..opq": hides all of them in this directory */
        NAME_IGNORED,  /* ".wh..wh.plnk" and such: the plumbing of a file system nobody has */
} NameKind;

/* What the last component asks for; of a whiteout *ret_hidden is the name it hides. -EINVAL for a
 * whiteout of nothing, of "." and of "..". */
int name_classify(const char *base, NameKind *ret_kind, const char **ret_hidden, Error *reterr);

/* Lies in a directory of such plumbing. */
bool name_is_aufs(const char *parent);

/* Has a directory in it that looks like a whiteout: no layer can mean that. */
bool name_is_below_whiteout(const char *parent);
