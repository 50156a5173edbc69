/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/manifest/scalar.h"
#include "agent/manifest/yaml-tree.h"
#include "tests/test.h"

/* The JSON to which Kubernetes would convert "v: <text>": strings are in quotes. */
static const char *json_of(const char *text, char buffer[256]) {
        YamlTree tree = { 0 };
        Error error = ERROR_NULL;
        char yaml[256], number[NUMBER_SIZE];
        const YamlNode *node;

        (void) snprintf(yaml, sizeof(yaml), "v: %s\n", text);
        if (yaml_tree_parse("f", yaml, strlen(yaml), &tree, &error) < 0) {
                (void) snprintf(buffer, 256, "%s", error.message);
                error_done(&error);
                return buffer;
        }
        node = yaml_node_get(tree.documents[0], "v");
        if (node->kind == YAML_NODE_NULL)
                (void) snprintf(buffer, 256, "null");
        else if (node->kind == YAML_NODE_BOOL)
                (void) snprintf(buffer, 256, "%s", yaml_node_bool(node) ? "true" : "false");
        else if (node->kind == YAML_NODE_STRING)
                (void) snprintf(buffer, 256, "\"%s\"", node->text);
        else if (yaml_node_number(node, number))
                (void) snprintf(buffer, 256, "%s", number);
        else
                (void) snprintf(buffer, 256, "%s",
                                yaml_node_is_scalar(node) ? "no JSON" : "a collection");
        yaml_tree_done(&tree);
        return buffer;
}

#define WRONG_TAG                                                                             \
        "f:1:4: has a tag that does not match its value; leave it out, or quote a text that " \
        "starts with '!'"

static const struct {
        const char *text;
        const char *json;
} words[] = {
        /* Booleans. */
        { "yes", "true" },
        { "Yes", "true" },
        { "YES", "true" },
        { "y", "true" },
        { "Y", "true" },
        { "on", "true" },
        { "On", "true" },
        { "true", "true" },
        { "TRUE", "true" },
        { "no", "false" },
        { "No", "false" },
        { "n", "false" },
        { "N", "false" },
        { "off", "false" },
        { "OFF", "false" },
        { "False", "false" },
        { "yEs", "\"yEs\"" },
        { "tRUE", "\"tRUE\"" },
        { "nO", "\"nO\"" },
        { "\"yes\"", "\"yes\"" },
        { "'no'", "\"no\"" },
        { "! yes", "\"yes\"" },
        { "!!str yes", "\"yes\"" },
        { "!!bool yes", "true" },

        /* Null. */
        { "", "null" },
        { "~", "null" },
        { "null", "null" },
        { "Null", "null" },
        { "NULL", "null" },
        { "nULL", "\"nULL\"" },
        { "\"\"", "\"\"" },
        { "!!null null", "null" },

        /* Integers. */
        { "0", "0" },
        { "-0", "-0" },
        { "+1", "1" },
        { "-17", "-17" },
        { "0777", "511" },
        { "0644", "420" },
        { "0o17", "15" },
        { "0O17", "15" },
        { "-0o17", "-15" },
        { "0x1F", "31" },
        { "0XfF", "255" },
        { "-0x10", "-16" },
        { "0b101", "5" },
        { "-0b11", "-3" },
        { "1_000", "1000" },
        { "0x_1F", "31" },
        { "9223372036854775807", "9223372036854775807" },
        { "-9223372036854775808", "-9223372036854775808" },
        { "18446744073709551615", "18446744073709551615" },
        { "0x", "\"0x\"" },
        { "0b2", "\"0b2\"" },
        { "0xg", "\"0xg\"" },
        { "+", "\"+\"" },
        { "\"0777\"", "\"0777\"" },
        { "!!int 0777", "511" },
        { "!!int \"5\"", "5" },
        { "!!float 5", "5" },

        /* Numbers with a point or an exponent; an invalid octal number is one of these. */
        { "1e3", "1000" },
        { "1E3", "1000" },
        { "1e+3", "1000" },
        { "1e-3", "0.001" },
        { "12e03", "12000" },
        { "1.5", "1.5" },
        { "-1.5", "-1.5" },
        { ".5", "0.5" },
        { "1.", "1" },
        { "0.1", "0.1" },
        { "685_230.15", "685230.15" },
        { "089", "89" },
        { "09", "9" },
        { "1e21", "1e+21" },
        { "1e-7", "1e-07" },
        { "18446744073709551616", "18446744073709551616" },
        { ".inf", "no JSON" },
        { "-.INF", "no JSON" },
        { ".nan", "no JSON" },
        { "1e999", "no JSON" },
        { ".", "\".\"" },
        { "1e", "\"1e\"" },
        { "1.2.3", "\"1.2.3\"" },
        { ".5.", "\".5.\"" },
        { "1-2", "\"1-2\"" },

        /* Base 60 is not supported, and dates stay strings. */
        { "12:30:45", "\"12:30:45\"" },
        { "190:20:30.15", "\"190:20:30.15\"" },
        { "2001-01-01", "\"2001-01-01\"" },
        { "2001-12-14t21:59:43.10-05:00", "\"2001-12-14t21:59:43.10-05:00\"" },

        /* Strings. */
        { "nginx:1.25", "\"nginx:1.25\"" },
        { "100m", "\"100m\"" },
        { "1.5Gi", "\"1.5Gi\"" },
        { "1Gi", "\"1Gi\"" },
        { "a b", "\"a b\"" },
        { "\"\\u00e4\"", "\"ä\"" },
        { "\"a\\/b\"", "\"a/b\"" },
        { "=", "\"=\"" },
        { "<<", "\"<<\"" },

        /* YAML tags. */
        { "!!int x", WRONG_TAG },
        { "!!binary aGVsbG8=", WRONG_TAG },
        { "!!python/object:os.system x", WRONG_TAG },
        { "!own x", WRONG_TAG },
        { "!!seq [a]", "a collection" },
        { "!!map {a: b}", "a collection" },
        { "!!set {a, b}", WRONG_TAG },
};

