/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cli/command-get.h"

/* mainstay get: parses the resource and calls the function for it. */

static int (*const getters[N_API_RESOURCES])(const GetRequest *request) = {
        [API_RESOURCE_PODS] = get_pods,
        [API_RESOURCE_EVENTS] = get_events,
        [API_RESOURCE_IMAGES] = get_images,
        [API_RESOURCE_DAEMONSETS] = get_daemonsets,
        [API_RESOURCE_NODES] = get_nodes,
        [API_RESOURCE_CONFIG_MAPS] = get_objects,
        [API_RESOURCE_SECRETS] = get_objects,
        [API_RESOURCE_PRIORITY_CLASSES] = get_objects,
        [API_RESOURCE_RUNTIME_CLASSES] = get_objects,
};

enum {
        WATCHABLE = API_RESOURCE_BIT(API_RESOURCE_PODS) | API_RESOURCE_BIT(API_RESOURCE_EVENTS) |
                    API_RESOURCE_BIT(API_RESOURCE_DAEMONSETS)
};

int run_get(const Options *options) {
        GetRequest request = {
                .options = options,
                .namespace = options->all_namespaces ? NULL
                             : options->namespace    ? options->namespace
                                                     : "default",
        };
        unsigned allowed = 0;
        int status;

        for (unsigned i = 0; i < N_API_RESOURCES; i++)
                allowed |= getters[i] ? API_RESOURCE_BIT(i) : 0;
        status = parse_api_resource(options, "get", allowed, &request.resource, &request.names,
                                    &request.n_names);
        if (status == STATUS_OK && options->watch &&
            !(WATCHABLE & API_RESOURCE_BIT(request.resource)))
                status = fail_usage("%s cannot be watched", api_resource_name(request.resource));
        if (status == STATUS_OK)
                status = parse_format(options->output, &request.format);
        return status == STATUS_OK ? getters[request.resource](&request) : status;
}
