/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node-api/wire/spdy.h"

#include "common/cleanup.h"
#include "tests/test.h"
#include "tests/unit/node-api/spdy-client.h"

/* A connection with its client; the server's reports are collected in a text. */
typedef struct SpdyWorld {
        SpdyClient client;
        ByteQueue output;
        Spdy *spdy;
        bool refuses;
        char *events;
        size_t events_size;
        FILE *log;
} SpdyWorld;

static int on_world_stream(uint32_t stream, const SpdyHeaders *headers, void *userdata) {
        SpdyWorld *world = userdata;

        fprintf(world->log, "open %u %s;", stream, strna(spdy_header_value(headers, "streamtype")));
        return world->refuses ? -EINVAL : 0;
}

static void on_world_data(uint32_t stream, const char *data, size_t length, void *userdata) {
        fprintf(((SpdyWorld *) userdata)->log, "data %u %.*s;", stream, (int) length, data);
}

static void on_world_end(uint32_t stream, void *userdata) {
        fprintf(((SpdyWorld *) userdata)->log, "end %u;", stream);
}

static void on_world_reset(uint32_t stream, void *userdata) {
        fprintf(((SpdyWorld *) userdata)->log, "reset %u;", stream);
}

static const SpdyHandlers world_handlers = { on_world_stream, on_world_data, on_world_end,
                                             on_world_reset };

static void world_init(SpdyWorld *world) {
        *world = (SpdyWorld){ 0 };
        spdy_client_init(&world->client);
        world->log = open_memstream(&world->events, &world->events_size);
        REQUIRE(world->log && spdy_new(&world_handlers, world, &world->output, &world->spdy) >= 0);
}

static void world_done(SpdyWorld *world) {
        spdy_client_done(&world->client);
        byte_queue_done(&world->output);
        spdy_free(world->spdy);
        fclose(world->log);
        free(world->events);
}

#define cleanup_world cleanup_with(world_done)

/* Passes the client's data to the server, in pieces of this size. */
static int deliver_in_pieces(SpdyWorld *world, size_t piece) {
        ByteQueue *out = &world->client.out;
        int r = 0;

        while (r >= 0 && byte_queue_length(out) > 0) {
                size_t n = MIN(piece, byte_queue_length(out));

                r = spdy_receive(world->spdy, byte_queue_bytes(out), n);
                byte_queue_consume(out, n);
        }
        byte_queue_done(out);
        return r;
}

static int deliver(SpdyWorld *world) {
        return deliver_in_pieces(world, SIZE_MAX);
}

static const char *take_events(SpdyWorld *world) {
        static char text[4096];

        fflush(world->log);
        (void) snprintf(text, sizeof(text), "%s", strna(world->events));
        rewind(world->log);
        return text;
}

/* The frames that the server has sent, as text: "reply 1;data 1 hello;fin 1;" */
static const char *take_frames(SpdyWorld *world) {
        static char text[4096];
        const unsigned char *p = (const unsigned char *) byte_queue_bytes(&world->output);
        size_t left = byte_queue_length(&world->output), n = 0;

        text[0] = '\0';
        while (left >= 8) {
                size_t length = (size_t) p[5] << 16 | (size_t) p[6] << 8 | p[7];
                bool is_data = !(p[0] & 0x80);
                unsigned number = is_data ? p[3] : (unsigned) p[11] | (unsigned) p[10] << 8;
                static const char *const names[] = { "", "", "reply", "rst",
                                                     "", "", "ping",  "goaway" };

                REQUIRE(left >= 8 + length && n < sizeof(text) - 256);
                if (is_data)
                        n += (size_t) snprintf(text + n, sizeof(text) - n, "%s %u %.*s;",
                                               p[4] & 1 ? "fin" : "data", number,
                                               (int) MIN(length, 20U), (const char *) p + 8);
                else if (p[3] == 3 || p[3] == 7)
                        n += (size_t) snprintf(text + n, sizeof(text) - n, "%s %u %u;", names[p[3]],
                                               number, p[15]);
                else
                        n += (size_t) snprintf(text + n, sizeof(text) - n, "%s %u;", names[p[3]],
                                               number);
                p += 8 + length;
                left -= 8 + length;
        }
        EXPECT_EQ(left, 0);
        byte_queue_done(&world->output);
        return text;
}

static const char *const stdin_headers[] = { "streamtype", "stdin", NULL };
static const char *const stdout_headers[] = { "streamtype", "stdout", NULL };

TEST(compression_dictionary_is_that_of_spdy_3)
{
        unsigned char dictionary[2048];
        size_t n = spdy_dictionary(dictionary, sizeof(dictionary));

        EXPECT_EQ(n, 1423);
        EXPECT_EQ(adler32(adler32(0, NULL, 0), dictionary, (uInt) n), 0xe3c6a7c2);
}

