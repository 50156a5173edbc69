/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/metrics/prometheus-label.h"

#include "common/cleanup.h"
#include "tests/test.h"

TEST(characters_that_the_format_does_not_permit_are_escaped_or_replaced)
{
        static const struct {
                const char *value, *expected;
        } cases[] = {
                { NULL, "x=\"\"" },
                { "eth0", "x=\"eth0\"" },
                { "a\"b\\c\nd", "x=\"a\\\"b\\\\c\\nd\"" },
                { "\xc3\xa9", "x=\"\xc3\xa9\"" },
                { "\xff\xfe!", "x=\"?"
                               "?!\"" },
                { "cut\xc3", "x=\"cut?\"" },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_free char *text = NULL;
                size_t length;
                FILE *out = open_memstream(&text, &length);

                REQUIRE(out != NULL);
                write_prometheus_label(out, "x", cases[i].value);
                REQUIRE(fclose(out) == 0);
                EXPECT_STREQ(text, cases[i].expected);
        }
}

TEST(labels_of_a_container_are_in_their_order_and_those_that_a_sample_does_not_have_are_omitted)
{
        static const struct {
                ContainerLabels labels;
                const char *expected;
        } cases[] = {
                { { 0 }, "" },
                { { .pod = "p", .namespace = "n" }, "namespace=\"n\",pod=\"p\"" },
                { { .container = "c", .namespace = "n", .pod = "p", .pod_uid = "u" },
                  "container=\"c\",namespace=\"n\",pod=\"p\",pod_uid=\"u\"" },
                { { .container = "", .id = "/", .image = "", .name = "a\"b" },
                  "container=\"\",id=\"/\",image=\"\",name=\"a\\\"b\"" },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_free char *text = NULL;
                size_t length;
                FILE *out = open_memstream(&text, &length);

                REQUIRE(out != NULL);
                write_container_labels(out, &cases[i].labels);
                REQUIRE(fclose(out) == 0);
                EXPECT_STREQ(text, cases[i].expected);
        }
}
