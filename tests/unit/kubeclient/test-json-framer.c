/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kubeclient/json-framer.h"

#include "common/cleanup.h"
#include "tests/test.h"

#include <errno.h>

typedef struct Taken {
        char text[4096]; /* the items, each followed by '|' */
        size_t n;
        int verdict;
} Taken;

static int on_item(const char *data, size_t length, void *userdata) {
        Taken *taken = userdata;

        EXPECT_EQ(data[length], '\0');
        REQUIRE(taken->n + length + 2 < sizeof(taken->text));
        memcpy(taken->text + taken->n, data, length);
        taken->n += length;
        taken->text[taken->n++] = '|';
        taken->text[taken->n] = '\0';
        return taken->verdict;
}

/* Pushes the text in two pieces, split at 'at'; the first one byte by byte if 'is_slow'. */
static int feed_framer(bool is_list, const char *json, size_t at, bool is_slow, Taken *taken,
                       char rest[1024]) {
        JsonFramer *splitter = json_framer_new(is_list, on_item, taken);
        const char *said = NULL;
        size_t length = strlen(json);
        int r = 0;

        REQUIRE(splitter);
        taken->n = 0;
        taken->text[0] = rest[0] = '\0';
        for (size_t i = 0; is_slow && i < at && r >= 0; i++)
                r = json_framer_push(splitter, json + i, 1);
        if (!is_slow)
                r = json_framer_push(splitter, json, at);
        if (r >= 0)
                r = json_framer_push(splitter, json + at, length - at);
        if (r >= 0)
                r = json_framer_finish(splitter, &said);
        (void) snprintf(rest, 1024, "%s", strna(said));
        json_framer_free(splitter);
        return r;
}

typedef struct Case {
        bool is_list;
        const char *json, *items, *rest;
        int r;
} Case;

static void expect_at_every_split(const Case *c) {
        Taken taken = { 0 };
        char rest[1024];

        printf("%s\n", c->json);
        for (size_t at = 0; at <= strlen(c->json); at++)
                for (int slow = 0; slow < 2; slow++) {
                        EXPECT_EQ(feed_framer(c->is_list, c->json, at, slow, &taken, rest), c->r);
                        EXPECT_STREQ(taken.text, c->items);
                        EXPECT_STREQ(rest, c->r == 0 ? strna(c->rest) : "");
                }
}

TEST(body_is_split_into_items_however_it_arrives)
{
        static const Case cases[] = {
                { false, "", "", "", 0 },
                { false, "{}", "{}|", "", 0 },
                { false, "{\"a\":1}\n{\"b\":[{\"c\":\"}\"}]}\n",
                  "{\"a\":1}|{\"b\":[{\"c\":\"}\"}]}|", "", 0 },
                { false, "{\"a\":\"\\\"}\\\\\"}{}", "{\"a\":\"\\\"}\\\\\"}|{}|", "", 0 },
                { true, "{\"kind\":\"PodList\",\"items\":[]}", "",
                  "{\"kind\":\"PodList\",\"items\":[]}", 0 },
                { true,
                  " {\"items\" : [ {\"a\":[1,{}]} , {\"b\":2} ] , \"metadata\":{\"items\":[1]}} ",
                  "{\"a\":[1,{}]}|{\"b\":2}|", " {\"items\" : [] , \"metadata\":{\"items\":[1]}} ",
                  0 },
                { true, "{\"items\":[1, \"x,]\",null ,[2],{}],\"a\":\"items\"}",
                  "1|\"x,]\"|null |[2]|{}|", "{\"items\":[],\"a\":\"items\"}", 0 },
                { true, "{\"items\":null,\"a\":[{\"items\":[1]}]}", "",
                  "{\"items\":null,\"a\":[{\"items\":[1]}]}", 0 },
                { true, "{\"a\":\"items\",\"b\":[1]}", "", "{\"a\":\"items\",\"b\":[1]}", 0 },
                { true, "{\"items\":{\"a\":[1]}}", "", "{\"items\":{\"a\":[1]}}", 0 },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++)
                expect_at_every_split(&cases[i]);
}