TEST(streams_carry_data_however_it_is_fragmented)
{
        static const size_t pieces[] = { 1, 2, 3, 7, 8, 9, 100, SIZE_MAX };

        for (size_t i = 0; i < N_ELEMENTS(pieces); i++) {
                cleanup_world SpdyWorld world;

                world_init(&world);
                spdy_client_open(&world.client, 1, 0, stdin_headers);
                spdy_client_open(&world.client, 3, 0, stdout_headers);
                spdy_client_data(&world.client, 1, 0, "x");
                spdy_client_data(&world.client, 1, 1, "");
                EXPECT_EQ(deliver_in_pieces(&world, pieces[i]), 0);
                EXPECT_STREQ(take_events(&world), "open 1 stdin;open 3 stdout;data 1 x;end 1;");
                EXPECT_STREQ(take_frames(&world), "reply 1;reply 3;");
        }
}

TEST(reply_can_be_decompressed_by_the_client)
{
        cleanup_world SpdyWorld world;
        unsigned char block[64], dictionary[2048];
        const unsigned char *frame;
        z_stream zlib = { 0 };

        world_init(&world);
        REQUIRE(inflateInit(&zlib) == Z_OK);
        for (uint32_t id = 1; id <= 3; id += 2) {
                spdy_client_open(&world.client, id, 0, stdin_headers);
                EXPECT_EQ(deliver(&world), 0);
                frame = (const unsigned char *) byte_queue_bytes(&world.output);
                zlib.next_in = (unsigned char *) (uintptr_t) frame + 12;
                zlib.avail_in = (uInt) byte_queue_length(&world.output) - 12;
                zlib.next_out = block;
                zlib.avail_out = sizeof(block);
                if (id == 1) {
                        EXPECT_EQ(inflate(&zlib, Z_SYNC_FLUSH), Z_NEED_DICT);
                        EXPECT_EQ(inflateSetDictionary(
                                          &zlib, dictionary,
                                          (uInt) spdy_dictionary(dictionary, sizeof(dictionary))),
                                  Z_OK);
                }
                EXPECT_EQ(inflate(&zlib, Z_SYNC_FLUSH), Z_OK);
                EXPECT_EQ(sizeof(block) - zlib.avail_out, 4);
                EXPECT_EQ(block[3], 0);
                byte_queue_done(&world.output);
        }
        inflateEnd(&zlib);
}

TEST(sent_data_is_split_and_ends_with_fin)
{
        cleanup_world SpdyWorld world;
        cleanup_free char *large = calloc(1, 70000);

        world_init(&world);
        spdy_client_open(&world.client, 1, 0, stdout_headers);
        EXPECT_EQ(deliver(&world), 0);
        byte_queue_done(&world.output);
        EXPECT_EQ(spdy_send(world.spdy, 1, "hello", 5, false), 0);
        EXPECT_EQ(spdy_send(world.spdy, 1, NULL, 0, true), 0);
        EXPECT_EQ(spdy_send(world.spdy, 1, "late", 4, false), 0);
        EXPECT_EQ(spdy_send(world.spdy, 9, "unknown", 7, false), 0);
        EXPECT_STREQ(take_frames(&world), "data 1 hello;fin 1 ;");
        spdy_client_open(&world.client, 3, 0, stdout_headers);
        EXPECT_EQ(deliver(&world), 0);
        byte_queue_done(&world.output);
        EXPECT_EQ(spdy_send(world.spdy, 3, large, 70000, true), 0);
        EXPECT_EQ(byte_queue_length(&world.output), 70000 + 3 * 8);
}

TEST(pings_of_the_client_are_sent_back)
{
        cleanup_world SpdyWorld world;

        world_init(&world);
        spdy_client_ping(&world.client, 1);
        spdy_client_ping(&world.client, 2);
        spdy_client_ping(&world.client, 0x103);
        EXPECT_EQ(deliver(&world), 0);
        EXPECT_STREQ(take_frames(&world), "ping 1;ping 259;");
}

TEST(settings_and_window_updates_are_ignored)
{
        cleanup_world SpdyWorld world;
        static const unsigned char none[4] = { 0 };

        world_init(&world);
        spdy_client_control(&world.client, 4, 0, none, sizeof(none));
        spdy_client_two_numbers(&world.client, 9, 1, 100);
        EXPECT_EQ(deliver(&world), 0);
        EXPECT_STREQ(take_events(&world), "");
}

