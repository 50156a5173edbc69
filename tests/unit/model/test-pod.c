/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/model/containers.h"
#include "agent/model/pod.h"
#include "agent/model/qos.h"
#include "agent/model/quantity.h"
#include "agent/model/schema.h"
#include "agent/model/status.h"
#include "tests/test.h"

/* Containers are written as "limits cpu, memory; requests cpu, memory"; NULL: not set. */
typedef struct Amounts {
        const char *limit_cpu, *limit_memory, *request_cpu, *request_memory;
} Amounts;

static void set_quantity(Quantity *quantity, const char *text) {
        if (text)
                REQUIRE(quantity_parse(text, quantity, NULL) == 0);
}

static void set_resources(ResourceRequirements *resources, const Amounts *amounts) {
        set_quantity(&resources->limits.cpu, amounts->limit_cpu);
        set_quantity(&resources->limits.memory, amounts->limit_memory);
        set_quantity(&resources->requests.cpu, amounts->request_cpu);
        set_quantity(&resources->requests.memory, amounts->request_memory);
}

static PodSpec *spec_of(const Amounts *amounts, size_t n) {
        PodSpec *spec = calloc(1, sizeof(*spec));

        REQUIRE(spec);
        spec->containers.items = calloc(n, sizeof(*spec->containers.items));
        REQUIRE(spec->containers.items);
        spec->containers.n = n;
        for (size_t i = 0; i < n; i++)
                set_resources(&spec->containers.items[i].resources, &amounts[i]);
        return spec;
}

TEST(the_qos_class_follows_from_requests_and_limits)
{
        static const struct {
                Amounts containers[2];
                size_t n;
                QosClass expected;
        } cases[] = {
                { { { NULL, NULL, NULL, NULL } }, 1, QOS_BEST_EFFORT },
                { { { "0", "0", "0", "0" } }, 1, QOS_BEST_EFFORT },
                { { { "1", "1Gi", "1", "1Gi" } }, 1, QOS_GUARANTEED },
                { { { "1", "1Gi", "1000m", "1024Mi" } }, 1, QOS_GUARANTEED },
                { { { "1", "1Gi", "500m", "1Gi" } }, 1, QOS_BURSTABLE },
                { { { "1", NULL, "1", NULL } }, 1, QOS_BURSTABLE },
                { { { NULL, NULL, "1", "1Gi" } }, 1, QOS_BURSTABLE },
                { { { NULL, "64Mi", NULL, "64Mi" } }, 1, QOS_BURSTABLE },
                { { { "1", "1Gi", "0", "1Gi" } }, 1, QOS_BURSTABLE },
                { { { "1", "1Gi", "1", "1Gi" }, { "2", "2Gi", "2", "2Gi" } }, 2, QOS_GUARANTEED },
                { { { "1", "1Gi", "1", "1Gi" }, { NULL, NULL, NULL, NULL } }, 2, QOS_BURSTABLE },
                { { { NULL, NULL, NULL, NULL }, { NULL, NULL, NULL, NULL } }, 2, QOS_BEST_EFFORT },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                PodSpec *spec = spec_of(cases[i].containers, cases[i].n);

                EXPECT_STREQ(qos_class_names[pod_qos_class(spec)],
                             qos_class_names[cases[i].expected]);
                schema_done(&pod_spec_schema, spec);
                free(spec);
        }
}

TEST(equal_quantities_make_equal_specs)
{
        static const Amounts left = { "1", "1Gi", "0.5", NULL };
        static const Amounts right = { "1000m", "1073741824", "500m", NULL };
        static const Amounts other = { "1001m", "1Gi", "500m", NULL };
        PodSpec *a = spec_of(&left, 1), *b = spec_of(&right, 1), *c = spec_of(&other, 1);

        EXPECT(pod_spec_equal(a, b));
        EXPECT(!pod_spec_equal(a, c));
        schema_done(&pod_spec_schema, a);
        schema_done(&pod_spec_schema, b);
        schema_done(&pod_spec_schema, c);
        free(a);
        free(b);
        free(c);
}

TEST(every_value_of_every_enum_has_a_name)
{
        for (int i = 1; i < N_RESTART_POLICIES; i++)
                EXPECT(restart_policy_names[i] != NULL);
        for (int i = 1; i < N_PULL_POLICIES; i++)
                EXPECT(pull_policy_names[i] != NULL);
        for (int i = 1; i < N_HOST_PATH_TYPES; i++)
                EXPECT(host_path_type_names[i] != NULL);
        for (int i = 1; i < N_MEDIA; i++)
                EXPECT(medium_names[i] != NULL);
        for (int i = 1; i < N_PROTOCOLS; i++)
                EXPECT(protocol_names[i] != NULL);
        for (int i = 0; i < N_QOS_CLASSES; i++)
                EXPECT(qos_class_names[i] != NULL);
        for (int i = 0; i < N_POD_PHASES; i++)
                EXPECT(pod_phase_names[i] != NULL);
        for (int i = 0; i < N_POD_CONDITIONS; i++)
                EXPECT(pod_condition_names[i] != NULL);
}

TEST(containers_and_volumes_are_found_by_name)
{
        KeyValue pairs[] = { { (char[]){ "a" }, (char[]){ "1" } } };
        StringMap map = { pairs, 1 };
        Container containers[] = { { .name = (char[]){ "x" } }, { .name = (char[]){ "y" } } };
        Pod pod = { .spec.containers = { containers, 2 } };

        EXPECT_STREQ(string_map_get(&map, "a"), "1");
        EXPECT(string_map_get(&map, "b") == NULL);
        EXPECT(pod_find_container(&pod, "y") == &containers[1]);
        EXPECT(pod_find_container(&pod, "z") == NULL);
}
