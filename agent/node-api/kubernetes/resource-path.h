/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Paths of the Kubernetes API: /api/v1/…, /apis/<group>/<version>/…. Pure. */

#include "common/macros.h"

typedef struct ResourcePath {
        char *text; /* owns the strings of the other members */
        const char *group;
        const char *version;
        const char *namespace;   /* NULL: all namespaces, or none */
        const char *resource;    /* NULL: the group and version as a whole */
        const char *name;        /* NULL: a list */
        const char *subresource; /* NULL: none */
} ResourcePath;

/* The path without its query, decoded. 0; -EINVAL: not such a path; -ENOMEM. */
int resource_path_parse(const char *path, ResourcePath *ret);
void resource_path_done(ResourcePath *path);
