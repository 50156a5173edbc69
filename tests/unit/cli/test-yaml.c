/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/test.h"

#include "agent/cli/yaml.h"
#include "common/cleanup.h"

TEST(ambiguous_strings_are_quoted)
{
        static const char *const quoted[] = {
                "",
                "true",
                "False",
                "yes",
                "NO",
                "on",
                "Off",
                "y",
                "null",
                "~",
                "1",
                "-1",
                "+1",
                "1.5",
                ".5",
                "1e3",
                "-1.5E+3",
                "0x1F",
                "0b101",
                "0o17",
                "017",
                "1_000",
                "1:30",
                "1:30.5",
                ".inf",
                "-.INF",
                ".NaN",
                "=",
                "<<",
                "2026-01-02",
                "2026-01-02T03:04:05Z",
        };
        static const char *const plain[] = {
                "a",  "truer", "1a",    "10.0.0.1",    "v1",   "1.2.3", "-",    "0x",
                "1e", ".",     "web-1", "10.0.0.1:80", "500m", "64Mi",  "2026", "2026-ab",
        };

        for (size_t i = 0; i < N_ELEMENTS(quoted); i++)
                if (!yaml_needs_quotes(quoted[i]))
                        test_fail(__FILE__, __LINE__, quoted[i], "is not quoted");
        for (size_t i = 0; i < N_ELEMENTS(plain); i++)
                if (yaml_needs_quotes(plain[i]) != streq(plain[i], "2026"))
                        test_fail(__FILE__, __LINE__, plain[i], "is quoted");
}

static char *as_yaml(const char *text) {
        json_t *json = json_loads(text, JSON_DECODE_ANY, NULL);
        char *result = NULL;
        size_t length;
        FILE *out = open_memstream(&result, &length);

        REQUIRE(json);
        EXPECT_EQ(yaml_write(json, out), 0);
        fclose(out);
        json_decref(json);
        return result;
}

TEST(keys_are_sorted_and_lists_are_not_indented)
{
        cleanup_free char *text = as_yaml("{\"b\":[{\"y\":1,\"x\":true},\"z\"],\"a\":null,\"c\":{},"
                                          "\"k\":[],\"m\":{\"1\":\"no\"}}");

        EXPECT_STREQ(
                text,
                "a: null\nb:\n- x: true\n  \"y\": 1\n- z\nc: {}\nk: []\nm:\n  \"1\": \"no\"\n");
}

TEST(strings_are_read_back_unchanged)
{
        cleanup_free char *lines = as_yaml("{\"a\":\"one\\ntwo\\n\",\"b\":\"one\\ntwo\"}");
        cleanup_free char *special = as_yaml("[\"a: b\",\"- x\",\"# no\",\"tab\\there\",\" lead\","
                                             "\"it's\",\"ö\",\"{x}\"]");

        EXPECT_STREQ(lines, "a: |\n  one\n  two\nb: |-\n  one\n  two\n");
        EXPECT_STREQ(special, "- 'a: b'\n- '- x'\n- '# no'\n- \"tab\\there\"\n- ' lead'\n"
                              "- it's\n- ö\n- '{x}'\n");
}

TEST(a_long_string_stays_on_one_line)
{
        cleanup_free char *json = NULL, *yaml = NULL;
        char words[1001];

        for (size_t i = 0; i < 1000; i++)
                words[i] = i % 5 == 4 ? ' ' : 'x';
        words[999] = 'x';
        words[1000] = '\0';
        REQUIRE(asprintf(&json, "[\"%s\"]", words) > 0);
        yaml = as_yaml(json);
        EXPECT_EQ(strlen(yaml), 1003);
}
