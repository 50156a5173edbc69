/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/bundle/actual-resources.h"

#include "agent/bundle/cgroups.h"
#include "agent/bundle/pod-paths.h"
#include "agent/model/quantity.h"
#include "common/cgroup.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/json-text.h"

#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>

enum {
        CONFIG_MAX = 4 * 1024 * 1024,
        GROUPS_MAX = 65536, /* the kernel's NGROUPS_MAX */
};

/* ---- the user ---- */

static int groups_from_json(const json_t *array, IntList *ret) {
        size_t n = MIN(json_array_size(array), (size_t) GROUPS_MAX);

        ret->items = calloc(n + 1, sizeof(*ret->items));
        if (!ret->items)
                return -ENOMEM;
        for (ret->n = 0; ret->n < n; ret->n++)
                ret->items[ret->n] = json_integer_value(json_array_get(array, ret->n));
        return 0;
}

static int process_user_from_json(const json_t *config, ContainerUser *ret) {
        const json_t *user = json_object_get(json_object_get(config, "process"), "user");
        ContainerUser result = {
                .is_known = true,
                .uid = json_integer_value(json_object_get(user, "uid")),
                .gid = json_integer_value(json_object_get(user, "gid")),
        };
        int r;

        if (!json_is_object(user))
                return -EBADMSG;
        r = groups_from_json(json_object_get(user, "additionalGids"), &result.groups);
        if (r < 0)
                return r;
        *ret = result;
        return 0;
}

int bundle_load_actual_user(const BundleConfig *config, const Pod *pod, const char *container,
                            unsigned attempt, ContainerUser *ret) {
        cleanup_free char *directory =
                container_bundle_dir(config, pod->metadata.uid, container, attempt);
        cleanup_free char *path = directory ? path_join(directory, "config.json") : NULL;
        cleanup_free char *text = NULL;
        json_t *json;
        int r = path ? read_file_at(AT_FDCWD, path, CONFIG_MAX, &text, NULL) : -ENOMEM;

        if (r < 0)
                return r;
        r = json_parse_text(text, strlen(text), 0, &json, NULL);
        if (r < 0)
                return r;
        r = process_user_from_json(json, ret);
        json_decref(json);
        return r;
}

/* ---- resources ---- */

static int set_actual_quantity(Quantity *quantity, int64_t amount, const char *unit) {
        Quantity result = { 0 };
        char text[32];
        int r = 0;

        (void) snprintf(text, sizeof(text), "%" PRId64 "%s", amount, unit);
        if (amount > 0)
                r = quantity_parse(text, &result, NULL);
        if (r < 0)
                return r;
        quantity_done(quantity);
        *quantity = result;
        return 0;
}

/* Converts 'shares' back to the request, rounded to a number of milli-CPUs that a manifest is
 * likely to contain. */
static int64_t shares_to_milli_cpu(int64_t shares) {
        return (shares * 1000 + 1023) / 1024;
}

/* The weight curve has no closed inverse, but it is monotonic: a binary search finds the value. */
static int64_t weight_to_shares(uint64_t weight) {
        uint64_t low = 2, high = 262144;

        while (low < high) {
                uint64_t middle = (low + high) / 2;

                if (cpu_weight_of_container(middle) < weight)
                        low = middle + 1;
                else
                        high = middle;
        }
        return (int64_t) low;
}

/* 'text' is the content of the cgroup file, which may differ in form from the value in the spec. */
static int apply_cgroup_value(const char *file, const char *text, ResourceRequirements *resources) {
        Quantity *cpu = &resources->limits.cpu, *memory = &resources->limits.memory;
        int64_t value = strtoll(text, NULL, 10); /* "max" becomes 0: no limit */
        bool is_none = value <= 0 || value >= INT64_MAX / 2;

        if (streq(file, "cpu.cfs_quota_us") || streq(file, "cpu.max"))
                return set_actual_quantity(cpu, is_none ? 0 : value * 1000 / CPU_PERIOD_USEC, "m");
        if (streq(file, "memory.limit_in_bytes") || streq(file, "memory.max"))
                return is_none || value % (int64_t) KIB != 0
                               ? set_actual_quantity(memory, is_none ? 0 : value, "")
                               : set_actual_quantity(memory, value / (int64_t) KIB, "Ki");
        if (streq(file, "cpu.shares"))
                return set_actual_quantity(&resources->requests.cpu, shares_to_milli_cpu(value),
                                           "m");
        if (streq(file, "cpu.weight"))
                return set_actual_quantity(&resources->requests.cpu,
                                           shares_to_milli_cpu(weight_to_shares((uint64_t) value)),
                                           "m");
        return 0;
}

/* In cgroup v1 a file without a limit holds a number just below 2^63. */
static bool is_value_as_written(const CgroupValue *value, const char *present) {
        return streq(value->value, present) ||
               (streq(value->file, "memory.limit_in_bytes") && streq(value->value, "-1") &&
                strtoll(present, NULL, 10) >= INT64_MAX / 2);
}

int bundle_read_actual_resources(const BundleConfig *config, const Pod *pod,
                                 const RunningContainer *running, ResourceRequirements *resources) {
        cleanup_free char *parent =
                cgroup_of_pod(config, pod_qos_class(&pod->spec), pod->metadata.uid);
        CgroupValue values[CGROUP_VALUES_MAX];
        cleanup_free char *group = NULL;
        char id[65];
        size_t n;
        int r = 0;

        container_id(pod->metadata.uid, running->spec->name, running->attempt, id);
        group = parent ? cgroup_of_container(parent, id) : NULL;
        if (!group)
                return -ENOMEM;
        n = container_cgroup_values(config, &pod->spec, running->spec, cgroup_version(), values);
        n = cgroup_values_complete(values, n, cgroup_version());
        if (cgroup_is_unit(group))
                cgroup_round_values(values, n);
        for (size_t i = 0; i < n && r >= 0; i++) {
                cleanup_free char *present =
                        cgroup_read_value(group, values[i].controller, values[i].file);

                if (present)
                        present[strcspn(present, "\n")] = '\0';
                if (present && !is_value_as_written(&values[i], present))
                        r = apply_cgroup_value(values[i].file, present, resources);
        }
        return r;
}
