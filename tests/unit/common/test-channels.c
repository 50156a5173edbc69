/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/test.h"

#include "common/channels.h"
#include "common/cleanup.h"

#include <sys/socket.h>

typedef struct ReceivedMessage {
        unsigned n;
        unsigned char channel;
        size_t length;
        char data[64];
} ReceivedMessage;

typedef struct ChannelPair {
        int fds[2];
        Channels *client, *server;
        ReceivedMessage by_client, by_server;
} ChannelPair;

static void on_channel_message(unsigned char channel, const char *data, size_t length,
                               void *userdata) {
        ReceivedMessage *heard = userdata;

        heard->n++;
        heard->channel = channel;
        heard->length = length;
        memcpy(heard->data, data, MIN(length, sizeof(heard->data)));
}

static void open_channel_pair(ChannelPair *ends) {
        *ends = (ChannelPair){ 0 };
        REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends->fds) == 0);
        REQUIRE(channels_new(ends->fds[0], true, on_channel_message, &ends->by_client,
                             &ends->client) >= 0);
        REQUIRE(channels_new(ends->fds[1], false, on_channel_message, &ends->by_server,
                             &ends->server) >= 0);
}

static void close_channel_pair(ChannelPair *ends) {
        channels_free(ends->client);
        channels_free(ends->server);
        close_fd(ends->fds[0]);
        close_fd(ends->fds[1]);
}

TEST(a_message_arrives_on_its_channel)
{
        ChannelPair ends;

        open_channel_pair(&ends);
        EXPECT_EQ(channels_send(ends.client, CHANNEL_INPUT, "hello", 5), 0);
        EXPECT(channels_wants_write(ends.client));
        EXPECT_EQ(channels_write(ends.client), 0);
        EXPECT_EQ(channels_read(ends.server), 0);
        EXPECT_EQ(ends.by_server.n, 1);
        EXPECT_EQ(ends.by_server.channel, CHANNEL_INPUT);
        EXPECT(ends.by_server.length == 5 && memcmp(ends.by_server.data, "hello", 5) == 0);
        EXPECT_EQ(channels_send(ends.server, CHANNEL_CLOSE, NULL, 0), 0);
        EXPECT_EQ(channels_write(ends.server), 0);
        EXPECT_EQ(channels_read(ends.client), 0);
        EXPECT_EQ(ends.by_client.channel, CHANNEL_CLOSE);
        EXPECT_EQ(ends.by_client.length, 0);
        close_channel_pair(&ends);
}

TEST(a_held_channel_delivers_no_messages_until_it_is_released)
{
        ChannelPair ends;

        open_channel_pair(&ends);
        channels_hold(ends.server, true);
        EXPECT_EQ(channels_send(ends.client, CHANNEL_INPUT, "x", 1), 0);
        EXPECT_EQ(channels_write(ends.client), 0);
        EXPECT_EQ(channels_read(ends.server), 0);
        EXPECT_EQ(ends.by_server.n, 0);
        channels_hold(ends.server, false);
        EXPECT_EQ(channels_read(ends.server), 0);
        EXPECT_EQ(ends.by_server.n, 1);
        close_channel_pair(&ends);
}

TEST(bytes_that_the_socket_does_not_take_are_queued_and_counted)
{
        cleanup_free char *data = calloc(1, 32 * KIB);
        ChannelPair ends;

        REQUIRE(data);
        open_channel_pair(&ends);
        for (unsigned i = 0; i < 64; i++) {
                EXPECT_EQ(channels_send(ends.server, CHANNEL_OUTPUT, data, 32 * KIB), 0);
                EXPECT_EQ(channels_write(ends.server), 0);
        }
        EXPECT(channels_queued(ends.server) > CHANNELS_QUEUE_MAX);
        for (unsigned i = 0; i < 1000 && channels_queued(ends.server) > 0; i++) {
                EXPECT_EQ(channels_read(ends.client), 0);
                EXPECT_EQ(channels_write(ends.server), 0);
        }
        EXPECT_EQ(channels_read(ends.client), 0);
        EXPECT_EQ(ends.by_client.n, 64);
        EXPECT_EQ(ends.by_client.length, 32 * KIB);
        close_channel_pair(&ends);
}

