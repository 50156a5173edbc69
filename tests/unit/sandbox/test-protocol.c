/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sandbox/protocol.h"
#include "common/cleanup.h"
#include "tests/test.h"

#include <limits.h>

static int decode_request(const char *text, ShimRequest *ret, Error *reterr) {
        return shim_request_decode(text, strlen(text), ret, reterr);
}

TEST(a_request_is_decoded_as_it_was_encoded)
{
        static const char *const directories[] = { "/a", "/b c", "/ü" };
        const ShimRequest requests[] = {
                { .type = SHIM_REQUEST_HELLO, .version = 1 },
                { .type = SHIM_REQUEST_SETUP,
                  .fstab = "/run/fstab",
                  .log_max_size = 10485760,
                  .log_max_files = 5 },
                { .type = SHIM_REQUEST_RUN,
                  .id = "0123",
                  .name = "web",
                  .attempt = 7,
                  .bundle = "/run/b",
                  .log = "/var/log/0.log",
                  .journal_fields = { directories, 2 },
                  .events_file = "/sys/fs/cgroup/x",
                  .note = "\"quoted\"\n",
                  .has_input = true,
                  .has_terminal = true,
                  .keeps_early = true,
                  .target = "4567" },
                { .type = SHIM_REQUEST_ATTACH,
                  .id = "0123",
                  .has_input = true,
                  .has_output = true,
                  .has_error = true,
                  .is_input_once = true },
                { .type = SHIM_REQUEST_SESSION,
                  .id = "0123",
                  .arguments = { directories, 2 },
                  .has_output = true,
                  .is_held = true },
                { .type = SHIM_REQUEST_STOP, .id = "x", .signal = 15, .grace_usec = 30000000 },
                { .type = SHIM_REQUEST_DELETE, .id = "x", .directories = { directories, 3 } },
                { .type = SHIM_REQUEST_TEARDOWN },
                { .type = SHIM_REQUEST_EXEC,
                  .id = "token",
                  .arguments = { directories, 2 },
                  .environment = { directories, 3 },
                  .input = "{\"a\":1}",
                  .in_host = true,
                  .timeout_usec = 60000000,
                  .interface = "eth0",
                  .address = "10.1.2.3" },
        };

        for (size_t i = 0; i < N_ELEMENTS(requests); i++) {
                const ShimRequest *sent = &requests[i];
                cleanup_shim_request ShimRequest got = { 0 };
                cleanup_free char *packet = NULL;
                size_t length = 0;

                REQUIRE(shim_request_encode(sent, &packet, &length) == 0 && packet);
                EXPECT_EQ(shim_request_decode(packet, length, &got, NULL), 0);
                EXPECT_EQ(got.type, sent->type);
                EXPECT_EQ(got.version, sent->version);
                EXPECT_STREQ(got.fstab, sent->fstab);
                EXPECT_EQ(got.log_max_size, sent->log_max_size);
                EXPECT_EQ(got.log_max_files, sent->log_max_files);
                EXPECT_STREQ(got.id, sent->id);
                EXPECT_STREQ(got.name, sent->name);
                EXPECT_EQ(got.attempt, sent->attempt);
                EXPECT_STREQ(got.bundle, sent->bundle);
                EXPECT_STREQ(got.log, sent->log);
                EXPECT_STREQ(got.events_file, sent->events_file);
                EXPECT_STREQ(got.note, sent->note);
                EXPECT_EQ(got.has_input, sent->has_input);
                EXPECT_EQ(got.has_terminal, sent->has_terminal);
                EXPECT_EQ(got.has_output, sent->has_output);
                EXPECT_EQ(got.keeps_early, sent->keeps_early);
                EXPECT_EQ(got.is_input_once, sent->is_input_once);
                EXPECT_EQ(got.is_held, sent->is_held);
                EXPECT_STREQ(got.target, sent->target);
                EXPECT_EQ(got.signal, sent->signal);
                EXPECT_EQ(got.grace_usec, sent->grace_usec);
                EXPECT_STREQ(got.input, sent->input);
                EXPECT_EQ(got.in_host, sent->in_host);
                EXPECT_EQ(got.timeout_usec, sent->timeout_usec);
                EXPECT_STREQ(got.interface, sent->interface);
                EXPECT_STREQ(got.address, sent->address);
                EXPECT_EQ(got.arguments.n, sent->arguments.n);
                EXPECT_EQ(got.environment.n, sent->environment.n);
                EXPECT_EQ(got.journal_fields.n, sent->journal_fields.n);
                for (size_t j = 0; j < MIN(got.journal_fields.n, N_ELEMENTS(directories)); j++)
                        EXPECT_STREQ(got.journal_fields.items[j], directories[j]);
                for (size_t j = 0; j < MIN(got.arguments.n, N_ELEMENTS(directories)); j++)
                        EXPECT_STREQ(got.arguments.items[j], directories[j]);
                for (size_t j = 0; j < MIN(got.environment.n, N_ELEMENTS(directories)); j++)
                        EXPECT_STREQ(got.environment.items[j], directories[j]);
                EXPECT_EQ(got.directories.n, sent->directories.n);
                for (size_t j = 0; j < MIN(got.directories.n, N_ELEMENTS(directories)); j++)
                        EXPECT_STREQ(got.directories.items[j], directories[j]);
        }
}

