/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node-api/kubernetes/resource-path.h"

#include "agent/node-api/http/request-url.h"
#include "common/cleanup.h"

enum {
        PARTS_MAX = 8, /* apis, group, version, namespaces, a namespace, resource, name, subresource
                        */
};

void resource_path_done(ResourcePath *path) {
        free(path->text);
        *path = (ResourcePath){ 0 };
}

/* "namespaces/<name>" and its subresources refer to the namespace; "namespaces/<name>/pods" does
 * not. */
static bool names_a_namespace_of(const char *const *parts, int n) {
        return n >= 3 && streq(parts[0], "namespaces") && !streq(parts[2], "status") &&
               !streq(parts[2], "finalize");
}

static int take_resource_parts(const char *const *parts, int n, ResourcePath *path) {
        if (names_a_namespace_of(parts, n)) {
                path->namespace = parts[1];
                parts += 2;
                n -= 2;
        }
        if (n > 3)
                return -EINVAL;
        path->resource = n > 0 ? parts[0] : NULL;
        path->name = n > 1 ? parts[1] : NULL;
        path->subresource = n > 2 ? parts[2] : NULL;
        return 0;
}

int resource_path_parse(const char *path, ResourcePath *ret) {
        cleanup_with(resource_path_done)
                ResourcePath result = { .text = strdup(path + (*path == '/')) };
        const char *parts[PARTS_MAX];
        size_t length = result.text ? strlen(result.text) : 0;
        int n, n_head;

        if (!result.text)
                return -ENOMEM;
        if (length > 0 && result.text[length - 1] == '/')
                result.text[length - 1] = '\0';
        n = split_url_path(result.text, parts, PARTS_MAX);
        n_head = n > 0 && streq(parts[0], "api") ? 2 : 3;
        if (n < n_head || (n_head == 3 && !streq(parts[0], "apis")))
                return -EINVAL;
        result.group = n_head == 2 ? "" : parts[1];
        result.version = parts[n_head - 1];
        if (take_resource_parts(parts + n_head, n - n_head, &result) < 0)
                return -EINVAL;
        *ret = result;
        result = (ResourcePath){ 0 };
        return 0;
}