TEST(streams_with_invalid_numbers_are_reset_after_reading_their_headers)
{
        cleanup_world SpdyWorld world;

        world_init(&world);
        spdy_client_open(&world.client, 5, 0, stdin_headers);
        spdy_client_open(&world.client, 2, 0, stdin_headers);
        spdy_client_open(&world.client, 5, 0, stdin_headers);
        spdy_client_open(&world.client, 3, 0, stdout_headers);
        spdy_client_open(&world.client, 7, 0, stdout_headers);
        EXPECT_EQ(deliver(&world), 0);
        EXPECT_STREQ(take_events(&world), "open 5 stdin;open 7 stdout;");
        EXPECT_STREQ(take_frames(&world), "reply 5;rst 2 1;rst 5 1;rst 3 1;reply 7;");
}

TEST(refused_stream_is_reset)
{
        cleanup_world SpdyWorld world;

        world_init(&world);
        world.refuses = true;
        spdy_client_open(&world.client, 1, 0, stdin_headers);
        spdy_client_data(&world.client, 1, 0, "dropped");
        EXPECT_EQ(deliver(&world), 0);
        EXPECT_STREQ(take_events(&world), "open 1 stdin;");
        EXPECT_STREQ(take_frames(&world), "rst 1 5;");
}

/* With FIN, such a stream would have ended immediately and would not count. */
TEST(stream_on_which_nothing_may_be_sent_is_reset)
{
        enum {
                FIN = 1,
                UNIDIRECTIONAL = 2,
        };
        cleanup_world SpdyWorld world;

        world_init(&world);
        spdy_client_open(&world.client, 1, UNIDIRECTIONAL, stdin_headers);
        spdy_client_open(&world.client, 3, FIN | UNIDIRECTIONAL, stdin_headers);
        spdy_client_open(&world.client, 5, FIN, stdout_headers);
        EXPECT_EQ(deliver(&world), 0);
        EXPECT_STREQ(take_events(&world), "open 5 stdout;end 5;");
        EXPECT_STREQ(take_frames(&world), "rst 1 1;rst 3 1;reply 5;");
}

/* The caller may still have bytes to deliver before it ends the connection. */
TEST(an_error_ends_the_connection_permanently)
{
        static const unsigned char too_long[] = { 0x80, 3, 0, 1, 0, 0xff, 0xff, 0xff };
        static const char rest[64 * 1024];
        cleanup_world SpdyWorld world;

        world_init(&world);
        EXPECT_EQ(spdy_receive(world.spdy, too_long, sizeof(too_long)), -EPROTO);
        for (int i = 0; i < 3; i++)
                EXPECT_EQ(spdy_receive(world.spdy, rest, sizeof(rest)), -EPROTO);
        EXPECT_STREQ(take_events(&world), "");
}

TEST(number_of_streams_is_limited)
{
        cleanup_world SpdyWorld world;

        world_init(&world);
        for (uint32_t i = 0; i <= SPDY_STREAMS_MAX; i++)
                spdy_client_open(&world.client, 2 * i + 1, 0, stdin_headers);
        EXPECT_EQ(deliver(&world), 0);
        byte_queue_done(&world.output);
        EXPECT_EQ(spdy_send(world.spdy, 2 * SPDY_STREAMS_MAX - 1, "a", 1, true), 0);
        EXPECT(byte_queue_length(&world.output) > 0);
        byte_queue_done(&world.output);
        EXPECT_EQ(spdy_send(world.spdy, 2 * SPDY_STREAMS_MAX + 1, "a", 1, true), 0);
        EXPECT_EQ(byte_queue_length(&world.output), 0);
}

TEST(reset_by_either_side_removes_the_stream)
{
        cleanup_world SpdyWorld world;

        world_init(&world);
        spdy_client_open(&world.client, 1, 0, stdin_headers);
        spdy_client_two_numbers(&world.client, 3, 1, 5);
        spdy_client_two_numbers(&world.client, 3, 1, 5);
        spdy_client_open(&world.client, 3, 0, stdout_headers);
        EXPECT_EQ(deliver(&world), 0);
        EXPECT_STREQ(take_events(&world), "open 1 stdin;reset 1;open 3 stdout;");
        byte_queue_done(&world.output);
        EXPECT_EQ(spdy_reset(world.spdy, 3, SPDY_CANCEL), 0);
        EXPECT_EQ(spdy_reset(world.spdy, 3, SPDY_CANCEL), 0);
        EXPECT_STREQ(take_frames(&world), "rst 3 5;");
}

