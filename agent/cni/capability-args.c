/* SPDX-License-Identifier: Apache-2.0 */

/* Capability arguments: hostPorts and bandwidth annotations as runtimeConfig; see the header. */

#include "agent/cni/capability-args.h"

#include "agent/model/containers.h"
#include "agent/model/quantity.h"
#include "common/cleanup.h"
#include "common/json-text.h"

#include <ctype.h>

/* The kubelet's bounds (pkg/util/bandwidth), and the maximum burst, which is practically
 * unlimited. */
#define RATE_MIN INT64_C(1000)
#define RATE_MAX INT64_C(1000000000000000)
#define BURST    INT64_C(4294967295)

static json_t *build_port_mapping(const ContainerPort *port) {
        const char *name = protocol_names[port->protocol];
        char protocol[8] = "";

        for (size_t i = 0; name && name[i] && i < sizeof(protocol) - 1; i++)
                protocol[i] = (char) tolower((unsigned char) name[i]);
        return json_pack("{s:I, s:I, s:s, s:s}", "hostPort", (json_int_t) port->host_port.value,
                         "containerPort", (json_int_t) port->container_port.value, "protocol",
                         protocol, "hostIP", strna(port->host_ip));
}

static json_t *build_port_mappings(const PodSpec *spec) {
        const Container *container;
        json_t *list = json_array();

        pod_foreach_container(container, spec)
                for (size_t j = 0; j < container->ports.n; j++) {
                        const ContainerPort *port = &container->ports.items[j];

                        /* Init containers have already ended when clients connect. */
                        if (port->host_port.value > 0 &&
                            container_role(spec, container) != ROLE_INIT)
                                (void) json_array_append_new(list, build_port_mapping(port));
                }
        return list;
}

static int set_bandwidth_rate(const Pod *pod, const char *annotation, const char *rate_key,
                              const char *burst_key, json_t *bandwidth, Error *reterr) {
        const char *text = string_map_get(&pod->metadata.annotations, annotation);
        Quantity rate = { 0 };
        int r;

        if (!text)
                return 0;
        r = quantity_parse(text, &rate, reterr);
        if (r >= 0 && (rate.value < RATE_MIN || rate.value > RATE_MAX))
                r = error_setf(reterr, EINVAL, "must be between 1k and 1P bits a second, not '%s'",
                               text);
        if (r >= 0 && (json_object_set_new(bandwidth, rate_key, json_integer(rate.value)) < 0 ||
                       json_object_set_new(bandwidth, burst_key, json_integer(BURST)) < 0))
                r = -ENOMEM;
        quantity_done(&rate);
        return r < 0 ? error_prefixf(reterr, r, "metadata.annotations[%s]", annotation) : 0;
}

int cni_capability_args_build(const Pod *pod, json_t **ret, Error *reterr) {
        cleanup_json json_t *request = json_object(), *bandwidth = json_object();
        cleanup_json json_t *ports = build_port_mappings(&pod->spec);
        int r = set_bandwidth_rate(pod, "kubernetes.io/ingress-bandwidth", "ingressRate",
                                   "ingressBurst", bandwidth, reterr);

        if (r < 0)
                return r;
        r = set_bandwidth_rate(pod, "kubernetes.io/egress-bandwidth", "egressRate", "egressBurst",
                               bandwidth, reterr);
        if (r < 0)
                return r;
        if (json_array_size(ports) > 0 && json_object_set(request, "portMappings", ports) < 0)
                return -ENOMEM;
        if (json_object_size(bandwidth) > 0 && json_object_set(request, "bandwidth", bandwidth) < 0)
                return -ENOMEM;
        *ret = TAKE_PTR(request);
        return 0;
}
