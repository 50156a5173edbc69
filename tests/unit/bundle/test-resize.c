/* SPDX-License-Identifier: Apache-2.0 */
/* Values that a resize writes into existing cgroups. */

#include "agent/bundle/resize.h"

#include "agent/manifest/manifest.h"
#include "common/cleanup.h"
#include "tests/test.h"

static ManifestObjects parse_pod_with_resources(const char *resources) {
        ManifestObjects objects = { 0 };
        char yaml[512];

        (void) snprintf(yaml, sizeof(yaml),
                        "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n"
                        "  containers: [{name: c, image: i, resources: {%s}}]\n",
                        resources);
        REQUIRE(manifest_parse("f", yaml, strlen(yaml), "n", &objects, NULL) >= 0);
        return objects;
}

static char *print_cgroup_values(const CgroupValue *values, size_t n) {
        char *text = NULL;
        size_t length;
        FILE *out = open_memstream(&text, &length);

        for (size_t i = 0; i < n; i++)
                fprintf(out, "%s%s=%s", i > 0 ? " " : "", values[i].file, values[i].value);
        fclose(out);
        return text;
}

TEST(resized_cgroup_gets_new_limits_and_loses_removed_ones)
{
        static const struct {
                const char *resources;
                int version;
                const char *values;
        } cases[] = {
                { "limits: {cpu: 200m, memory: 1Mi}", 1,
                  "cpu.shares=204 cpu.cfs_period_us=100000 cpu.cfs_quota_us=20000 "
                  "memory.limit_in_bytes=1048576 memory.memsw.limit_in_bytes=1048576" },
                { "", 1,
                  "cpu.shares=2 memory.memsw.limit_in_bytes=-1 cpu.cfs_quota_us=-1 "
                  "memory.limit_in_bytes=-1" },
                { "limits: {cpu: 200m, memory: 1Mi}", 2,
                  "cpu.weight=29 cpu.max=20000 100000 memory.max=1048576 memory.swap.max=0" },
                { "requests: {cpu: 1}", 2,
                  "cpu.weight=100 memory.swap.max=0 cpu.max=max 100000 memory.max=max" },
        };
        const BundleConfig config = { .can_limit_swap = true };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                ManifestObjects objects = parse_pod_with_resources(cases[i].resources);
                const PodSpec *spec = &objects.pods.items[0]->spec;
                CgroupValue values[CGROUP_VALUES_MAX];
                cleanup_free char *text = NULL;
                size_t n = container_cgroup_values(&config, spec, &spec->containers.items[0],
                                                   cases[i].version, values);

                n = cgroup_values_complete(values, n, cases[i].version);
                text = print_cgroup_values(values, n);
                EXPECT_STREQ(text, cases[i].values);
                manifest_objects_done(&objects);
        }
}