TEST(goaway_ends_all_streams_and_stops_reading)
{
        cleanup_world SpdyWorld world;

        world_init(&world);
        spdy_client_open(&world.client, 1, 0, stdin_headers);
        spdy_client_open(&world.client, 3, 0, stdout_headers);
        spdy_client_two_numbers(&world.client, 7, 0, 0);
        spdy_client_data(&world.client, 1, 0, "ignored");
        EXPECT_EQ(deliver(&world), 0);
        EXPECT(spdy_is_gone(world.spdy));
        EXPECT_STREQ(take_events(&world), "open 1 stdin;open 3 stdout;end 1;end 3;");
        byte_queue_done(&world.output);
        EXPECT_EQ(spdy_go_away(world.spdy), 0);
        EXPECT_STREQ(take_frames(&world), "rst 1 5;rst 3 5;goaway 3 0;");
}

TEST(header_bomb_ends_the_connection)
{
        cleanup_world SpdyWorld world;
        cleanup_free char *block = calloc(1, 8 * MIB);

        world_init(&world);
        REQUIRE(block);
        spdy_client_open_raw(&world.client, 1, 0, block, 8 * MIB);
        EXPECT_EQ(deliver(&world), -EPROTO);
        EXPECT_STREQ(take_events(&world), "");
}

TEST(damaged_headers_end_the_connection)
{
        static const struct {
                const char *what;
                size_t length;
                const char *block;
        } cases[] = {
                { "no count", 2, "\0\0" },
                { "a name is missing", 4, "\0\0\0\1" },
                { "a value is missing", 9, "\0\0\0\1\0\0\0\1a" },
                { "a length beyond the end", 12, "\0\0\0\1\377\377\377\377aaaa" },
                { "upper case", 14, "\0\0\0\1\0\0\0\1A\0\0\0\1b" },
                { "an empty name", 13, "\0\0\0\1\0\0\0\0\0\0\0\1b" },
                { "a name twice", 24, "\0\0\0\2\0\0\0\1a\0\0\0\1b\0\0\0\1a\0\0\0\1b" },
                { "bytes after the end", 5, "\0\0\0\0a" },
                { "too many", 4, "\0\0\1\0" },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_world SpdyWorld world;

                world_init(&world);
                spdy_client_open_raw(&world.client, 1, 0, cases[i].block, cases[i].length);
                EXPECT_EQ(deliver(&world), -EPROTO);
        }
}

TEST(first_of_several_values_is_found)
{
        cleanup_world SpdyWorld world;
        static const char block[] = "\0\0\0\1\0\0\0\12streamtype\0\0\0\13stdin\0error";

        world_init(&world);
        spdy_client_open_raw(&world.client, 1, 0, block, sizeof(block) - 1);
        EXPECT_EQ(deliver(&world), 0);
        EXPECT_STREQ(take_events(&world), "open 1 stdin;");
}

TEST(invalid_frames_end_the_connection)
{
        static const struct {
                const char *what;
                unsigned char bytes[20];
                size_t length;
        } cases[] = {
                { "version 2", { 0x80, 2, 0, 6, 0, 0, 0, 4, 0, 0, 0, 1 }, 12 },
                { "unknown type", { 0x80, 3, 0, 5, 0, 0, 0, 4, 0, 0, 0, 1 }, 12 },
                { "ping with flags", { 0x80, 3, 0, 6, 1, 0, 0, 4, 0, 0, 0, 1 }, 12 },
                { "short ping", { 0x80, 3, 0, 6, 0, 0, 0, 0 }, 8 },
                { "short rst", { 0x80, 3, 0, 3, 0, 0, 0, 4, 0, 0, 0, 1 }, 12 },
                { "rst without status", { 0x80, 3, 0, 3, 0, 0, 0, 8, 0, 0, 0, 1 }, 16 },
                { "long control frame", { 0x80, 3, 0, 1, 0, 0xff, 0xff, 0xff }, 8 },
                { "data of stream 0", { 0, 0, 0, 0, 0, 0, 0, 1 }, 8 },
                { "syn_stream without headers", { 0x80, 3, 0, 1, 0, 0, 0, 10 }, 18 },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_world SpdyWorld world;

                world_init(&world);
                EXPECT_EQ(spdy_receive(world.spdy, cases[i].bytes, cases[i].length), -EPROTO);
        }
}

TEST(client_that_reads_no_replies_is_disconnected)
{
        cleanup_world SpdyWorld world;
        int r = 0;

        world_init(&world);
        for (unsigned i = 0; i < SPDY_OUTPUT_MAX / 12 + 1 && r >= 0; i++) {
                spdy_client_ping(&world.client, 1);
                r = deliver(&world);
        }
        EXPECT_EQ(r, -ENOBUFS);
        EXPECT(byte_queue_length(&world.output) <= SPDY_OUTPUT_MAX);
}
