/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node-api/wire/session-wire.h"

#include "common/base64.h"
#include "common/cleanup.h"
#include "tests/test.h"
#include "tests/unit/node-api/spdy-client.h"
#include "tests/unit/node-api/websocket-client.h"

typedef struct WireWorld {
        SessionWire *wire;
        ByteQueue output;
        char *events;
        size_t events_size;
        FILE *log;
} WireWorld;

static void on_world_ready(void *userdata) {
        fprintf(((WireWorld *) userdata)->log, "ready;");
}

static void on_world_input(const char *data, size_t length, void *userdata) {
        fprintf(((WireWorld *) userdata)->log, "input %.*s;", (int) length, data);
}

static void on_world_input_end(void *userdata) {
        fprintf(((WireWorld *) userdata)->log, "end;");
}

static void on_world_resize(unsigned width, unsigned height, void *userdata) {
        fprintf(((WireWorld *) userdata)->log, "%ux%u;", width, height);
}

static const SessionWireHandlers world_handlers = { on_world_ready, on_world_input,
                                                    on_world_input_end, on_world_resize };

static void world_init(WireWorld *world, const SessionProtocol *protocol, SessionOptions options) {
        *world = (WireWorld){ 0 };
        world->log = open_memstream(&world->events, &world->events_size);
        REQUIRE(world->log && protocol &&
                session_wire_new(protocol, &options, &world_handlers, world, &world->output,
                                 &world->wire) >= 0);
        EXPECT_EQ(session_wire_start(world->wire), 0);
}

static void world_done(WireWorld *world) {
        session_wire_free(world->wire);
        byte_queue_done(&world->output);
        fclose(world->log);
        free(world->events);
}

#define cleanup_world cleanup_with(world_done)

static int deliver(WireWorld *world, ByteQueue *client) {
        int r = session_wire_receive(world->wire, byte_queue_bytes(client),
                                     byte_queue_length(client));

        byte_queue_done(client);
        fflush(world->log);
        return r;
}

static bool output_ends_with(const WireWorld *world, const char *bytes, size_t length) {
        size_t n = byte_queue_length(&world->output);

        return n >= length &&
               memcmp(byte_queue_bytes(&world->output) + n - length, bytes, length) == 0;
}

static bool output_has(const WireWorld *world, const char *text) {
        return memmem(byte_queue_bytes(&world->output), byte_queue_length(&world->output), text,
                      strlen(text)) != NULL;
}

static void open_stream(SpdyClient *client, uint32_t id, const char *type) {
        spdy_client_open(client, id, 0, (const char *const[]){ "streamtype", type, NULL });
}

TEST(spdy_session_is_ready_when_all_streams_are_open)
{
        cleanup_world WireWorld world;
        cleanup_with(spdy_client_done) SpdyClient client;

        world_init(&world, session_protocol_of_spdy("v4.channel.k8s.io"),
                   (SessionOptions){ .has_input = true, .has_output = true, .has_terminal = true });
        spdy_client_init(&client);
        open_stream(&client, 1, "error");
        open_stream(&client, 3, "stdin");
        open_stream(&client, 5, "stdout");
        EXPECT_EQ(deliver(&world, &client.out), 0);
        EXPECT_STREQ(world.events, "");
        open_stream(&client, 7, "resize");
        EXPECT_EQ(deliver(&world, &client.out), 0);
        spdy_client_data(&client, 7, 0, "{\"Width\":80,\"Height\":24}\n{\"Width\":8");
        spdy_client_data(&client, 7, 0, "1,\"Height\":25}");
        spdy_client_data(&client, 3, 1, "ls");
        EXPECT_EQ(deliver(&world, &client.out), 0);
        EXPECT_STREQ(world.events, "ready;80x24;81x25;input ls;end;");
        spdy_client_two_numbers(&client, 7, 0, 0);
        EXPECT_EQ(deliver(&world, &client.out), 1);
}

TEST(spdy_session_ends_with_result_and_goaway)
{
        cleanup_world WireWorld world;
        cleanup_with(spdy_client_done) SpdyClient client;
        static const char end[] = "\0\0\0\3\1\0\0\0"   /* stdout ends */
                                  "\0\0\0\1\1\0\0\2{}" /* error: the result */
                                  "\x80\3\0\3\0\0\0\x8\0\0\0\3\0\0\0\5"
                                  "\x80\3\0\3\0\0\0\x8\0\0\0\1\0\0\0\5"
                                  "\x80\3\0\7\0\0\0\x8\0\0\0\3\0\0\0\0";

        world_init(&world, session_protocol_of_spdy("v4.channel.k8s.io"),
                   (SessionOptions){ .has_output = true });
        spdy_client_init(&client);
        open_stream(&client, 1, "error");
        open_stream(&client, 3, "stdout");
        EXPECT_EQ(deliver(&world, &client.out), 0);
        EXPECT_EQ(session_wire_send(world.wire, SESSION_STANDARD_OUTPUT, "out", 3), 0);
        EXPECT(output_ends_with(&world, "\0\0\0\3\0\0\0\3out", 11));
        EXPECT_EQ(session_wire_send(world.wire, SESSION_STANDARD_ERROR, "dropped", 7), 0);
        EXPECT_EQ(session_wire_finish(world.wire, "{}", NULL), 0);
        EXPECT(!output_has(&world, "dropped"));
        EXPECT_EQ(byte_queue_length(&world.output) >= sizeof(end) - 1, true);
        /* The order of the resets does not matter. */
        EXPECT(output_has(&world, "{}"));
        EXPECT(output_ends_with(&world, "\x80\3\0\7\0\0\0\x8\0\0\0\3\0\0\0\0", 16));
}

