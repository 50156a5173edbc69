/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/manifest/manifest-text.h"
#include "agent/manifest/yaml-tree.h"
#include "common/cleanup.h"
#include "tests/test.h"

#include <malloc.h>
#include <stdarg.h>

/* Parses the text and returns the error, or "". */
static const char *parse_yaml(const char *data, size_t length, YamlTree *ret) {
        static char sentence[512];
        cleanup_error Error error = ERROR_NULL;
        int r = yaml_tree_parse("f", data, length, ret, &error);

        (void) snprintf(sentence, sizeof(sentence), "%s", r < 0 ? error_message(&error, r) : "");
        return sentence;
}

static const char *sentence_of(const char *data, size_t length) {
        YamlTree tree = { 0 };
        const char *sentence = parse_yaml(data, length, &tree);

        yaml_tree_done(&tree);
        return sentence;
}

static const char *value_of(const char *yaml, const char *key, char buffer[128]) {
        YamlTree tree = { 0 };
        const YamlNode *node;

        (void) snprintf(buffer, 128, "%.127s", parse_yaml(yaml, strlen(yaml), &tree));
        if (tree.n_documents > 0) {
                node = yaml_node_get(tree.documents[0], key);
                if (node)
                        yaml_node_describe(node, buffer);
        }
        yaml_tree_done(&tree);
        return buffer;
}

/* A growing text. */
typedef struct Text {
        FILE *stream;
        char *data;
        size_t length;
} Text;

/* The stream keeps the address of the 'Text', so the 'Text' must not move. */
static void text_begin(Text *text) {
        text->stream = open_memstream(&text->data, &text->length);
        REQUIRE(text->stream);
}

static const char *text_sentence(Text *text) {
        const char *sentence;

        fclose(text->stream);
        sentence = sentence_of(text->data, text->length);
        free(text->data);
        return sentence;
}

TEST(nodes_have_their_line_and_column)
{
        static const char yaml[] = "a: 1\nb:\n  - x\n  - {c: ä, d: z}\n";
        YamlTree tree = { 0 };
        const YamlNode *b, *map;

        EXPECT_STREQ(parse_yaml(yaml, strlen(yaml), &tree), "");
        REQUIRE(tree.n_documents == 1);
        b = yaml_node_get(tree.documents[0], "b");
        REQUIRE(b && b->kind == YAML_NODE_SEQUENCE && b->n == 2);
        EXPECT_EQ(b->items[0]->line, 3);
        EXPECT_EQ(b->items[0]->column, 5);
        map = b->items[1];
        EXPECT_EQ(yaml_node_key(map, 1)->line, 4);
        /* Columns are characters, not bytes. */
        EXPECT_EQ(yaml_node_key(map, 1)->column, 12);
        EXPECT_EQ(yaml_node_value(map, 1)->column, 15);
        yaml_tree_done(&tree);
}

TEST(several_documents_and_a_byte_order_mark_are_read)
{
        static const char yaml[] = "\xef\xbb\xbf%YAML 1.1\n---\na: 1\n---\n---\r\nb: 2\r\n...\n";
        YamlTree tree = { 0 };

        EXPECT_STREQ(parse_yaml(yaml, strlen(yaml), &tree), "");
        EXPECT_EQ(tree.n_documents, 3);
        REQUIRE(tree.n_documents == 3);
        EXPECT_EQ(tree.documents[1]->kind, YAML_NODE_NULL);
        EXPECT(yaml_node_get(tree.documents[2], "b") != NULL);
        yaml_tree_done(&tree);
}

