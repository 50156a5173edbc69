/* SPDX-License-Identifier: Apache-2.0 */
/* The API server's defaults of a Pod, for fields that a manifest omits. */

#include "agent/manifest/pod-rules.h"
#include "agent/model/containers.h"
#include "agent/model/quantity.h"
#include "common/array.h"

#include <errno.h>
#include <stdlib.h>

enum {
        GRACE_PERIOD_DEFAULT_SEC = 30
};

/* Without a tag or a digest, the tag is latest. */
static bool has_latest_tag(const char *image) {
        const char *slash = strrchr(image, '/');
        const char *name = slash ? slash + 1 : image;
        const char *digest = strchr(name, '@'), *tag = strchr(name, ':');

        if (digest && (!tag || tag > digest))
                return false;
        return !tag ||
               strncmp(tag + 1, "latest", digest ? (size_t) (digest - tag - 1) : SIZE_MAX) == 0;
}

static int request_from_limit(Quantity *request, const Quantity *limit) {
        char *text;

        if (quantity_is_set(request) || !quantity_is_set(limit))
                return 0;
        text = strdup(limit->text);
        if (!text)
                return -ENOMEM;
        *request = *limit;
        request->text = text;
        return 0;
}

/* Uses the limits; the list of requests stays sorted. */
static int extended_requests_from_limits(ResourceRequirements *resources) {
        ResourceList *requests = &resources->requests;

        for (size_t i = 0; i < resources->limits.extended.n; i++) {
                const ExtendedResource *limit = &resources->limits.extended.items[i];
                size_t at = 0;
                ExtendedResource *request;

                while (at < requests->extended.n &&
                       strcmp(requests->extended.items[at].name, limit->name) < 0)
                        at++;
                if (at < requests->extended.n &&
                    streq(requests->extended.items[at].name, limit->name))
                        continue;
                request = ARRAY_INSERT(requests->extended.items, requests->extended.n, at);
                if (!request)
                        return -ENOMEM;
                request->name = strdup(limit->name);
                if (!request->name || request_from_limit(&request->amount, &limit->amount) < 0)
                        return -ENOMEM;
        }
        return 0;
}

static void port_set_defaults(ContainerPort *port, bool host_network) {
        if (port->protocol == PROTOCOL_UNSET)
                port->protocol = PROTOCOL_TCP;
        /* In the API, 0 means unset. */
        if (port->host_port.value == 0)
                port->host_port = host_network ? port->container_port : (OptionalInt){ 0 };
}

static void mode_set_default(OptionalInt *mode) {
        if (!mode->is_set)
                *mode = (OptionalInt){ .is_set = true, .value = 0644 };
}

static void pull_policy_set_default(PullPolicy *policy, const char *image) {
        if (*policy == PULL_POLICY_UNSET)
                *policy = has_latest_tag(image) ? PULL_POLICY_ALWAYS : PULL_POLICY_IF_NOT_PRESENT;
}

static void volume_set_defaults(Volume *volume) {
        if (volume->config_map)
                mode_set_default(&volume->config_map->default_mode);
        if (volume->secret)
                mode_set_default(&volume->secret->default_mode);
        if (volume->downward_api)
                mode_set_default(&volume->downward_api->default_mode);
        if (volume->projected)
                mode_set_default(&volume->projected->default_mode);
        if (volume->image)
                pull_policy_set_default(&volume->image->pull_policy, volume->image->reference);
}

static int termination_set_defaults(Container *container) {
        if (container->termination_message_policy == TERMINATION_MESSAGE_UNSET)
                container->termination_message_policy = TERMINATION_MESSAGE_FILE;
        if (!container->termination_message_path)
                container->termination_message_path = strdup("/dev/termination-log");
        return container->termination_message_path ? 0 : -ENOMEM;
}

static int container_set_defaults(Container *container, bool host_network) {
        ResourceRequirements *resources = &container->resources;
        int r;

        pull_policy_set_default(&container->image_pull_policy, container->image);
        for (size_t i = 0; i < container->ports.n; i++)
                port_set_defaults(&container->ports.items[i], host_network);
        r = termination_set_defaults(container);
        if (r < 0)
                return r;
        r = probes_set_defaults(container);
        if (r < 0)
                return r;
        r = request_from_limit(&resources->requests.cpu, &resources->limits.cpu);
        if (r < 0)
                return r;
        r = request_from_limit(&resources->requests.memory, &resources->limits.memory);
        if (r < 0)
                return r;
        r = request_from_limit(&resources->requests.ephemeral_storage,
                               &resources->limits.ephemeral_storage);
        if (r < 0)
                return r;
        r = request_from_limit(&resources->requests.huge_pages_1gi,
                               &resources->limits.huge_pages_1gi);
        if (r < 0)
                return r;
        r = request_from_limit(&resources->requests.huge_pages_2mi,
                               &resources->limits.huge_pages_2mi);
        return r < 0 ? r : extended_requests_from_limits(resources);
}

static int containers_set_defaults(Container *containers, size_t n, bool host_network) {
        int r = 0;

        for (size_t i = 0; i < n && r >= 0; i++)
                r = container_set_defaults(&containers[i], host_network);
        return r;
}

int pod_set_defaults(Pod *pod) {
        PodSpec *spec = &pod->spec;
        int r;

        if (!pod->metadata.namespace) {
                pod->metadata.namespace = strdup("default");
                if (!pod->metadata.namespace)
                        return -ENOMEM;
        }
        if (spec->restart_policy == RESTART_POLICY_UNSET)
                spec->restart_policy = RESTART_POLICY_ALWAYS;
        if (spec->dns_policy == DNS_POLICY_UNSET)
                spec->dns_policy = DNS_POLICY_CLUSTER_FIRST;
        if (!spec->termination_grace_period_seconds.is_set)
                spec->termination_grace_period_seconds = (OptionalInt){
                        .is_set = true,
                        .value = GRACE_PERIOD_DEFAULT_SEC,
                };
        /* The value is stored as in the API server. */
        if (spec->termination_grace_period_seconds.value < 0)
                spec->termination_grace_period_seconds.value = 1;
        for (size_t i = 0; i < spec->volumes.n; i++)
                volume_set_defaults(&spec->volumes.items[i]);
        /* Other classes are objects that may appear later; they are resolved when the pod is
         * desired. */
        if (spec->priority_class_name && !spec->priority.is_set &&
            system_priority_class_value(spec->priority_class_name) != 0)
                spec->priority = (OptionalInt){
                        .is_set = true,
                        .value = system_priority_class_value(spec->priority_class_name),
                };
        r = containers_set_defaults(spec->init_containers.items, spec->init_containers.n,
                                    spec->host_network);
        if (r < 0)
                return r;
        r = containers_set_defaults(spec->containers.items, spec->containers.n, spec->host_network);
        if (r < 0)
                return r;
        r = containers_set_defaults(spec->ephemeral_containers.items, spec->ephemeral_containers.n,
                                    spec->host_network);
        if (r < 0)
                return r;
        return pod_set_default_resources(spec);
}