TEST(first_protocol_version_over_spdy_reports_failures_as_text)
{
        cleanup_world WireWorld world;
        cleanup_with(spdy_client_done) SpdyClient client;

        world_init(&world, session_protocol_of_spdy("channel.k8s.io"),
                   (SessionOptions){ .has_input = true });
        spdy_client_init(&client);
        open_stream(&client, 1, "error");
        open_stream(&client, 3, "stdin");
        EXPECT_EQ(deliver(&world, &client.out), 0);
        EXPECT_STREQ(world.events, "ready;end;");
        EXPECT_EQ(session_wire_finish(world.wire, "{json}", "it failed"), 0);
        EXPECT(output_has(&world, "it failed") && !output_has(&world, "json"));
}

TEST(unknown_or_repeated_streams_are_reset)
{
        cleanup_world WireWorld world;
        cleanup_with(spdy_client_done) SpdyClient client;

        world_init(&world, session_protocol_of_spdy("v4.channel.k8s.io"),
                   (SessionOptions){ .has_output = true });
        spdy_client_init(&client);
        open_stream(&client, 1, "error");
        open_stream(&client, 3, "error");
        EXPECT_EQ(deliver(&world, &client.out), 0);
        EXPECT(output_ends_with(&world, "\x80\3\0\3\0\0\0\x8\0\0\0\3\0\0\0\5", 16));
        open_stream(&client, 5, "other");
        EXPECT_EQ(deliver(&world, &client.out), 0);
        EXPECT(output_ends_with(&world, "\x80\3\0\3\0\0\0\x8\0\0\0\5\0\0\0\5", 16));
        EXPECT_STREQ(world.events, "");
}

TEST(websocket_session_carries_channels)
{
        cleanup_world WireWorld world;
        ByteQueue client = { 0 };

        world_init(&world, session_protocol_of_websocket("v4.channel.k8s.io, v5.channel.k8s.io"),
                   (SessionOptions){ .has_input = true, .has_output = true, .has_terminal = true });
        EXPECT(output_ends_with(&world, "\x82\x01\x01", 3));
        websocket_client_frame(&client, WEBSOCKET_FIN | WEBSOCKET_BINARY, "\0ls", 3);
        websocket_client_frame(&client, WEBSOCKET_FIN | WEBSOCKET_BINARY,
                               "\4{\"Width\":80,\"Height\":24}", 25);
        websocket_client_frame(&client, WEBSOCKET_FIN | WEBSOCKET_BINARY, "\x63none", 5);
        websocket_client_frame(&client, WEBSOCKET_FIN | WEBSOCKET_BINARY, "\xff\0", 2);
        websocket_client_frame(&client, WEBSOCKET_FIN | WEBSOCKET_BINARY, "\0late", 5);
        EXPECT_EQ(deliver(&world, &client), 0);
        EXPECT_STREQ(world.events, "ready;input ls;80x24;end;");
        EXPECT_EQ(session_wire_send(world.wire, SESSION_STANDARD_OUTPUT, "out", 3), 0);
        EXPECT(output_ends_with(&world, "\x82\x04\1out", 6));
        EXPECT_EQ(session_wire_finish(world.wire, "{}", NULL), 0);
        EXPECT(output_ends_with(&world, "\x82\x03\3{}\x88\x02\x03\xe8", 9));
}

TEST(websocket_without_close_signal_ignores_it)
{
        cleanup_world WireWorld world;
        ByteQueue client = { 0 };

        world_init(&world, session_protocol_of_websocket("v4.channel.k8s.io"),
                   (SessionOptions){ .has_input = true });
        EXPECT(output_ends_with(&world, "\x82\x01\x03", 3));
        websocket_client_frame(&client, WEBSOCKET_FIN | WEBSOCKET_BINARY, "\xff\0", 2);
        websocket_client_frame(&client, WEBSOCKET_FIN | WEBSOCKET_BINARY, "\0more", 5);
        EXPECT_EQ(deliver(&world, &client), 0);
        EXPECT_STREQ(world.events, "ready;input more;");
        websocket_client_frame(&client, WEBSOCKET_FIN | WEBSOCKET_CLOSE, "\x03\xe8", 2);
        EXPECT_EQ(deliver(&world, &client), 1);
        EXPECT_STREQ(world.events, "ready;input more;end;");
}

