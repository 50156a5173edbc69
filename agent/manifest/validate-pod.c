/* SPDX-License-Identifier: Apache-2.0 */

/* Kubernetes' rules for supported fields, beyond those in the tables. A rule names its field by a
 * path; the place in the file is found by walking the tree along that path. */

#include "agent/manifest/validate-pod.h"
#include "agent/model/names.h"
#include "agent/model/quantity.h"
#include "common/cleanup.h"

#include <inttypes.h>
#include <limits.h>

enum {
        STATIC_POD_UID_LENGTH = 32
};

/* One step of a path: "name", ".name", "[3]", "[key]". Advances the text. */
static const YamlNode *step_into_path(const YamlNode *node, const char **path) {
        bool is_bracket = **path == '[';
        const char *start = *path + (is_bracket || **path == '.');
        size_t n = strcspn(start, is_bracket ? "]" : ".[");
        cleanup_free char *key = strndup(start, n);

        *path = start + n + (is_bracket && start[n] == ']');
        if (!key)
                return NULL;
        if (node->kind == YAML_NODE_SEQUENCE) {
                size_t i = strtoul(key, NULL, 10);
                return i < node->n ? node->items[i] : NULL;
        }
        return yaml_node_get(node, key);
}

/* The deepest node on the path that exists in the file. */
static const YamlNode *find_node_at_path(const YamlNode *root, const char *path) {
        const YamlNode *node = root;

        while (*path) {
                const YamlNode *next = step_into_path(node, &path);

                if (!next || next->kind == YAML_NODE_NULL)
                        return node;
                node = next;
        }
        return node;
}

static int rules_vat(const Rules *rules, int r, const char *format, va_list ap)
        __attribute__((format(printf, 3, 0)));
static int rules_vat(const Rules *rules, int r, const char *format, va_list ap) {
        char prefix[DECODE_PATH_SIZE], path[DECODE_PATH_SIZE];
        const YamlNode *node;

        (void) vsnprintf(path, sizeof(path), format, ap);
        node = find_node_at_path(rules->root, path);
        decode_path_format(rules->path, prefix);
        return error_prefixf(rules->reterr, r, "%s:%" PRIu32 ":%" PRIu32 ": %s%s%s",
                             rules->decoder->file, node->line, node->column, prefix,
                             prefix[0] ? "." : "", path);
}

int rules_at(const Rules *rules, int r, const char *format, ...) {
        va_list ap;

        va_start(ap, format);
        r = rules_vat(rules, r, format, ap);
        va_end(ap);
        return r;
}

int rules_refuse(const Rules *rules, const char *message, const char *format, ...) {
        va_list ap;
        int r = error_setf(rules->reterr, EINVAL, "%s", message);

        va_start(ap, format);
        r = rules_vat(rules, r, format, ap);
        va_end(ap);
        return r;
}

static int check_static_pod_identity(const Rules *rules, const char *node_name) {
        const ObjectMeta *metadata = &rules->pod->metadata;
        size_t length = strlen(metadata->name) + 1 + strlen(node_name);
        int r;

        if (length > DNS_SUBDOMAIN_MAX) {
                r = error_setf(rules->reterr, EINVAL,
                               "must be at most %zu characters, so that '-%s' can follow",
                               DNS_SUBDOMAIN_MAX - 1 - strlen(node_name), node_name);
                return rules_at(rules, r, "metadata.name");
        }
        /* <namespace>_<name>-<node>_<UID> */
        if (strlen(metadata->namespace) + 1 + length + 1 + STATIC_POD_UID_LENGTH > NAME_MAX) {
                r = error_setf(rules->reterr, EINVAL,
                               "must be at most %zu characters, so that the directory of the pod's "
                               "logs can have the namespace and '-%s' in its name",
                               NAME_MAX - 3 - STATIC_POD_UID_LENGTH - strlen(metadata->namespace) -
                                       strlen(node_name),
                               node_name);
                return rules_at(rules, r, "metadata.name");
        }
        if (metadata->uid) {
                r = error_setf(rules->reterr, EINVAL,
                               "cannot be chosen; it is computed from the pod");
                return rules_at(rules, r, "metadata.uid");
        }
        return 0;
}

static int check_volume_sources(const Rules *rules, const Volume *volume, size_t i) {
        size_t n = volume_count_sources(volume);
        int r;

        if (n == 0) {
                r = error_setf(rules->reterr, EINVAL,
                               "must have a source, such as hostPath or emptyDir");
                return rules_at(rules, r, "spec.volumes[%zu]", i);
        }
        if (n > 1) {
                r = error_setf(rules->reterr, EINVAL, "must have one source, not several");
                return rules_at(rules, r, "spec.volumes[%zu]", i);
        }
        return 0;
}