TEST(an_event_is_decoded_as_it_was_encoded)
{
        const ShimEvent sent = {
                .type = SHIM_EVENT_EXITED,
                .id = "0123",
                .name = "web",
                .note = "n",
                .message = "m",
                .attempt = 3,
                .exit_code = 137,
                .signal = 9,
                .oom_killed = true,
                .replayed = true,
                .deleted = true,
                .started_at = 1700000000000001,
                .finished_at = 1700000000000002,
        };
        cleanup_shim_event ShimEvent got = { 0 };
        cleanup_free char *packet = NULL;
        size_t length = 0;

        REQUIRE(shim_event_encode(&sent, &packet, &length) == 0);
        EXPECT_EQ(shim_event_decode(packet, length, &got, NULL), 0);
        EXPECT_EQ(got.type, sent.type);
        EXPECT_STREQ(got.id, sent.id);
        EXPECT_STREQ(got.name, sent.name);
        EXPECT_STREQ(got.note, sent.note);
        EXPECT_STREQ(got.message, sent.message);
        EXPECT_EQ(got.attempt, sent.attempt);
        EXPECT_EQ(got.exit_code, sent.exit_code);
        EXPECT_EQ(got.signal, sent.signal);
        EXPECT(got.oom_killed && got.replayed && got.deleted);
        EXPECT(!got.ready && !got.runtime_failed);
        EXPECT_EQ(got.started_at, sent.started_at);
        EXPECT_EQ(got.finished_at, sent.finished_at);
}

TEST(output_of_a_program_is_transferred_with_invalid_bytes_replaced)
{
        char large[6000];
        ShimEvent sent = { .type = SHIM_EVENT_EXEC_DONE,
                           .id = "t",
                           .exit_code = 3,
                           .output = large,
                           .error = "e",
                           .timed_out = true };
        cleanup_shim_event ShimEvent got = { 0 };
        cleanup_free char *packet = NULL;
        size_t length = 0;

        memset(large, 'x', sizeof(large) - 1);
        large[sizeof(large) - 1] = '\0';
        large[0] = (char) 0xff;
        REQUIRE(shim_event_encode(&sent, &packet, &length) == 0);
        REQUIRE(shim_event_decode(packet, length, &got, NULL) == 0);
        large[0] = '?';
        EXPECT_STREQ(got.output, large);
        EXPECT_STREQ(got.error, "e");
        EXPECT_EQ(got.exit_code, 3);
        EXPECT(got.timed_out);
}