TEST(either_end_can_close_the_connection)
{
        ChannelPair ends;

        open_channel_pair(&ends);
        EXPECT_EQ(channels_send(ends.server, CHANNEL_STATUS, "{}", 2), 0);
        channels_close(ends.server);
        EXPECT_EQ(channels_write(ends.server), 0);
        EXPECT_EQ(channels_read(ends.client), 0);
        EXPECT_EQ(ends.by_client.channel, CHANNEL_STATUS);
        EXPECT(!channels_is_over(ends.server));
        EXPECT_EQ(channels_write(ends.client), 0);
        EXPECT_EQ(channels_read(ends.server), 0);
        EXPECT(channels_is_over(ends.server));
        EXPECT(channels_is_over(ends.client));
        close_channel_pair(&ends);
}

TEST(data_after_a_close_frame_is_not_awaited)
{
        ChannelPair ends;

        open_channel_pair(&ends);
        channels_close(ends.client);
        EXPECT_EQ(channels_write(ends.client), 0);
        REQUIRE(send(ends.fds[0], "more", 4, 0) == 4);
        EXPECT(channels_wants_read(ends.server));
        EXPECT_EQ(channels_read(ends.server), 0);
        EXPECT(!channels_wants_read(ends.server));
        EXPECT(channels_wants_write(ends.server) && !channels_is_over(ends.server));
        EXPECT_EQ(channels_write(ends.server), 0);
        EXPECT(!channels_wants_read(ends.server) && !channels_wants_write(ends.server));
        EXPECT(channels_is_over(ends.server));
        close_channel_pair(&ends);
}

TEST(a_closed_peer_and_invalid_frames_give_different_errors)
{
        static const char nonsense[] = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
        ChannelPair ends;

        open_channel_pair(&ends);
        REQUIRE(send(ends.fds[0], nonsense, sizeof(nonsense), 0) > 0);
        EXPECT_EQ(channels_read(ends.server), -EPROTO);
        ends.fds[1] = close_fd(ends.fds[1]);
        EXPECT_EQ(channels_read(ends.client), -ECONNRESET);
        close_channel_pair(&ends);
}

TEST(a_message_that_is_too_long_ends_the_connection)
{
        cleanup_free char *data = calloc(1, CHANNELS_MESSAGE_MAX + 1);
        ChannelPair ends;
        int r = 0;

        REQUIRE(data);
        open_channel_pair(&ends);
        EXPECT_EQ(channels_send(ends.client, CHANNEL_INPUT, data, CHANNELS_MESSAGE_MAX), 0);
        for (unsigned i = 0; i < 1000 && r == 0; i++) {
                EXPECT_EQ(channels_write(ends.client), 0);
                r = channels_read(ends.server);
        }
        EXPECT_EQ(r, -EPROTO);
        EXPECT_EQ(ends.by_server.n, 0);
        close_channel_pair(&ends);
}

TEST(a_peer_that_sends_requests_without_reading_replies_is_not_read)
{
        static const unsigned char ping[] = { 0x89, 0x80, 1, 2, 3, 4 };
        unsigned n_sent = 0;
        ChannelPair ends;

        open_channel_pair(&ends);
        for (unsigned i = 0; i < 100000; i++) {
                if (send(ends.fds[0], ping, sizeof(ping), MSG_DONTWAIT) == sizeof(ping))
                        n_sent++;
                EXPECT_EQ(channels_read(ends.server), 0);
                EXPECT_EQ(channels_write(ends.server), 0);
        }
        EXPECT(!channels_wants_read(ends.server));
        EXPECT(n_sent < 50000);
        close_channel_pair(&ends);
}

TEST(data_of_a_closed_peer_is_read_although_writing_fails)
{
        static const char zeros[16384];
        ChannelPair ends;

        open_channel_pair(&ends);
        for (unsigned i = 0; i < 1100; i++)
                EXPECT_EQ(channels_send(ends.client, CHANNEL_INPUT, zeros, sizeof(zeros)), 0);
        EXPECT_EQ(channels_write(ends.client), 0);
        EXPECT(!channels_wants_read(ends.client));
        EXPECT_EQ(channels_send(ends.server, CHANNEL_STATUS, "exit 7", 6), 0);
        EXPECT_EQ(channels_write(ends.server), 0);
        ends.server = channels_free(ends.server);
        close_fd(ends.fds[1]);
        ends.fds[1] = -EBADF;
        EXPECT(channels_write(ends.client) < 0);
        EXPECT(!channels_wants_write(ends.client));
        EXPECT(channels_wants_read(ends.client));
        (void) channels_read(ends.client);
        EXPECT_EQ(ends.by_client.n, 1);
        EXPECT_EQ(ends.by_client.channel, CHANNEL_STATUS);
        EXPECT(channels_read(ends.client) < 0);
        close_channel_pair(&ends);
}