static int check_volume(const Rules *rules, size_t i) {
        const PodSpec *spec = &rules->pod->spec;
        const Volume *volume = &spec->volumes.items[i];
        int r;

        for (size_t j = 0; j < i; j++)
                if (streq(volume->name, spec->volumes.items[j].name)) {
                        r = error_setf(rules->reterr, EINVAL,
                                       "must be unique; '%s' is also volumes[%zu]", volume->name,
                                       j);
                        return rules_at(rules, r, "spec.volumes[%zu].name", i);
                }
        r = check_volume_sources(rules, volume, i);
        if (r < 0)
                return r;
        /* As in the kubelet, the error in a pod of an API server is found when the volume is
         * mounted. */
        if (volume->empty_dir && !rules_are_of_api(rules))
                r = check_empty_dir(rules, i);
        if (r < 0)
                return r;
        return check_data_volume(rules, i);
}

static int check_volumes(const Rules *rules) {
        int r = 0;

        for (size_t i = 0; i < rules->pod->spec.volumes.n && r >= 0; i++)
                r = rules_keep(rules, check_volume(rules, i));
        return r;
}

static int check_mount(const Rules *rules, const ContainerAt *at, size_t j) {
        const Container *container = at->container;
        const VolumeMount *mount = &container->volume_mounts.items[j];
        char text[EXCERPT_SIZE];
        int r;

        if (!pod_find_volume(&rules->pod->spec, mount->name)) {
                r = error_setf(rules->reterr, EINVAL, "must name a volume of this pod, not '%s'",
                               excerpt(text, mount->name));
                return rules_at(rules, r, "%s.volumeMounts[%zu].name", at->path, j);
        }
        for (size_t k = 0; k < j; k++)
                if (streq(mount->mount_path, container->volume_mounts.items[k].mount_path)) {
                        r = error_setf(rules->reterr, EINVAL,
                                       "must be unique; also used by volumeMounts[%zu]", k);
                        return rules_at(rules, r, "%s.volumeMounts[%zu].mountPath", at->path, j);
                }
        return check_mount_options(rules, at, j);
}

static int check_mounts(const Rules *rules, const ContainerAt *at) {
        int r = 0;

        for (size_t j = 0; j < at->container->volume_mounts.n && r >= 0; j++)
                r = rules_keep(rules, check_mount(rules, at, j));
        return r;
}

static int check_quantity(const Rules *rules, const Quantity *quantity, const ContainerAt *at,
                          const char *list, const char *name) {
        if (quantity->milli >= 0)
                return 0;
        return rules_at(rules, error_setf(rules->reterr, EINVAL, "must not be negative"),
                        "%s.resources.%s.%s", at->path, list, name);
}

static int check_resource(const Rules *rules, const Quantity *limit, const Quantity *request,
                          const ContainerAt *at, const char *name) {
        int r;

        r = check_quantity(rules, limit, at, "limits", name);
        if (r < 0)
                return r;
        r = check_quantity(rules, request, at, "requests", name);
        if (r < 0 || !quantity_is_set(limit) || request->milli <= limit->milli)
                return r;
        r = error_setf(rules->reterr, EINVAL, "must be at most the limit, %s, not %s", limit->text,
                       request->text);
        return rules_at(rules, r, "%s.resources.requests.%s", at->path, name);
}

static int check_resources(const Rules *rules, const ContainerAt *at) {
        const ResourceRequirements *resources = &at->container->resources;
        int r = check_resource(rules, &resources->limits.cpu, &resources->requests.cpu, at, "cpu");

        if (r < 0)
                return r;
        return check_resource(rules, &resources->limits.memory, &resources->requests.memory, at,
                              "memory");
}

static bool is_same_host_port(const ContainerPort *a, const ContainerPort *b) {
        return a->host_port.value == b->host_port.value && a->protocol == b->protocol &&
               streq_ptr(a->host_ip, b->host_ip);
}

/* An earlier port that uses the same host port at the same time: an init container conflicts only
 * with itself and with sidecars. */
static bool host_port_is_taken(const PodSpec *spec, const ContainerAt *at,
                               const ContainerPort *port) {
        const Container *container;

        pod_foreach_container(container, spec) {
                bool meets = at->role != ROLE_INIT && container_role(spec, container) != ROLE_INIT;

                for (size_t j = 0; j < container->ports.n; j++) {
                        const ContainerPort *other = &container->ports.items[j];

                        if (other == port)
                                return false;
                        if ((meets || container == at->container) && is_same_host_port(other, port))
                                return true;
                }
        }
        return false;
}

static int check_port_names(const Rules *rules, const ContainerAt *at, size_t j) {
        const Container *container = at->container;
        const char *name = container->ports.items[j].name;

        for (size_t k = 0; name && k < j; k++)
                if (streq_ptr(name, container->ports.items[k].name)) {
                        int r = error_setf(rules->reterr, EINVAL,
                                           "must be unique; '%s' is also ports[%zu]", name, k);
                        return rules_at(rules, r, "%s.ports[%zu].name", at->path, j);
                }
        return 0;
}

