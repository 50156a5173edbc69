/* SPDX-License-Identifier: Apache-2.0 */
/* Matching of selectors, taints and tolerations. */

#include "agent/model/match.h"
#include "agent/model/schema.h"
#include "common/cleanup.h"
#include "tests/test.h"

#include <errno.h>

TEST(selector_operators_match_as_in_kubernetes)
{
        static const struct {
                SelectorOperator op;
                const char *wanted, *value; /* NULL: none */
                bool matches;
        } cases[] = {
                { SELECTOR_IN, "a", "a", true },
                { SELECTOR_IN, "a", "b", false },
                { SELECTOR_IN, "a", NULL, false },
                { SELECTOR_NOT_IN, "a", "a", false },
                { SELECTOR_NOT_IN, "a", "b", true },
                { SELECTOR_NOT_IN, "a", NULL, true },
                { SELECTOR_EXISTS, NULL, "", true },
                { SELECTOR_EXISTS, NULL, NULL, false },
                { SELECTOR_DOES_NOT_EXIST, NULL, "a", false },
                { SELECTOR_DOES_NOT_EXIST, NULL, NULL, true },
                { SELECTOR_GT, "5", "6", true },
                { SELECTOR_GT, "5", "5", false },
                { SELECTOR_GT, "5", "10", true },
                { SELECTOR_GT, "-5", "-4", true },
                { SELECTOR_GT, "5", "6x", false },
                { SELECTOR_GT, "5", "", false },
                { SELECTOR_GT, "5", "99999999999999999999", false },
                { SELECTOR_GT, "5", NULL, false },
                { SELECTOR_LT, "5", "4", true },
                { SELECTOR_LT, "5", "5", false },
                { SELECTOR_LT, "5", NULL, false },
                { SELECTOR_OPERATOR_UNSET, "a", "a", false },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                char *wanted = cases[i].wanted ? strdup(cases[i].wanted) : NULL;
                char *values[] = { wanted, NULL };
                const SelectorRequirement requirement = { .op = cases[i].op, .values = values };

                if (requirement_matches(&requirement, cases[i].value) != cases[i].matches)
                        test_fail(__FILE__, __LINE__, strna(cases[i].value), "case %zu", i);
                free(wanted);
        }
}

TEST(missing_selector_matches_no_object_and_an_empty_one_matches_all)
{
        const LabelSelector empty = { 0 };
        const StringMap labels = { 0 };

        EXPECT(!label_selector_matches(NULL, &labels));
        EXPECT(label_selector_matches(&empty, &labels));
}

TEST(taints_are_parsed_in_kubectl_format)
{
        static const struct {
                const char *text, *again, *error;
        } cases[] = {
                { "a=b:NoSchedule", "a=b:NoSchedule", NULL },
                { "a:NoExecute", "a:NoExecute", NULL },
                { "a=:NoExecute", "a:NoExecute", NULL },
                { "example.com/a=b:PreferNoSchedule", "example.com/a=b:PreferNoSchedule", NULL },
                { "a", NULL, "must be key=value:effect or key:effect" },
                { "a:Never", NULL,
                  "must have the effect NoSchedule, PreferNoSchedule or NoExecute behind the ':'" },
                { ":NoSchedule", NULL,
                  "must be a qualified name such as example.com/my-name, not ''" },
                { "a=b c:NoSchedule", NULL,
                  "must be letters, digits, '-', '_' or '.' between alphanumerics, not 'b c'" },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_error Error error = ERROR_NULL;
                char buffer[TAINT_SIZE];
                Taint taint = { 0 };
                int r = taint_parse(cases[i].text, &taint, &error);

                if (cases[i].again)
                        EXPECT_STREQ(taint_format(&taint, buffer), cases[i].again);
                else
                        EXPECT_STREQ(error.message, cases[i].error);
                EXPECT_EQ(r, cases[i].again ? 0 : -EINVAL);
                schema_done(&taint_schema, &taint);
        }
}

TEST(default_labels_do_not_override_set_ones)
{
        cleanup_with(node_labels_taints_done) NodeLabelsTaints labels_taints = { 0 };

        REQUIRE(string_map_set(&labels_taints.labels, "kubernetes.io/hostname", "other") == 0);
        REQUIRE(node_labels_taints_add_well_known(&labels_taints, "host", "arm64") == 0);
        EXPECT_STREQ(string_map_get(&labels_taints.labels, "kubernetes.io/hostname"), "other");
        EXPECT_STREQ(string_map_get(&labels_taints.labels, "kubernetes.io/os"), "linux");
        EXPECT_STREQ(string_map_get(&labels_taints.labels, "kubernetes.io/arch"), "arm64");
        EXPECT_STREQ(string_map_get(&labels_taints.labels, "beta.kubernetes.io/os"), "linux");
        EXPECT_STREQ(string_map_get(&labels_taints.labels, "beta.kubernetes.io/arch"), "arm64");
}

TEST(string_map_stays_sorted)
{
        StringMap map = { 0 };

        REQUIRE(string_map_set(&map, "b", "1") == 0);
        REQUIRE(string_map_set(&map, "a", "2") == 0);
        REQUIRE(string_map_set(&map, "c", "3") == 0);
        REQUIRE(string_map_set(&map, "b", "4") == 0);
        REQUIRE(map.n == 3);
        EXPECT_STREQ(map.items[0].key, "a");
        EXPECT_STREQ(map.items[1].value, "4");
        for (size_t i = 0; i < map.n; i++) {
                free(map.items[i].key);
                free(map.items[i].value);
        }
        free(map.items);
}
