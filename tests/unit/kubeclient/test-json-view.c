/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kubeclient/json-view.h"

#include "common/cleanup.h"
#include "tests/test.h"

static JsonView text(const char *json) {
        return (JsonView){ json, strlen(json) };
}

static char *member(const char *json, const char *key) {
        JsonView value = json_view_member(text(json), key);

        return value.text ? strndup(value.text, value.length) : NULL;
}

TEST(member_is_found_after_any_other_member)
{
        static const struct {
                const char *json, *key, *value;
        } cases[] = {
                { "{\"a\":1}", "a", "1" },
                { " { \"b\" : [1,{\"a\":2}] , \"a\" : \"x\" } ", "a", "\"x\"" },
                { "{\"b\":\"}\\\",\\\"a\\\":1\",\"a\":true}", "a", "true" },
                { "{\"a\":{\"a\":1},\"b\":2}", "a", "{\"a\":1}" },
                { "{\"a\":1,\"a\":2}", "a", "1" },
                { "{\"b\":{\"a\":1}}", "a", NULL },
                { "{}", "a", NULL },
                { "[]", "a", NULL },
                { "", "a", NULL },
                { "{\"a\"", "a", NULL },
                { "{\"a\":", "a", NULL },
                { "{\"a\":}", "a", NULL },
                { "{\"a\":1", "a", NULL },
                { "{\"a\":\"x", "a", NULL },
                { "{\"a\":\"\\", "a", NULL },
                { "{\"b\":1 \"a\":2}", "a", NULL },
                { "{\"b\":1,", "a", NULL },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_free char *value = member(cases[i].json, cases[i].key);

                printf("%s\n", cases[i].json);
                EXPECT_STREQ(value, cases[i].value);
        }
        EXPECT(json_view_member((JsonView){ 0 }, "a").text == NULL);
}

TEST(strings_and_numbers_are_read)
{
        cleanup_free char *plain = json_view_dup(text("\"x y\""));
        cleanup_free char *sentence =
                json_view_message(text("\"pods \\\"a\\/b\\\" n\\u00e4\\no \\\\\""));

        EXPECT_STREQ(plain, "x y");
        EXPECT_STREQ(sentence, "pods \"a/b\" n? o \\");
        EXPECT(json_view_dup(text("\"\"")) == NULL);
        EXPECT(json_view_dup(text("\"a\\n\"")) == NULL);
        EXPECT(json_view_dup(text("7")) == NULL);
        EXPECT(json_view_dup((JsonView){ 0 }) == NULL);
        EXPECT(json_view_message(text("7")) == NULL);
        EXPECT(json_view_message(text("\"\"")) == NULL);
        EXPECT(json_view_equals(text("\"ADDED\""), "ADDED"));
        EXPECT(!json_view_equals(text("\"ADDEDX\""), "ADDED"));
        EXPECT(!json_view_equals((JsonView){ 0 }, ""));
        EXPECT_EQ(json_view_number(text("410")), 410);
        EXPECT_EQ(json_view_number(text("-1")), -1);
        EXPECT_EQ(json_view_number(text("99999999999999999999")), -1);
        EXPECT_EQ(json_view_number((JsonView){ 0 }), -1);
}

TEST(long_message_is_shortened)
{
        char long_text[4096];
        cleanup_free char *sentence = NULL;

        memset(long_text, 'x', sizeof(long_text));
        long_text[0] = long_text[sizeof(long_text) - 1] = '"';
        sentence = json_view_message((JsonView){ long_text, sizeof(long_text) });
        REQUIRE(sentence);
        EXPECT_EQ(strlen(sentence), 1000);
}