static int check_port(const Rules *rules, const ContainerAt *at, size_t j) {
        const ContainerPort *port = &at->container->ports.items[j];
        int r = check_port_names(rules, at, j);

        /* An API server does not compare the ports of sidecars with any other ports, so the second
         * container would fail. */
        if (r < 0 || !port->host_port.is_set || rules_are_of_api(rules))
                return r;
        if (rules->pod->spec.host_network && port->host_port.value != port->container_port.value)
                r = error_setf(rules->reterr, EINVAL,
                               "must equal containerPort, %" PRId64 ", in a pod with hostNetwork",
                               port->container_port.value);
        else if (host_port_is_taken(&rules->pod->spec, at, port))
                r = error_setf(rules->reterr, EINVAL,
                               "must be unique; port %" PRId64 " of the host is taken by "
                               "another port of this pod",
                               port->host_port.value);
        return r < 0 ? rules_at(rules, r, "%s.ports[%zu].hostPort", at->path, j) : 0;
}

static int check_ports(const Rules *rules, const ContainerAt *at) {
        int r = 0;

        for (size_t j = 0; j < at->container->ports.n && r >= 0; j++)
                r = rules_keep(rules, check_port(rules, at, j));
        return r;
}

ContainerAt container_at(const Rules *rules, size_t n) {
        const PodSpec *spec = &rules->pod->spec;
        size_t n_init = spec->init_containers.n;
        ContainerAt at = { .container = pod_nth_container(spec, n), .n = n };

        at.role = container_role(spec, at.container);
        if (n < n_init)
                (void) snprintf(at.path, sizeof(at.path), "spec.initContainers[%zu]", n);
        else if (at.role == ROLE_EPHEMERAL)
                (void) snprintf(at.path, sizeof(at.path), "spec.ephemeralContainers[%zu]",
                                n - n_init - spec->containers.n);
        else
                (void) snprintf(at.path, sizeof(at.path), "spec.containers[%zu]", n - n_init);
        return at;
}

static int check_containers(const Rules *rules) {
        static int (*const checks[])(const Rules *rules, const ContainerAt *at) = {
                check_container_kind,
                check_ports,
                check_environment,
                check_container_storage,
                check_container_devices,
                check_resources,
                check_mounts,
                check_probes,
        };
        int r = 0;

        for (size_t n = 0; n < pod_count_containers(&rules->pod->spec); n++) {
                ContainerAt at = container_at(rules, n);

                for (size_t i = 0; i < N_ELEMENTS(checks) && r >= 0; i++)
                        r = rules_keep(rules, checks[i](rules, &at));
        }
        return r;
}

static int check_pod_node_name(const Rules *rules, const char *node_name) {
        char text[EXCERPT_SIZE];
        int r;

        if (!rules->pod->spec.node_name || streq(rules->pod->spec.node_name, node_name))
                return 0;
        r = error_setf(rules->reterr, EINVAL, "names another node, '%s'; this one is '%s'",
                       excerpt(text, rules->pod->spec.node_name), node_name);
        return rules_at(rules, r, "spec.nodeName");
}

static int check_dns(const Rules *rules) {
        const char *field = "";
        int r = pod_validate_dns(&rules->pod->spec, &field, rules->reterr);

        if (r >= 0)
                r = pod_validate_hostname(&rules->pod->spec, &field, rules->reterr);
        return r < 0 ? rules_at(rules, r, "spec.%s", field) : 0;
}

static int check_pod_metadata(const Rules *rules) {
        return check_metadata(rules, &rules->pod->metadata);
}

int pod_validate_template(const Decoder *decoder, const YamlNode *root, const DecodePath *path,
                          const Pod *pod) {
        const Rules rules = {
                .decoder = decoder,
                .root = root,
                .path = path,
                .pod = pod,
                .reterr = decoder->reterr,
        };
        static int (*const checks[])(const Rules *rules) = {
                check_pod_metadata, check_pod_order,  check_placement,          check_volumes,
                check_dns,          check_containers, check_pod_resources,      check_pod_storage,
                check_security,     check_users,      check_device_annotations,
        };
        size_t n_errors = decode_count_errors(decoder);
        int r = 0;

        for (size_t i = 0; i < N_ELEMENTS(checks) && r >= 0; i++)
                r = rules_keep(&rules, checks[i](&rules));
        return decode_result(decoder, n_errors, r);
}

int pod_validate(const Decoder *decoder, const YamlNode *root, const DecodePath *path,
                 const Pod *pod, const char *node_name) {
        const Rules rules = {
                .decoder = decoder,
                .root = root,
                .path = path,
                .pod = pod,
                .reterr = decoder->reterr,
        };
        size_t n_errors = decode_count_errors(decoder);
        int r = rules_keep(&rules, check_static_pod_identity(&rules, node_name));

        if (r < 0)
                return r;
        r = rules_keep(&rules, check_pod_node_name(&rules, node_name));
        if (r < 0)
                return r;
        r = rules_keep(&rules, rules_are_of_api(&rules)
                                       ? 0
                                       : check_progress_deadline(&rules, &pod->metadata));
        if (r < 0)
                return r;
        r = rules_keep(&rules, pod_validate_template(decoder, root, path, pod));
        return decode_result(decoder, n_errors, r);
}
