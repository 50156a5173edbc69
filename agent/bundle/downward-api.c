/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/bundle/downward-api.h"

#include "agent/model/containers.h"
#include "agent/model/names.h"
#include "agent/model/resource.h"
#include "common/cleanup.h"
#include "common/text.h"

#include <inttypes.h>

/* Escapes quotes, backslashes and control characters like Go's %q, if manifests can contain
 * them. */
static void write_quoted_value(FILE *out, const char *text) {
        static const char escaped[] = "\a\b\f\n\r\t\v\\\"", names[] = "abfnrtv\\\"";

        (void) fputc('"', out);
        for (; *text; text++) {
                const char *found = strchr(escaped, *text);

                if (found)
                        (void) fprintf(out, "\\%c", names[found - escaped]);
                else if ((unsigned char) *text < ' ' || *text == 0x7f)
                        (void) fprintf(out, "\\x%02x", (unsigned) (unsigned char) *text);
                else
                        (void) fputc(*text, out);
        }
        (void) fputc('"', out);
}

/* key="value", one per line, without a final newline. */
static char *format_string_map(const StringMap *map) {
        char *text = NULL;
        size_t length;
        FILE *out = open_memstream(&text, &length);

        if (!out)
                return NULL;
        for (size_t i = 0; i < map->n; i++) {
                (void) fprintf(out, "%s%s=", i > 0 ? "\n" : "", map->items[i].key);
                write_quoted_value(out, strna(map->items[i].value));
        }
        if (fclose(out) != 0) {
                free(text);
                return NULL;
        }
        return text;
}

static bool is_map_key(const char *text) {
        size_t n = strlen(text);

        return n > 4 && strncmp(text, "['", 2) == 0 && streq(text + n - 2, "']");
}

/* Whether the path names a whole map or "map['key']"; sets its value. */
static bool find_map_value(const StringMap *map, const char *name, const char *path, char **ret) {
        const char *rest = path + strlen(name);
        cleanup_free char *key = NULL;

        if (strncmp(path, name, strlen(name)) != 0 || (*rest && !is_map_key(rest)))
                return false;
        key = *rest ? strndup(rest + 2, strlen(rest) - 4) : NULL;
        *ret = !*rest ? format_string_map(map)
               : key  ? strdup(strna(string_map_get(map, key)))
                      : NULL;
        return true;
}

/* In the host network a pod has the address of the node. */
static const char *first_pod_ip(const BundleConfig *config, const Pod *pod) {
        return strna(pod->spec.host_network ? config->host_ips[0] : config->pod_ips[0]);
}

static char *join_addresses(const char *const addresses[2]) {
        return text_format("%s%s%s", strna(addresses[0]), addresses[1] ? "," : "",
                           strna(addresses[1]));
}

static char *join_pod_ips(const BundleConfig *config, const Pod *pod) {
        return join_addresses(pod->spec.host_network ? config->host_ips : config->pod_ips);
}

int downward_api_field_value(const BundleConfig *config, const Pod *pod, const char *path,
                             char **ret, Error *reterr) {
        const ObjectMeta *metadata = &pod->metadata;
        const struct {
                const char *path;
                const char *value;
        } fields[] = {
                { "metadata.name", metadata->name },
                { "metadata.namespace", metadata->namespace },
                { "metadata.uid", metadata->uid },
                { "spec.nodeName", pod->spec.node_name },
                { "spec.serviceAccountName", pod->spec.service_account_name },
                { "status.hostIP", config->host_ips[0] },
                { "status.podIP", first_pod_ip(config, pod) },
        };
        char text[EXCERPT_SIZE];
        bool has_pod_ips = streq(path, "status.podIPs"),
             has_host_ips = streq(path, "status.hostIPs");
        bool is_known = has_pod_ips || has_host_ips;

        *ret = has_pod_ips    ? join_pod_ips(config, pod)
               : has_host_ips ? join_addresses(config->host_ips)
                              : NULL;
        for (size_t i = 0; i < N_ELEMENTS(fields) && !is_known; i++) {
                is_known = streq(path, fields[i].path);
                *ret = is_known ? strdup(strna(fields[i].value)) : NULL;
        }
        if (!is_known && !find_map_value(&metadata->labels, "metadata.labels", path, ret) &&
            !find_map_value(&metadata->annotations, "metadata.annotations", path, ret))
                return error_setf(reterr, EINVAL, "unsupported fieldPath: %s", excerpt(text, path));
        return *ret ? 0 : -ENOMEM;
}

static int64_t divide_up_by_divisor(int64_t value, int64_t divisor) {
        return value / divisor + (value % divisor > 0);
}

/* A container without a limit may use as much as the pod, or as all pods together. */
static int64_t limit_of_pod_or_node(const BundleConfig *config, const Pod *pod, ResourceType type) {
        const ResourceList *limits = &pod_level_resources(&pod->spec)->limits;

        switch (type) {
        case RESOURCE_CPU:
                return limits->cpu.milli > 0 ? limits->cpu.milli : config->allocatable.cpu_milli;
        case RESOURCE_MEMORY:
                return limits->memory.value > 0 ? limits->memory.value : config->allocatable.memory;
        case RESOURCE_EPHEMERAL_STORAGE:
                return config->allocatable.ephemeral_storage;
        case RESOURCE_HUGE_PAGES_1GI:
        case RESOURCE_HUGE_PAGES_2MI:
        case N_RESOURCE_TYPES:
                break;
        }
        return 0;
}

int downward_api_resource_value(const BundleConfig *config, const Pod *pod, const Container *asking,
                                const ResourceFieldSelector *selector, char **ret, Error *reterr) {
        bool is_limit = strncmp(selector->resource, "limits.", strlen("limits.")) == 0;
        const Container *container = selector->container_name
                                             ? pod_find_container(pod, selector->container_name)
                                             : asking;
        ResourceType type = RESOURCE_CPU;
        const Quantity *quantity =
                container ? resource_find(&container->resources, selector->resource, &type) : NULL;
        int64_t value, divisor;

        if (!container)
                return error_setf(reterr, EINVAL, "container %s not found",
                                  strna(selector->container_name));
        if (!quantity)
                return error_setf(reterr, EINVAL, "unsupported container resource : %s",
                                  selector->resource);
        value = type == RESOURCE_CPU ? quantity->milli : quantity->value;
        divisor = type == RESOURCE_CPU ? selector->divisor.milli : selector->divisor.value;
        if (is_limit && value == 0)
                value = limit_of_pod_or_node(config, pod, type);
        if (divisor == 0)
                divisor = type == RESOURCE_CPU ? 1000 : 1;
        *ret = text_format("%" PRId64, divide_up_by_divisor(value, divisor));
        if (!*ret)
                return -ENOMEM;
        return 0;
}