TEST(json_is_read_with_tabs_and_surrogate_pairs)
{
        char buffer[128];

        EXPECT_STREQ(value_of("{\"a\":\"\\ud83d\\ude00\"}", "a", buffer), "the string '😀'");
        EXPECT_STREQ(value_of("{\"a\":\"\\uD83D\\uDE00!\"}", "a", buffer), "the string '😀!'");
        EXPECT_STREQ(value_of("\t{\t\"a\"\t:\t\"b\\tc\",\n\t\"d\":1}\t\n", "d", buffer),
                     "the number 1");
        EXPECT_STREQ(value_of("{\"a\":\"x\ty\"}", "a", buffer), "the string 'x?y'");
        EXPECT_STREQ(value_of("{\"a\":\"\\\\ud83d\\\\ude00\"}", "a", buffer),
                     "the string '\\ud83d\\ude00'");
        EXPECT_STREQ(value_of("{\"a\":\"q\\\"\\ud83d\\ude00\"}", "a", buffer), "the string 'q\"😀'");
        EXPECT_STREQ(value_of("{\"a\":\"\\ud83d\"}", "a", buffer),
                     "f:1:9: found invalid Unicode character escape code, while parsing a quoted "
                     "scalar that starts at line 1");
        EXPECT(strstr(value_of("{\"a\":\"\\ud83", "a", buffer), "f:1:9: did not find expected "));
}

TEST(boolean_and_numeric_keys_become_strings)
{
        char buffer[128];

        EXPECT_STREQ(value_of("yes: a", "true", buffer), "the string 'a'");
        EXPECT_STREQ(value_of("0x10: a", "16", buffer), "the string 'a'");
        EXPECT_STREQ(value_of("1.50: a", "1.5", buffer), "the string 'a'");
        EXPECT_STREQ(value_of("~: a", "", buffer), "f:1:1: a key must be a string, not nothing");
        EXPECT_STREQ(value_of("[a]: b", "a", buffer), "f:1:1: a key must be a string, not a list");
}

TEST(duplicate_key_is_refused_with_both_places)
{
        char buffer[128];

        EXPECT_STREQ(value_of("a: 1\nb: 2\n\n  \na: 3\n", "a", buffer),
                     "f:5:1: duplicate key 'a'; the first is at line 1, column 1");
        EXPECT_STREQ(value_of("{\"a\":1,\"a\":1}", "a", buffer),
                     "f:1:8: duplicate key 'a'; the first is at line 1, column 2");
        EXPECT_STREQ(value_of("yes: 1\n'true': 2\n", "true", buffer),
                     "f:2:1: duplicate key 'true'; the first is at line 1, column "
                     "1");
        EXPECT_STREQ(value_of("{hunter2,hunter2}", "a", buffer),
                     "f:1:10: duplicate key; the first is at line 1, column 2");
}

TEST(aliases_and_merge_keys_are_resolved)
{
        static const char yaml[] = "base: &b {p: 1, q: 2}\n"
                                   "more: &m {q: 3, r: 4}\n"
                                   "one: {<<: *b, q: 9}\n"
                                   "two: {q: 9, <<: [*b, *m]}\n"
                                   "three: *b\n"
                                   "four: {<<: [*b, *m]}\n";
        YamlTree tree = { 0 };
        const YamlNode *root;

        EXPECT_STREQ(parse_yaml(yaml, strlen(yaml), &tree), "");
        REQUIRE(tree.n_documents == 1);
        root = tree.documents[0];
        /* A mapping's own pairs override merged ones, and the first merged mapping overrides the
         * second. */
        EXPECT_STREQ(yaml_node_get(yaml_node_get(root, "one"), "p")->text, "1");
        EXPECT_STREQ(yaml_node_get(yaml_node_get(root, "one"), "q")->text, "9");
        EXPECT_STREQ(yaml_node_get(yaml_node_get(root, "two"), "q")->text, "9");
        EXPECT_STREQ(yaml_node_get(yaml_node_get(root, "two"), "r")->text, "4");
        EXPECT_EQ(yaml_node_get(root, "two")->n, 3);
        EXPECT(yaml_node_get(root, "three") == yaml_node_get(root, "base"));
        EXPECT_STREQ(yaml_node_get(yaml_node_get(root, "four"), "q")->text, "2");
        yaml_tree_done(&tree);
        EXPECT_STREQ(sentence_of("a: {<<: 1}", 10),
                     "f:1:9: '<<' must name a mapping or a list of mappings");
}

#define NO_ANCHOR(place) \
        place ": the alias has no anchor before it; quote a text that starts with '*'"

