/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/manifest/config-reserved.h"

#include "agent/model/quantity.h"

#include <errno.h>
#include <string.h>

static int reserved_error(const Decoder *d, const YamlNode *root, const char *field,
                          const char *resource, int r) {
        const DecodePath map = { .key = field };
        const DecodePath path = { .parent = &map, .key = resource, .is_map_key = true };
        const YamlNode *node = yaml_node_get(root, field);
        const YamlNode *value = node && resource ? yaml_node_get(node, resource) : node;

        return decode_error_at(d, value ? value : root, resource ? &path : &map, r);
}

static int64_t *find_reserved_amount(NodeReservation *reserved, const char *resource) {
        const struct {
                const char *name;
                int64_t *amount;
        } known[] = { { "cpu", &reserved->cpu_milli },
                      { "memory", &reserved->memory },
                      { "ephemeral-storage", &reserved->ephemeral_storage },
                      { "pid", &reserved->pids } };

        for (size_t i = 0; i < N_ELEMENTS(known); i++)
                if (streq(known[i].name, resource))
                        return known[i].amount;
        return NULL;
}

static int read_reserved_amount(const KeyValue *item, NodeReservation *reserved, Error *reterr) {
        int64_t *amount = find_reserved_amount(reserved, item->key);
        Quantity quantity = { 0 };
        int r;

        if (!amount)
                return error_setf(reterr, EINVAL,
                                  "cannot be reserved; cpu, memory, ephemeral-storage and pid can");
        r = quantity_parse(item->value, &quantity, reterr);
        if (r < 0)
                return r;
        *amount = streq(item->key, "cpu") ? quantity.milli : quantity.value;
        quantity_done(&quantity);
        return *amount < 0 ? error_setf(reterr, EINVAL, "must not be negative") : 0;
}

static int read_reserved_map(const Decoder *d, const YamlNode *root, const char *field,
                             const StringMap *map, NodeReservation *ret) {
        for (size_t i = 0; i < map->n; i++) {
                int r = read_reserved_amount(&map->items[i], ret, d->reterr);

                if (r < 0)
                        return reserved_error(d, root, field, map->items[i].key, r);
        }
        return 0;
}

/* The kubelet's rule: an enforced reservation needs a cgroup. */
static int check_enforced_groups(const Decoder *d, const YamlNode *root, const Config *config) {
        const struct {
                const char *what;
                const char *group;
                const char *field;
        } rules[] = {
                { "system-reserved", config->system_reserved_cgroup, "systemReservedCgroup" },
                { "system-reserved-compressible", config->system_reserved_cgroup,
                  "systemReservedCgroup" },
                { "kube-reserved", config->kube_reserved_cgroup, "kubeReservedCgroup" },
                { "kube-reserved-compressible", config->kube_reserved_cgroup,
                  "kubeReservedCgroup" },
        };

        for (size_t i = 0; i < N_ELEMENTS(rules); i++)
                if (config_enforces(config, rules[i].what) && !rules[i].group)
                        return reserved_error(d, root, "enforceNodeAllocatable", NULL,
                                              error_setf(d->reterr, EINVAL, "%s needs %s",
                                                         rules[i].what, rules[i].field));
        return 0;
}

int config_read_reserved(const Decoder *d, const YamlNode *root, Config *config) {
        int r = read_reserved_map(d, root, "systemReserved", &config->system_reserved,
                                  &config->system);

        if (r < 0)
                return r;
        r = read_reserved_map(d, root, "kubeReserved", &config->kube_reserved, &config->kube);
        if (r < 0)
                return r;
        return check_enforced_groups(d, root, config);
}
