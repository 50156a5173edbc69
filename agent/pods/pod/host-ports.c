/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pods/pod/host-ports.h"

#include "agent/model/containers.h"
#include "common/text.h"

#include <stdio.h>
#include <string.h>

static bool is_any_address(const char *ip) {
        return !ip || !ip[0] || streq(ip, "0.0.0.0");
}

static bool do_ports_conflict(const ContainerPort *a, const ContainerPort *b) {
        if (a->host_port.value <= 0 || a->host_port.value != b->host_port.value ||
            a->protocol != b->protocol)
                return false;
        return is_any_address(a->host_ip) || is_any_address(b->host_ip) ||
               streq(a->host_ip, b->host_ip);
}

static const ContainerPort *find_port_in_pod(const ContainerPort *port, const PodSpec *spec) {
        const Container *container;

        pod_foreach_container(container, spec) {
                if (container_role(spec, container) == ROLE_INIT)
                        continue;
                for (size_t i = 0; i < container->ports.n; i++)
                        if (do_ports_conflict(port, &container->ports.items[i]))
                                return &container->ports.items[i];
        }
        return NULL;
}

bool pod_has_host_ports(const PodSpec *spec) {
        const Container *container;

        pod_foreach_container(container, spec) {
                for (size_t i = 0; i < container->ports.n; i++)
                        if (container->ports.items[i].host_port.value > 0)
                                return true;
        }
        return false;
}

static char *format_port_path(const PodSpec *spec, const Container *container, size_t port) {
        bool is_main = container_role(spec, container) == ROLE_MAIN;
        const Container *first = is_main ? spec->containers.items : spec->init_containers.items;

        return text_format("spec.%s[%zu].ports[%zu].hostPort",
                           is_main ? "containers" : "initContainers", (size_t) (container - first),
                           port);
}

const ContainerPort *find_host_port_conflict(const PodSpec *spec, const PodSpec *other,
                                             char **ret_path) {
        const Container *container;

        pod_foreach_container(container, spec) {
                if (container_role(spec, container) == ROLE_INIT)
                        continue;
                for (size_t i = 0; i < container->ports.n; i++) {
                        const ContainerPort *port = &container->ports.items[i];

                        if (!find_port_in_pod(port, other))
                                continue;
                        *ret_path = format_port_path(spec, container, i);
                        return *ret_path ? port : NULL;
                }
        }
        return NULL;
}