TEST(plain_scalars_have_yaml_1_1_types)
{
        char buffer[256];

        for (size_t i = 0; i < N_ELEMENTS(words); i++) {
                printf("%s\n", words[i].text);
                EXPECT_STREQ(json_of(words[i].text, buffer), words[i].json);
        }
}

TEST(integers_are_parsed_in_any_notation)
{
        static const struct {
                const char *yaml;
                bool is_int;
                int64_t value;
        } cases[] = {
                { "80", true, 80 },
                { "8e1", true, 80 },
                { "80.0", true, 80 },
                { "0x50", true, 80 },
                { "-1", true, -1 },
                { "80.5", false, 0 },
                { "18446744073709551615", false, 0 },
                { "1e300", false, 0 },
                { ".inf", false, 0 },
                { "'80'", false, 0 },
                { "yes", false, 0 },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                YamlTree tree = { 0 };
                int64_t value = 0;

                REQUIRE(yaml_tree_parse("f", cases[i].yaml, strlen(cases[i].yaml), &tree, NULL) ==
                        0);
                EXPECT_EQ(yaml_node_int(tree.documents[0], &value), cases[i].is_int);
                EXPECT_EQ(value, cases[i].value);
                yaml_tree_done(&tree);
        }
}

/* The key of the mapping "<text>: v". */
static const struct {
        const char *text;
        const char *key; /* NULL: refused */
} keys[] = {
        { "yes", "true" },
        { "0x10", "16" },
        { "0777", "511" },
        { "1.5", "1.5" },
        { "1.50", "1.5" },
        { "1.10", "1.1" },
        { "-.5", "-0.5" },
        { "100.0", "100" },
        { "1e3", "1000" },
        { "100000.0", "100000" },
        { "1000000.0", "1e+06" },
        { "1234567.0", "1.234567e+06" },
        { "0.0001", "0.0001" },
        { "0.00001", "1e-05" },
        { "3.14159265358979", "3.1415927" },
        { "16777217.0", "1.6777216e+07" },
        { "1e39", NULL },
        { ".inf", NULL },
        { "~", NULL },
};

TEST(numeric_keys_become_strings_as_in_kubernetes)
{
        for (size_t i = 0; i < N_ELEMENTS(keys); i++) {
                YamlTree tree = { 0 };
                Error error = ERROR_NULL;
                char yaml[256];

                (void) snprintf(yaml, sizeof(yaml), "? %s\n: v\n", keys[i].text);
                if (yaml_tree_parse("f", yaml, strlen(yaml), &tree, &error) < 0)
                        EXPECT(!keys[i].key);
                else
                        EXPECT_STREQ(yaml_node_key(tree.documents[0], 0)->text, keys[i].key);
                error_done(&error);
                yaml_tree_done(&tree);
        }
}