/* New agents communicate with old shims: the names on the wire must not change. */
TEST(the_names_on_the_wire_are_fixed)
{
        static const char golden[] = "{\"type\":\"stop\",\"id\":\"x\",\"signal\":15,"
                                     "\"delay_usec\":0,\"grace_usec\":30000000}";
        static const char usage[] = "{\"type\":\"usage\",\"id\":\"x\",\"n_descriptors\":3,"
                                    "\"n_sockets\":2,\"open_files_max\":1}";
        static const char *const events[] = {
                "{\"type\":\"hello\",\"version\":1,\"pid\":7}",
                "{\"type\":\"synced\",\"ready\":true}",
                "{\"type\":\"ready\"}",
                usage,
        };
        const ShimEvent sent[] = {
                { .type = SHIM_EVENT_HELLO, .version = 1, .pid = 7 },
                { .type = SHIM_EVENT_SYNCED, .ready = true },
                { .type = SHIM_EVENT_READY },
                { .type = SHIM_EVENT_USAGE,
                  .id = "x",
                  .n_descriptors = 3,
                  .n_sockets = 2,
                  .open_files_max = 1 },
        };
        const ShimRequest stop = {
                .type = SHIM_REQUEST_STOP, .id = "x", .signal = 15, .grace_usec = 30000000
        };
        cleanup_free char *packet = NULL;
        size_t length = 0;

        REQUIRE(shim_request_encode(&stop, &packet, &length) == 0);
        EXPECT_STREQ(packet, golden);
        for (size_t i = 0; i < N_ELEMENTS(events); i++) {
                cleanup_free char *text = NULL;

                REQUIRE(shim_event_encode(&sent[i], &text, &length) == 0);
                EXPECT_STREQ(text, events[i]);
        }
}

TEST(an_invalid_message_is_refused_with_a_reason)
{
        static const struct {
                const char *text;
                int r;
                const char *says;
        } cases[] = {
                { "", -EBADMSG, "not a message: '[' or '{' expected near end of file" },
                { "{}", -EBADMSG, "not a message: the type is missing" },
                { "[1]", -EBADMSG, "not a message: the type is missing" },
                { "{\"type\":null}", -EBADMSG, "not a message: the type is missing" },
                { "{\"type\":\"teardown\"} x", -EBADMSG,
                  "not a message: end of file expected near 'x'" },
                { "{\"type\":\"teardown\",\"type\":\"run\"}", -EBADMSG,
                  "not a message: duplicate object key near '\"type\"'" },
                { "{\"type\":\"fly\"}", -ENOTSUP, "unknown message 'fly'" },
                { "{\"type\":\"setup\"}", -EBADMSG, "setup: 'fstab' is missing" },
                { "{\"type\":\"setup\",\"fstab\":1}", -EBADMSG, "setup: 'fstab': is not a string" },
                { "{\"type\":\"stop\",\"id\":\"x\",\"signal\":\"9\"}", -EBADMSG,
                  "stop: 'signal': is not an integer" },
                { "{\"type\":\"stop\",\"id\":\"x\",\"signal\":3000000000}", -EBADMSG,
                  "stop: 'signal': is out of range" },
                { "{\"type\":\"stop\",\"id\":\"x\",\"grace_usec\":-1}", -EBADMSG,
                  "stop: 'grace_usec': is out of range" },
                { "{\"type\":\"hello\",\"version\":4294967296}", -EBADMSG,
                  "hello: 'version': is out of range" },
                { "{\"type\":\"delete\",\"id\":\"x\",\"directories\":\"/\"}", -EBADMSG,
                  "delete: 'directories': is not a list" },
                { "{\"type\":\"delete\",\"id\":\"x\",\"directories\":[\"/\",null]}", -EBADMSG,
                  "delete: 'directories': has an item that is not a string" },
                { "{\"type\":\"stop\",\"id\":\"a\\u0000b\"}", -EBADMSG,
                  "not a message: \\u0000 is not allowed without JSON_ALLOW_NUL near "
                  "'\"a\\u0000b\"'" },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_shim_request ShimRequest request = { 0 };
                cleanup_error Error error = ERROR_NULL;

                EXPECT_EQ(decode_request(cases[i].text, &request, &error), cases[i].r);
                EXPECT_STREQ(error.message, cases[i].says);
                EXPECT(!request.id && !request.storage);
        }
}