TEST(alias_without_anchor_or_to_itself_is_refused)
{
        EXPECT_STREQ(sentence_of("a: *x", 5), NO_ANCHOR("f:1:4"));
        EXPECT_STREQ(sentence_of("&x [*x]", 7),
                     "f:1:5: the alias refers to a value that contains it");
        EXPECT_STREQ(sentence_of("&x {a: {b: *x}}", 15),
                     "f:1:12: the alias refers to a value that contains it");
        /* Anchors are valid only within their document. */
        EXPECT_STREQ(sentence_of("&x a\n---\n*x\n", 12), NO_ANCHOR("f:3:1"));
}

TEST(alias_bomb_is_refused_without_expansion)
{
        Text text;
        struct mallinfo2 before = mallinfo2();

        text_begin(&text);
        fputs("a: &a [x,x,x,x,x,x,x,x,x,x]\n", text.stream);
        for (int c = 'b'; c <= 'j'; c++) {
                fprintf(text.stream, "%c: &%c [", c, c);
                for (unsigned i = 0; i < 10; i++)
                        fprintf(text.stream, "%s*%c", i > 0 ? "," : "", c - 1);
                fputs("]\n", text.stream);
        }
        EXPECT_STREQ(text_sentence(&text),
                     "f:6:14: holds more than 400000 values, aliases expanded");
        EXPECT(mallinfo2().arena <= before.arena + MIB);
}

TEST(bomb_of_a_long_text_is_refused)
{
        Text text;

        text_begin(&text);
        fputs("a: &a ", text.stream);
        for (unsigned i = 0; i < MIB; i++)
                fputc('x', text.stream);
        fputs("\nb: [*a, *a, *a, *a]\nc: *a\n", text.stream);
        EXPECT_STREQ(text_sentence(&text), "f:3:4: holds more than 4 MiB of text by aliases");
}

TEST(a_bomb_of_merge_keys_is_refused)
{
        Text text;

        text_begin(&text);
        fputs("a: &a {", text.stream);
        for (unsigned i = 0; i < 1000; i++)
                fprintf(text.stream, "k%u: v,", i);
        fputs("}\n", text.stream);
        for (unsigned i = 0; i < 1000; i++)
                fprintf(text.stream, "m%u: {<<: *a}\n", i);
        EXPECT_STREQ(text_sentence(&text),
                     "f:200:12: holds more than 400000 values, aliases expanded");
}

TEST(deep_nesting_is_refused)
{
        Text text;

        text_begin(&text);
        for (unsigned i = 0; i < 10000; i++)
                putc('[', text.stream);
        EXPECT_STREQ(text_sentence(&text), "f:1:65: is nested deeper than 64 levels");

        text_begin(&text);
        for (unsigned i = 0; i < 10000; i++)
                fputs("{\"a\":", text.stream);
        EXPECT_STREQ(text_sentence(&text), "f:1:321: is nested deeper than 64 levels");

        /* Nested too deeply through an alias. */
        text_begin(&text);
        fputs("- &a ", text.stream);
        for (unsigned i = 0; i < 40; i++)
                putc('[', text.stream);
        for (unsigned i = 0; i < 40; i++)
                putc(']', text.stream);
        fputs("\n- ", text.stream);
        for (unsigned i = 0; i < 40; i++)
                putc('[', text.stream);
        fputs("*a", text.stream);
        EXPECT_STREQ(text_sentence(&text), "f:2:43: is nested deeper than 64 levels");
}

TEST(a_million_keys_are_refused)
{
        Text text;

        text_begin(&text);
        for (unsigned i = 0; i < 1000000; i++)
                fprintf(text.stream, "k%u: v\n", i);
        EXPECT_STREQ(text_sentence(&text), "f:200000:10: holds more than 400000 values");
}

TEST(too_many_anchors_are_refused)
{
        Text text;

        text_begin(&text);
        for (unsigned i = 0; i < 1000; i++)
                fprintf(text.stream, "- &a%u x\n", i);
        EXPECT_STREQ(text_sentence(&text), "f:257:3: holds more than 256 anchors");
}

TEST(too_many_directives_are_refused)
{
        Text text;

        text_begin(&text);
        for (unsigned i = 0; i < 500000; i++)
                fprintf(text.stream, "%%TAG !a%u! b\n", i);
        EXPECT_STREQ(text_sentence(&text), "f: holds more than 1000 %TAG directives");
}