TEST(close_signal_is_the_first_byte_of_its_message_however_it_is_fragmented)
{
        cleanup_world WireWorld world;
        ByteQueue client = { 0 };

        world_init(&world, session_protocol_of_websocket("v5.channel.k8s.io"),
                   (SessionOptions){ .has_input = true });
        websocket_client_frame(&client, WEBSOCKET_BINARY, "\xff\x7f", 2);
        websocket_client_frame(&client, WEBSOCKET_FIN | WEBSOCKET_CONTINUATION, "\0", 1);
        websocket_client_frame(&client, WEBSOCKET_FIN | WEBSOCKET_BINARY, "\0more", 5);
        EXPECT_EQ(deliver(&world, &client), 0);
        EXPECT_STREQ(world.events, "ready;input more;");
        websocket_client_frame(&client, WEBSOCKET_BINARY, "\xff", 1);
        websocket_client_frame(&client, WEBSOCKET_FIN | WEBSOCKET_CONTINUATION, "\0", 1);
        EXPECT_EQ(deliver(&world, &client), 0);
        EXPECT_STREQ(world.events, "ready;input more;end;");
}

TEST(base64_session_carries_text)
{
        cleanup_world WireWorld world;
        ByteQueue client = { 0 };

        world_init(&world, session_protocol_of_websocket("base64.channel.k8s.io"),
                   (SessionOptions){ .has_input = true, .has_output = true });
        EXPECT(output_ends_with(&world,
                                "\x81\x01"
                                "1",
                                3));
        websocket_client_text(&client, "0Zm9vCg==");
        websocket_client_text(&client, "0!!!");
        websocket_client_text(&client, "0");
        websocket_client_text(&client, "");
        EXPECT_EQ(deliver(&world, &client), 0);
        EXPECT_STREQ(world.events, "ready;input foo\n;");
        EXPECT_EQ(session_wire_send(world.wire, SESSION_STANDARD_OUTPUT, "\n", 1), 0);
        EXPECT(output_ends_with(&world,
                                "\x81\x05"
                                "1Cg==",
                                7));
        EXPECT_EQ(session_wire_finish(world.wire, "{}", "failed"), 0);
        EXPECT(output_ends_with(&world,
                                "\x81\x09"
                                "3ZmFpbGVk\x88\x02\x03\xe8",
                                15));
}

TEST(protocols_are_chosen_as_the_kubelet_does)
{
        EXPECT_STREQ(
                session_protocol_of_spdy("v5.channel.k8s.io,v4.channel.k8s.io, v3.channel.k8s.io")
                        ->name,
                "v4.channel.k8s.io");
        EXPECT_STREQ(session_protocol_of_spdy("channel.k8s.io, v4.channel.k8s.io")->name,
                     "channel.k8s.io");
        EXPECT(!session_protocol_of_spdy("v9.channel.k8s.io"));
        EXPECT(!session_protocol_of_spdy(""));
        EXPECT_STREQ(session_protocol_of_websocket(NULL)->name, "");
        EXPECT_STREQ(session_protocol_of_websocket("x, channel.k8s.io")->name, "channel.k8s.io");
        EXPECT(!session_protocol_of_websocket("x"));
        EXPECT(!session_protocol_of_websocket("v2.channel.k8s.io"));
        EXPECT_STREQ(session_spdy_protocol_name(3), "channel.k8s.io");
        EXPECT(!session_spdy_protocol_name(4));
}

TEST(invalid_terminal_sizes_are_ignored)
{
        static const struct {
                const char *text, *events;
        } cases[] = {
                { "{}", "ready;" },
                { "{\"Width\":0,\"Height\":1}", "ready;" },
                { "{\"Width\":70000,\"Height\":1}", "ready;" },
                { "{\"height\" : 3, \"width\" : 4 }", "ready;4x3;" },
                { "nonsense}{\"Width\":1,\"Height\":2}", "ready;1x2;" },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_world WireWorld world;
                ByteQueue client = { 0 };
                char message[64];

                world_init(&world, session_protocol_of_websocket("v5.channel.k8s.io"),
                           (SessionOptions){ .has_output = true, .has_terminal = true });
                (void) snprintf(message, sizeof(message), "\4%s", cases[i].text);
                websocket_client_frame(&client, WEBSOCKET_FIN | WEBSOCKET_BINARY, message,
                                       strlen(message));
                EXPECT_EQ(deliver(&world, &client), 0);
                EXPECT_STREQ(world.events, cases[i].events);
        }
}