TEST(every_truncation_and_every_flipped_bit_is_handled)
{
        static const char text[] =
                "{\"type\":\"delete\",\"id\":\"x\",\"directories\":[\"/a\",\"/b\"]}";

        for (size_t n = 0; n < sizeof(text) - 1; n++) {
                cleanup_free char *copy = malloc(n + 1); /* exact size, for sanitizers */
                cleanup_shim_request ShimRequest request = { 0 };

                REQUIRE(copy);
                memcpy(copy, text, n);
                EXPECT_EQ(shim_request_decode(copy, n, &request, NULL), -EBADMSG);
        }
        for (size_t bit = 0; bit < (sizeof(text) - 1) * 8; bit++) {
                char copy[sizeof(text)];
                cleanup_shim_request ShimRequest request = { 0 };

                memcpy(copy, text, sizeof(text));
                copy[bit / 8] = (char) (copy[bit / 8] ^ (1 << bit % 8));
                (void) shim_request_decode(copy, sizeof(text) - 1, &request, NULL);
        }
}

TEST(members_may_be_unknown_or_missing)
{
        cleanup_shim_request ShimRequest request = { 0 };
        cleanup_shim_event ShimEvent event = { 0 };
        static const char started[] = "{\"type\":\"started\"}";

        EXPECT_EQ(decode_request("{\"type\":\"stop\",\"id\":\"x\",\"new\":[{}],\"signal\":9}",
                                 &request, NULL),
                  0);
        EXPECT_EQ(request.signal, 9);
        EXPECT_EQ(request.grace_usec, 0);
        EXPECT_EQ(shim_event_decode(started, strlen(started), &event, NULL), 0);
        EXPECT(!event.id);
        EXPECT_EQ(event.started_at, 0);
}

TEST(a_message_that_is_too_long_or_not_utf8_is_not_sent)
{
        cleanup_free char *large = malloc(SHIM_PROTOCOL_PACKET_MAX + 1), *packet = NULL;
        ShimRequest request = { .type = SHIM_REQUEST_SETUP };
        ShimEvent event = { .type = SHIM_EVENT_SETUP_FAILED, .message = "caf\xe9 \xc3\xbc" };
        cleanup_shim_event ShimEvent got = { 0 };
        size_t length = 0;

        REQUIRE(large);
        memset(large, 'x', SHIM_PROTOCOL_PACKET_MAX);
        large[SHIM_PROTOCOL_PACKET_MAX] = '\0';
        request.fstab = large;
        EXPECT_EQ(shim_request_encode(&request, &packet, &length), -EMSGSIZE);
        request.fstab = "/bad\xff";
        EXPECT_EQ(shim_request_encode(&request, &packet, &length), -EILSEQ);
        EXPECT(!packet);
        /* The output of a program, in contrast, is always sent. */
        REQUIRE(shim_event_encode(&event, &packet, &length) == 0);
        EXPECT_EQ(shim_event_decode(packet, length, &got, NULL), 0);
        EXPECT_STREQ(got.message, "caf? ??");
}

TEST(a_queue_keeps_its_order_and_its_limit)
{
        PacketQueue queue = { 0 };

        EXPECT_EQ(packet_queue_append(&queue, 6, strdup("abc"), 3), 0);
        EXPECT_EQ(packet_queue_append(&queue, 6, strdup("def"), 3), 0);
        EXPECT_EQ(packet_queue_append(&queue, 6, NULL, 1), -ENOBUFS);
        EXPECT_STREQ(queue.first->data, "abc");
        packet_queue_pop(&queue);
        EXPECT_STREQ(queue.first->data, "def");
        EXPECT_EQ(queue.bytes, 3);
        packet_queue_clear(&queue);
        EXPECT(!queue.first);
        EXPECT_EQ(queue.bytes, 0);
}