TEST(too_long_scalar_is_refused)
{
        Text text;

        text_begin(&text);
        fputs("a: b\nc: ", text.stream);
        for (unsigned i = 0; i < 200000; i++)
                fputs("xxxxxxxx", text.stream);
        EXPECT_STREQ(text_sentence(&text), "f:2:4: holds a text of more than 1 MiB");
}

TEST(binary_data_is_refused_with_its_place)
{
        static const struct {
                const char *data;
                size_t length;
                const char *sentence;
        } cases[] = {
                { "a: 1\nb: \0\n", 10, "f:2:4: holds a NUL byte; it is not text" },
                { "\0", 1, "f:1:1: holds a NUL byte; it is not text" },
                { "a: \xff", 4, "f:1:4: is not UTF-8: byte 0xff" },
                { "ä: \xc3", 5, "f:1:4: is not UTF-8: byte 0xc3" },
                { "a: \xc0\xaf", 5, "f:1:4: is not UTF-8: byte 0xc0" },
                { "a: \xed\xa0\x80", 6, "f:1:4: is not UTF-8: byte 0xed" },
                { "a: \xe0\x80\x80", 6, "f:1:4: is not UTF-8: byte 0xe0" },
                { "a: \xf4\x90\x80\x80", 7, "f:1:4: is not UTF-8: byte 0xf4" },
                { "a: \xf0\x80\x80\x80", 7, "f:1:4: is not UTF-8: byte 0xf0" },
                { "a: \xf5\x80\x80\x80", 7, "f:1:4: is not UTF-8: byte 0xf5" },
                { "\xff\xfe"
                  "a\0",
                  4, "f:1:1: is UTF-16; only UTF-8 is read" },
                { "\xfe\xff\0a", 4, "f:1:1: is UTF-16; only UTF-8 is read" },
                { "a: \"\\0\"", 7, "f:1:4: holds a NUL character" },
                { "a: x\x01y\n", 7, "f:1:5: control characters are not allowed" },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++)
                EXPECT_STREQ(sentence_of(cases[i].data, cases[i].length), cases[i].sentence);
}

TEST(invalid_yaml_is_refused_with_the_message_and_place_of_the_parser)
{
        static const struct {
                const char *yaml;
                const char *sentence;
        } cases[] = {
                { "a: b: c\n", "f:1:5: mapping values are not allowed in this context" },
                { "a: [1, 2\nb: 3\n", "f:2:2: did not find expected ',' or ']', while parsing a "
                                      "flow sequence that starts at line 1" },
                { "a:\n\tb: 1\n", "f:2:1: found character that cannot start any token, while "
                                  "scanning for the next token that starts at line 2" },
                { "a: \"b\n", "f:2:1: found unexpected end of stream, while scanning a quoted "
                              "scalar that starts at line 1" },
                { "a: 1\n b: 2\n", "f:2:3: mapping values are not allowed in this context" },
                { "- a\nb: 1\n", "f:2:1: did not find expected '-' indicator, while parsing a "
                                 "block collection that starts at line 1" },
                { "{}{}", "f:1:3: did not find expected <document start>" },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++)
                EXPECT_STREQ(sentence_of(cases[i].yaml, strlen(cases[i].yaml)), cases[i].sentence);
}

TEST(every_prefix_of_a_document_is_parsed_safely)
{
        static const char yaml[] = "%YAML 1.1\n---\na: &x [1, \"\\u00e4\", {b: c}]\n"
                                   "<<: &y {d: |\n  text\n}\ne: *x\n? f\n: 'g'\n";

        for (size_t n = 0; n <= strlen(yaml); n++) {
                YamlTree tree = { 0 };
                /* Allocated to the exact length, so that a sanitizer detects a read beyond it. */
                char *copy = memcpy(malloc(n + !n), yaml, n);

                if (yaml_tree_parse("f", copy, n, &tree, NULL) >= 0)
                        EXPECT(n == 0 || tree.n_documents <= 1);
                yaml_tree_done(&tree);
                free(copy);
        }
}
