/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cli/get.h"

/* get: reads what is asked for and hands it to the file that knows the resource. */

static int (*const getters[N_RESOURCES])(const GetRequest *request) = {
        [RESOURCE_PODS] = get_pods,
        [RESOURCE_EVENTS] = get_events,
        [RESOURCE_IMAGES] = get_images,
        [RESOURCE_DAEMONSETS] = get_daemonsets,
        [RESOURCE_NODES] = get_nodes,
        [RESOURCE_CONFIG_MAPS] = get_objects,
        [RESOURCE_SECRETS] = get_objects,
        [RESOURCE_PRIORITY_CLASSES] = get_objects,
        [RESOURCE_RUNTIME_CLASSES] = get_objects,
};

enum {
        WATCHABLE = RESOURCE_BIT(RESOURCE_PODS) | RESOURCE_BIT(RESOURCE_EVENTS) |
                    RESOURCE_BIT(RESOURCE_DAEMONSETS)
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

        for (unsigned i = 0; i < N_RESOURCES; i++)
                allowed |= getters[i] ? RESOURCE_BIT(i) : 0;
        status = parse_resource(options, "get", allowed, &request.resource, &request.names,
                                &request.n_names);
        if (status == STATUS_OK && options->watch && !(WATCHABLE & RESOURCE_BIT(request.resource)))
                status = fail_usage("%s cannot be watched", resource_name(request.resource));
        if (status == STATUS_OK)
                status = parse_format(options->output, &request.format);
        return status == STATUS_OK ? getters[request.resource](&request) : status;
}
