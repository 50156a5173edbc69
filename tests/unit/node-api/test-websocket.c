/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node-api/wire/websocket.h"

#include "common/cleanup.h"
#include "tests/test.h"
#include "tests/unit/node-api/websocket-client.h"

typedef struct SocketWorld {
        WebSocket *socket;
        ByteQueue client, output;
        char *events;
        size_t events_size;
        FILE *log;
} SocketWorld;

static void on_world_start(bool is_text, void *userdata) {
        fprintf(((SocketWorld *) userdata)->log, "%s:", is_text ? "text" : "binary");
}

static void on_world_piece(const char *data, size_t length, void *userdata) {
        fprintf(((SocketWorld *) userdata)->log, "%.*s", (int) length, data);
}

static void on_world_end(void *userdata) {
        fprintf(((SocketWorld *) userdata)->log, ";");
}

static const WebSocketHandlers world_handlers = { on_world_start, on_world_piece, on_world_end };

static void world_init(SocketWorld *world) {
        *world = (SocketWorld){ 0 };
        world->log = open_memstream(&world->events, &world->events_size);
        REQUIRE(world->log &&
                websocket_new(&world_handlers, world, &world->output, &world->socket) >= 0);
}

static void world_done(SocketWorld *world) {
        websocket_free(world->socket);
        byte_queue_done(&world->client);
        byte_queue_done(&world->output);
        fclose(world->log);
        free(world->events);
}

#define cleanup_world cleanup_with(world_done)

static int deliver_in_pieces(SocketWorld *world, size_t piece) {
        int r = 0;

        while (r >= 0 && byte_queue_length(&world->client) > 0) {
                size_t n = MIN(piece, byte_queue_length(&world->client));

                r = websocket_receive(world->socket, byte_queue_bytes(&world->client), n);
                byte_queue_consume(&world->client, n);
        }
        byte_queue_done(&world->client);
        fflush(world->log);
        return r;
}

static bool output_is(SocketWorld *world, const char *bytes, size_t length) {
        bool is = byte_queue_length(&world->output) == length &&
                  (length == 0 || memcmp(byte_queue_bytes(&world->output), bytes, length) == 0);

        byte_queue_done(&world->output);
        return is;
}

TEST(messages_are_read_however_they_are_fragmented)
{
        static const size_t pieces[] = { 1, 2, 5, SIZE_MAX };

        for (size_t i = 0; i < N_ELEMENTS(pieces); i++) {
                cleanup_world SocketWorld world;

                world_init(&world);
                websocket_client_frame(&world.client, WEBSOCKET_FIN | WEBSOCKET_BINARY, "one", 3);
                websocket_client_frame(&world.client, WEBSOCKET_TEXT, "tw", 2);
                websocket_client_frame(&world.client, WEBSOCKET_FIN | WEBSOCKET_PING, "p", 1);
                websocket_client_frame(&world.client, WEBSOCKET_FIN | WEBSOCKET_CONTINUATION, "o",
                                       1);
                websocket_client_frame(&world.client, WEBSOCKET_FIN | WEBSOCKET_BINARY, "", 0);
                EXPECT_EQ(deliver_in_pieces(&world, pieces[i]), 0);
                EXPECT_STREQ(world.events, "binary:one;text:two;binary:;");
                EXPECT(output_is(&world, "\x8a\x01p", 3));
        }
}

TEST(long_message_is_passed_on_without_being_buffered)
{
        cleanup_world SocketWorld world;
        cleanup_free char *large = malloc(2 * MIB);

        world_init(&world);
        REQUIRE(large);
        memset(large, 'x', 2 * MIB);
        websocket_client_frame(&world.client, WEBSOCKET_FIN | WEBSOCKET_BINARY, large, 2 * MIB);
        EXPECT_EQ(deliver_in_pieces(&world, 16 * KIB), 0);
        EXPECT_EQ(strlen(world.events), 2 * MIB + strlen("binary:;"));
}

