/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/secret-helper/secret-open.h"

#include "agent/secrets/opening-protocol.h"
#include "common/cleanup.h"
#include "tests/test.h"

#include <errno.h>

typedef struct Request {
        Buffer bytes;
        AgeKey identity;
} Request;

static void request_done(Request *request) {
        buffer_erase(&request->bytes);
}

static void append(Buffer *to, const void *data, size_t length) {
        EXPECT_EQ(buffer_append(to, data, length, SIZE_MAX), 0);
}

static void begin_request(Request *request, uint32_t n_values) {
        const OpeningRequest header = { .n_identities = 1, .n_values = n_values };

        EXPECT_EQ(age_identity_make(&request->identity), 0);
        append(&request->bytes, &header, sizeof(header));
        append(&request->bytes, &request->identity, sizeof(request->identity));
}

static void append_value(Request *request, const void *data, size_t length) {
        uint32_t size = (uint32_t) length;

        append(&request->bytes, &size, sizeof(size));
        append(&request->bytes, data, length);
}

static void append_encrypted(Request *request, const char *text, const AgeKey *identity) {
        cleanup_free char *armored = NULL;
        AgeKey recipient;

        age_identity_recipient(identity, &recipient);
        EXPECT_EQ(age_encrypt(text, strlen(text), &recipient, 1, &armored), 0);
        append_value(request, armored, strlen(armored));
}

static void expect_entry(const Buffer *answer, size_t *at, uint32_t error, const char *text) {
        OpenedHeader header;

        EXPECT(answer->length - *at >= sizeof(header));
        memcpy(&header, answer->data + *at, sizeof(header));
        *at += sizeof(header);
        EXPECT_EQ(header.error, error);
        EXPECT(answer->length - *at >= header.length);
        if (!error)
                EXPECT_EQ(header.length, strlen(text));
        EXPECT(memmem(answer->data + *at, header.length, text, strlen(text)));
        *at += header.length;
}

TEST(open_values_returns_a_result_for_each_value)
{
        cleanup_with(request_done) Request request = { 0 };
        cleanup_with(buffer_erase) Buffer answer = { 0 };
        AgeKey other;
        size_t at = 0;

        EXPECT_EQ(age_identity_make(&other), 0);
        begin_request(&request, 4);
        append_encrypted(&request, "one", &request.identity);
        append_encrypted(&request, "lost", &other);
        append_value(&request, "junk", 4);
        append_encrypted(&request, "two", &request.identity);
        EXPECT_EQ(open_values(request.bytes.data, request.bytes.length, &answer), 0);
        expect_entry(&answer, &at, 0, "one");
        expect_entry(&answer, &at, ENOKEY, "none of them is an identity of this node");
        expect_entry(&answer, &at, EBADMSG, "is not a file of age");
        expect_entry(&answer, &at, 0, "two");
        EXPECT_EQ(at, answer.length);
}

TEST(open_values_erases_the_request)
{
        cleanup_with(request_done) Request request = { 0 };
        cleanup_with(buffer_erase) Buffer answer = { 0 };

        begin_request(&request, 1);
        append_encrypted(&request, "one", &request.identity);
        EXPECT_EQ(open_values(request.bytes.data, request.bytes.length, &answer), 0);
        for (size_t i = 0; i < request.bytes.length; i++)
                EXPECT_EQ(request.bytes.data[i], 0);
}

TEST(open_values_refuses_a_truncated_request)
{
        cleanup_with(request_done) Request request = { 0 };

        begin_request(&request, 1);
        append_encrypted(&request, "one", &request.identity);
        for (size_t length = 0; length < request.bytes.length; length++) {
                cleanup_with(buffer_erase) Buffer answer = { 0 };
                cleanup_free char *copy = malloc(length + 1);

                EXPECT(copy);
                memcpy(copy, request.bytes.data, length);
                EXPECT_EQ(open_values(copy, length, &answer), -EBADMSG);
                EXPECT_EQ(answer.length, 0);
        }
}

TEST(open_values_refuses_more_identities_than_a_node_has)
{
        cleanup_with(buffer_erase) Buffer bytes = { 0 }, answer = { 0 };
        const OpeningRequest header = { .n_identities = OPENING_IDENTITIES_MAX + 1 };
        const AgeKey identities[OPENING_IDENTITIES_MAX + 1] = { 0 };

        append(&bytes, &header, sizeof(header));
        append(&bytes, identities, sizeof(identities));
        EXPECT_EQ(open_values(bytes.data, bytes.length, &answer), -EBADMSG);
}