TEST(invalid_json_is_an_error_after_the_items_before_it)
{
        static const Case cases[] = {
                { false, "x", "", NULL, -EBADMSG },
                { false, "[{}]", "", NULL, -EBADMSG },
                { false, "{\"a\":1}}", "{\"a\":1}|", NULL, -EBADMSG },
                { false, "{\"a\":[}", "", NULL, -EBADMSG },
                { false, "{\"a\":1}{\"b\"", "{\"a\":1}|", NULL, -EBADMSG },
                { false, "{\"a", "", NULL, -EBADMSG },
                { true, "", "", NULL, -EBADMSG },
                { true, "[]", "", NULL, -EBADMSG },
                { true, "{\"items\":[{\"a\":1},{\"b\"", "{\"a\":1}|", NULL, -EBADMSG },
                { true, "{\"items\":[{}]", "{}|", NULL, -EBADMSG },
                { true, "{\"items\":[{}}", "{}|", NULL, -EBADMSG },
                { true, "{}{}", "", NULL, -EBADMSG },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++)
                expect_at_every_split(&cases[i]);
}

TEST(callback_may_end_the_split)
{
        Taken taken = { .verdict = -ECANCELED };
        char rest[1024];

        EXPECT_EQ(feed_framer(false, "{\"a\":1}{\"b\":2}", 0, false, &taken, rest), -ECANCELED);
        EXPECT_STREQ(taken.text, "{\"a\":1}|");
}

static int take_nothing(const char *data, size_t length, void *userdata) {
        *(size_t *) userdata = length;
        return 0;
}

/* Arrays in an object in a stream. */
static int take_deep(unsigned depth) {
        size_t length = 0;
        JsonFramer *splitter = json_framer_new(false, take_nothing, &length);
        int r = json_framer_push(splitter, "{\"a\":", 5);

        for (unsigned i = 1; i < depth && r >= 0; i++)
                r = json_framer_push(splitter, "[", 1);
        for (unsigned i = 1; i < depth && r >= 0; i++)
                r = json_framer_push(splitter, "]", 1);
        if (r >= 0)
                r = json_framer_push(splitter, "}", 1);
        json_framer_free(splitter);
        return r;
}

TEST(too_deep_json_is_an_error)
{
        EXPECT_EQ(take_deep(JSON_FRAMER_DEPTH_MAX), 0);
        EXPECT_EQ(take_deep(JSON_FRAMER_DEPTH_MAX + 1), -EBADMSG);
}

/* A string of this number of bytes, in an item of a List or next to the items. */
static int take_long(bool is_in_items, size_t n) {
        size_t length = 0;
        cleanup_free char *blanks = malloc(n);
        JsonFramer *splitter = json_framer_new(true, take_nothing, &length);
        const char *begin = is_in_items ? "{\"items\":[\"" : "{\"a\":\"";
        const char *end = is_in_items ? "\"]}" : "\"}";
        int r;

        REQUIRE(blanks && splitter);
        memset(blanks, ' ', n);
        r = json_framer_push(splitter, begin, strlen(begin));
        if (r >= 0)
                r = json_framer_push(splitter, blanks, n);
        if (r >= 0)
                r = json_framer_push(splitter, end, strlen(end));
        EXPECT_EQ(length, r >= 0 && is_in_items ? n + 2 : 0);
        json_framer_free(splitter);
        return r;
}

TEST(too_long_json_is_an_error)
{
        EXPECT_EQ(take_long(true, JSON_FRAMER_ITEM_MAX - 2), 0);
        EXPECT_EQ(take_long(true, JSON_FRAMER_ITEM_MAX - 1), -EBADMSG);
        EXPECT_EQ(take_long(false, JSON_FRAMER_REST_MAX - 8), 0);
        EXPECT_EQ(take_long(false, JSON_FRAMER_REST_MAX), -EBADMSG);
}
