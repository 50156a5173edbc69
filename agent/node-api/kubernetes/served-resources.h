/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The resources that a lone node serves, and their paths in the agent. Pure. */

#include "agent/node-api/kubernetes/resource-path.h"
#include "agent/node-api/kubernetes/table.h"

typedef struct ServedResource {
        const char *group, *version; /* "" is the core group */
        const char *plural, *singular, *kind;
        const char *const *short_names;  /* terminated by NULL */
        const char *const *categories;   /* likewise */
        const char *const *fields;       /* fields by which it can be selected, as above, or NULL */
        const char *const *subresources; /* as above, or NULL */
        bool is_namespaced;
        const char *agent_path; /* of a list, or of the only object; NULL: there are none */
        bool has_agent_watch;   /* the agent supports ?watch=1 on that path */
        const TableKind *table;
        const char *labels_path; /* the agent's path for the labels; NULL: labels are in the
                                  * objects */
} ServedResource;

enum {
        SERVED_RESOURCES_MAX = 28,
};

extern const ServedResource served_resources[];
extern const size_t n_served_resources; /* at most SERVED_RESOURCES_MAX */

/* NULL: it is not served. */
const ServedResource *find_served_resource(const ResourcePath *path);

/* The verbs of the resource, or of one of its subresources, terminated by NULL. */
const char *const *served_verbs(const ServedResource *resource, const char *subresource);

/* "v1", "apps/v1". Returns the buffer. */
enum {
        API_VERSION_SIZE = 64
};
const char *served_api_version(const ServedResource *resource, char buffer[API_VERSION_SIZE]);
