/* SPDX-License-Identifier: Apache-2.0 */
#include "common/cleanup.h"
#include "common/protobuf.h"
#include "common/strv.h"
#include "tests/test.h"

#include <errno.h>

#define TEXT(text) ((char *) (uintptr_t) (text))

typedef struct Pair {
        char *key, *value;
} Pair;

static const ProtobufRow pair_fields[] = {
        PROTOBUF_FIELD(1, TEXT, Pair, key),
        PROTOBUF_FIELD(2, TEXT, Pair, value),
};
static const ProtobufMessage pair_message = PROTOBUF_TABLE(Pair, pair_fields);

typedef struct Sample {
        char *text;
        char **texts;
        Buffer bytes;
        bool flag;
        int64_t number;
        struct {
                int64_t *items;
                size_t n;
        } numbers;
        Pair embedded;
        struct {
                Pair *items;
                size_t n;
        } pairs;
} Sample;

static const ProtobufRow sample_fields[] = {
        PROTOBUF_FIELD(1, TEXT, Sample, text),
        PROTOBUF_FIELD(2, TEXTS, Sample, texts),
        PROTOBUF_FIELD(3, BYTES, Sample, bytes),
        PROTOBUF_FIELD(4, FLAG, Sample, flag),
        PROTOBUF_FIELD(5, NUMBER, Sample, number),
        PROTOBUF_FIELD(6, NUMBERS, Sample, numbers),
        PROTOBUF_FIELD(7, MESSAGE, Sample, embedded, .message = &pair_message),
        PROTOBUF_FIELD(1000, MESSAGES, Sample, pairs, .message = &pair_message),
};
static const ProtobufMessage sample_message = PROTOBUF_TABLE(Sample, sample_fields);

static int decode(const void *data, size_t length, Sample *ret) {
        *ret = (Sample){ 0 };
        return protobuf_decode(&sample_message, data, length, ret, NULL);
}

#define DECODE(bytes, ret) decode(bytes, sizeof(bytes) - 1, ret)

TEST(every_type_is_read_back_as_it_was_written)
{
        Pair pairs[] = { { TEXT("a"), TEXT("1") }, { NULL, NULL }, { TEXT("b"), NULL } };
        int64_t numbers[] = { 0, 1, -1, INT64_MAX, INT64_MIN };
        char first[] = "x", second[] = "", *texts[] = { first, second, NULL };
        const Sample sample = {
                .text = TEXT("grüße"),
                .texts = texts,
                .bytes = { TEXT("\0\xff"), 2 },
                .flag = true,
                .number = -5,
                .numbers = { numbers, N_ELEMENTS(numbers) },
                .embedded = { TEXT("k"), TEXT("v") },
                .pairs = { pairs, N_ELEMENTS(pairs) },
        };
        cleanup_buffer Buffer buffer = { 0 };
        Sample got;

        REQUIRE(protobuf_encode(&sample_message, &sample, &buffer, 4096) == 0);
        EXPECT_EQ(decode(buffer.data, buffer.length, &got), 0);
        EXPECT_STREQ(got.text, "grüße");
        EXPECT(strv_equal(got.texts, texts));
        EXPECT(got.bytes.length == 2 && memcmp(got.bytes.data, "\0\xff", 2) == 0);
        EXPECT(got.flag);
        EXPECT_EQ(got.number, -5);
        REQUIRE(got.numbers.n == N_ELEMENTS(numbers));
        EXPECT(memcmp(got.numbers.items, numbers, sizeof(numbers)) == 0);
        EXPECT_STREQ(got.embedded.value, "v");
        REQUIRE(got.pairs.n == 3);
        EXPECT_STREQ(got.pairs.items[0].value, "1");
        EXPECT_STREQ(got.pairs.items[1].key, NULL);
        EXPECT_STREQ(got.pairs.items[2].key, "b");
        protobuf_done(&sample_message, &got);
        EXPECT_EQ(protobuf_encode(&sample_message, &sample, &buffer, buffer.length + 4), -EFBIG);
}

TEST(unset_fields_are_not_written)
{
        const Sample sample = { .text = TEXT("") };
        cleanup_buffer Buffer buffer = { 0 };

        EXPECT_EQ(protobuf_encode(&sample_message, &sample, &buffer, 100), 0);
        EXPECT_EQ(buffer.length, 0);
}

TEST(unknown_fields_of_every_type_are_skipped)
{
        Sample got;

        EXPECT_EQ(DECODE("\x70\x96\x01"
                         "\x71xxxxxxxx"
                         "\x72\x03"
                         "abc"
                         "\x75xxxx"
                         "\x0a\x02ok",
                         &got),
                  0);
        EXPECT_STREQ(got.text, "ok");
        protobuf_done(&sample_message, &got);
}

TEST(numbers_are_read_packed_and_unpacked_and_the_last_value_is_used)
{
        Sample got;

        EXPECT_EQ(DECODE("\x30\x01\x32\x02\x02\x03\x28\x01\x28\x07\x0a\x01x\x0a\x01y", &got), 0);
        REQUIRE(got.numbers.n == 3);
        EXPECT_EQ(got.numbers.items[2], 3);
        EXPECT_EQ(got.number, 7);
        EXPECT_STREQ(got.text, "y");
        protobuf_done(&sample_message, &got);
}

TEST(damaged_messages_are_refused)
{
        static const struct {
                const char *bytes;
                size_t length;
        } cases[] = {
                { "\x0a", 1 },                                              /* no length */
                { "\x0a\x05x", 3 },                                         /* too short */
                { "\x28\xff", 2 },                                          /* number cut off */
                { "\x28\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12 }, /* too long */
                { "\x08\x01", 2 },                                          /* text as a number */
                { "\x2a\x01x", 3 },                                         /* number as a text */
                { "\x0a\x02\xff\xfe", 4 },                                  /* not UTF-8 */
                { "\x0a\x02x\0", 4 },                                       /* NUL */
                { "\x00\x01", 2 },                                          /* field 0 */
                { "\x73", 1 },                                              /* group */
                { "\x71xxx", 4 },                                           /* fixed, cut off */
                { "\x3a\x02\x0a\x05", 4 }, /* inner field too long */
        };
        Sample got;

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                int r = decode(cases[i].bytes, cases[i].length, &got);

                if (r != -EBADMSG)
                        test_fail(__FILE__, __LINE__, "decode()", "is %d in case %zu", r, i);
                protobuf_done(&sample_message, &got);
        }
}

TEST(number_of_items_is_limited)
{
        size_t n = PROTOBUF_ITEMS_MAX + 1;
        char *bytes = malloc(2 * n);
        Sample got = { 0 };
        cleanup_error Error error = ERROR_NULL;

        REQUIRE(bytes);
        for (size_t i = 0; i < n; i++) {
                bytes[2 * i] = 0x12;
                bytes[2 * i + 1] = 0;
        }
        EXPECT_EQ(decode(bytes, 2 * (n - 1), &got), 0);
        EXPECT_EQ(strv_length(got.texts), PROTOBUF_ITEMS_MAX);
        protobuf_done(&sample_message, &got);
        EXPECT_EQ(protobuf_decode(&sample_message, bytes, 2 * n, &got, &error), -E2BIG);
        EXPECT_STREQ(error.message, "the message has more than 65536 items");
        protobuf_done(&sample_message, &got);
        free(bytes);
}
