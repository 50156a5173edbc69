/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/model/request-attributes.h"

#include "common/text.h"

#include <stdio.h>

static const struct {
        const char *path;
        const char *subresource;
        bool has_proxy; /* implied by access to the proxy */
} subresource_paths[] = {
        { "/pods", "pods", true },        { "/runningpods", "pods", true },
        { "/healthz", "healthz", true },  { "/configz", "configz", true },
        { "/stats", "stats", false },     { "/metrics", "metrics", false },
        { "/logs", "log", false },        { "/checkpoint", "checkpoint", false },
        { "/statusz", "statusz", false }, { "/flagz", "configz", false },
};

static const char *verb_of_method(const char *method) {
        static const char *const verbs[][2] = { { "POST", "create" },
                                                { "GET", "get" },
                                                { "PUT", "update" },
                                                { "PATCH", "patch" },
                                                { "DELETE", "delete" } };

        for (size_t i = 0; i < N_ELEMENTS(verbs); i++)
                if (streq(method, verbs[i][0]))
                        return verbs[i][1];
        return "";
}

static bool is_path_beneath(const char *path, const char *parent) {
        size_t length = strlen(parent);

        return strncmp(path, parent, length) == 0 && (path[length] == '\0' || path[length] == '/');
}

RequestAttributes request_attributes(const char *method, const char *path, bool is_upgrade) {
        RequestAttributes attributes = { .verb = is_upgrade ? "create" : verb_of_method(method),
                                         .subresources = { "proxy" },
                                         .n_subresources = 1 };

        for (size_t i = 0; i < N_ELEMENTS(subresource_paths); i++) {
                if (!is_path_beneath(path, subresource_paths[i].path))
                        continue;
                attributes.verb = verb_of_method(method);
                attributes.subresources[0] = subresource_paths[i].subresource;
                if (subresource_paths[i].has_proxy)
                        attributes.subresources[attributes.n_subresources++] = "proxy";
                break;
        }
        return attributes;
}

char *format_forbidden(const char *user, const RequestAttributes *attributes) {
        bool has_two = attributes->n_subresources > 1;

        return text_format("Forbidden (user=%s, verb=%s, resource=nodes, subresource(s)=[%s%s%s])",
                           user, attributes->verb, attributes->subresources[0], has_two ? " " : "",
                           has_two ? attributes->subresources[1] : "");
}