TEST(messages_are_sent_without_mask)
{
        cleanup_world SocketWorld world;

        world_init(&world);
        EXPECT_EQ(websocket_send(world.socket, false, "\1hello", 6), 0);
        EXPECT(output_is(&world, "\x82\x06\1hello", 8));
        EXPECT_EQ(websocket_send(world.socket, true, "1", 1), 0);
        EXPECT(output_is(&world,
                         "\x81\x01"
                         "1",
                         3));
}

TEST(close_frame_is_answered_and_ends_sending)
{
        cleanup_world SocketWorld world;

        world_init(&world);
        websocket_client_frame(&world.client, WEBSOCKET_FIN | WEBSOCKET_CLOSE, "\x03\xe8", 2);
        EXPECT_EQ(deliver_in_pieces(&world, SIZE_MAX), 0);
        EXPECT(websocket_is_gone(world.socket));
        EXPECT(output_is(&world, "\x88\x02\x03\xe8", 4));
        EXPECT_EQ(websocket_send(world.socket, false, "late", 4), 0);
        EXPECT(output_is(&world, "", 0));
}

TEST(data_after_a_close_frame_is_ignored)
{
        static const size_t pieces[] = { 1, SIZE_MAX };

        for (size_t i = 0; i < N_ELEMENTS(pieces); i++) {
                cleanup_world SocketWorld world;

                world_init(&world);
                websocket_client_frame(&world.client, WEBSOCKET_FIN | WEBSOCKET_CLOSE, "\x03\xe8",
                                       2);
                websocket_client_frame(&world.client, WEBSOCKET_FIN | WEBSOCKET_BINARY, "late", 4);
                REQUIRE(byte_queue_append(&world.client, SIZE_MAX, "\x82\1x\x82\1x", 6) >= 0);
                EXPECT_EQ(deliver_in_pieces(&world, pieces[i]), 0);
                EXPECT(websocket_is_gone(world.socket));
                EXPECT_STREQ(world.events, "");
        }
}

TEST(normal_close_has_code_1000)
{
        cleanup_world SocketWorld world;

        world_init(&world);
        EXPECT_EQ(websocket_close(world.socket), 0);
        EXPECT(output_is(&world, "\x88\x02\x03\xe8", 4));
        EXPECT(!websocket_is_gone(world.socket));
}

TEST(violations_end_the_connection)
{
        static const struct {
                const char *what;
                const char *bytes;
                size_t length;
        } cases[] = {
                { "not masked", "\x82\x01x", 3 },
                { "reserved bits", "\xf2\x80\0\0\0\0", 6 },
                { "unknown opcode", "\x83\x80\0\0\0\0", 6 },
                { "continuation of nothing", "\x80\x80\0\0\0\0", 6 },
                { "fragmented ping", "\x09\x80\0\0\0\0", 6 },
                { "text that is not UTF-8", "\x81\x81\0\0\0\0\xff", 7 },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_world SocketWorld world;

                world_init(&world);
                EXPECT_EQ(websocket_receive(world.socket, cases[i].bytes, cases[i].length),
                          -EPROTO);
                EXPECT(byte_queue_length(&world.output) > 0);
        }
}

TEST(client_that_reads_no_replies_is_disconnected)
{
        cleanup_world SocketWorld world;
        char data[120] = { 0 };
        int r = 0;

        world_init(&world);
        for (unsigned i = 0; i < WEBSOCKET_OUTPUT_MAX / 100 && r >= 0; i++) {
                websocket_client_frame(&world.client, WEBSOCKET_FIN | WEBSOCKET_PING, data,
                                       sizeof(data));
                r = deliver_in_pieces(&world, SIZE_MAX);
        }
        EXPECT_EQ(r, -ENOBUFS);
        EXPECT(byte_queue_length(&world.output) <= WEBSOCKET_OUTPUT_MAX);
}
