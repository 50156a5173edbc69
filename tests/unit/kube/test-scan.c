/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kube/scan.h"

#include "common/cleanup.h"
#include "tests/test.h"

static JsonText text(const char *json) {
        return (JsonText){ json, strlen(json) };
}

static char *member(const char *json, const char *key) {
        JsonText value = json_text_member(text(json), key);

        return value.text ? strndup(value.text, value.length) : NULL;
}

TEST(a_member_is_found_behind_whatever_stands_before_it)
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
        EXPECT(json_text_member((JsonText){ 0 }, "a").text == NULL);
}

TEST(strings_and_numbers_are_what_they_are)
{
        cleanup_free char *plain = json_text_dup(text("\"x y\""));
        cleanup_free char *sentence =
                json_text_sentence(text("\"pods \\\"a\\/b\\\" n\\u00e4\\no \\\\\""));

        EXPECT_STREQ(plain, "x y");
        EXPECT_STREQ(sentence, "pods \"a/b\" n? o \\");
        EXPECT(json_text_dup(text("\"\"")) == NULL);
        EXPECT(json_text_dup(text("\"a\\n\"")) == NULL);
        EXPECT(json_text_dup(text("7")) == NULL);
        EXPECT(json_text_dup((JsonText){ 0 }) == NULL);
        EXPECT(json_text_sentence(text("7")) == NULL);
        EXPECT(json_text_sentence(text("\"\"")) == NULL);
        EXPECT(json_text_is(text("\"ADDED\""), "ADDED"));
        EXPECT(!json_text_is(text("\"ADDEDX\""), "ADDED"));
        EXPECT(!json_text_is((JsonText){ 0 }, ""));
        EXPECT_EQ(json_text_number(text("410")), 410);
        EXPECT_EQ(json_text_number(text("-1")), -1);
        EXPECT_EQ(json_text_number(text("99999999999999999999")), -1);
        EXPECT_EQ(json_text_number((JsonText){ 0 }), -1);
}

TEST(a_sentence_is_shortened)
{
        char long_text[4096];
        cleanup_free char *sentence = NULL;

        memset(long_text, 'x', sizeof(long_text));
        long_text[0] = long_text[sizeof(long_text) - 1] = '"';
        sentence = json_text_sentence((JsonText){ long_text, sizeof(long_text) });
        REQUIRE(sentence);
        EXPECT_EQ(strlen(sentence), 1000);
}
