/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node-api/session/port-channels.h"

#include "agent/node-api/session/channel-socket.h"
#include "common/cleanup.h"
#include "tests/test.h"
#include "tests/unit/node-api/websocket-client.h"

#include <errno.h>

TEST(ports_of_a_query_are_read)
{
        ForwardedPorts ports = { 0 };

        EXPECT_EQ(forwarded_ports_add(&ports, "80,65535"), 0);
        EXPECT_EQ(forwarded_ports_add(&ports, "1"), 0);
        EXPECT_EQ(ports.n, 3);
        EXPECT_EQ(ports.numbers[0], 80);
        EXPECT_EQ(ports.numbers[1], 65535);
        EXPECT_EQ(ports.numbers[2], 1);
}

TEST(invalid_port_is_refused)
{
        static const char *const invalid[] = { "",    "0",   "65536", "80,",  ",80", "80, 81",
                                               " 80", "-80", "+80",   "0x50", "http" };

        for (size_t i = 0; i < N_ELEMENTS(invalid); i++) {
                ForwardedPorts ports = { 0 };

                EXPECT_EQ(forwarded_ports_add(&ports, invalid[i]), -EINVAL);
        }
}

TEST(number_of_ports_is_limited_to_the_number_of_channels)
{
        ForwardedPorts ports = { 0 };

        for (size_t i = 0; i < PORT_CHANNELS_MAX; i++)
                EXPECT_EQ(forwarded_ports_add(&ports, "80"), 0);
        EXPECT_EQ(forwarded_ports_add(&ports, "80"), -E2BIG);
}

TEST(the_first_known_protocol_of_the_client_is_chosen)
{
        EXPECT_STREQ(port_channels_protocol(NULL), "");
        EXPECT_STREQ(port_channels_protocol("v5.channel.k8s.io, v4.base64.channel.k8s.io"),
                     "v4.base64.channel.k8s.io");
        EXPECT_STREQ(port_channels_protocol("v4.channel.k8s.io,v4.base64.channel.k8s.io"),
                     "v4.channel.k8s.io");
        EXPECT(port_channels_protocol("channel.k8s.io") == NULL);
}

/* ---- the messages ---- */

static void log_channel_data(unsigned char channel, const char *data, size_t length,
                             void *userdata) {
        fprintf(userdata, "%u %.*s;", channel, (int) length, data);
}

TEST(binary_messages_start_with_their_channel)
{
        cleanup_free char *text = NULL;
        cleanup_with(channel_socket_freep) ChannelSocket *socket = NULL;
        ByteQueue client = { 0 }, output = { 0 };
        size_t size;
        FILE *log = open_memstream(&text, &size);

        REQUIRE(log && channel_socket_new(false, log_channel_data, log, &output, &socket) >= 0);
        websocket_client_frame(&client, WEBSOCKET_BINARY, "\2ab", 3);
        websocket_client_frame(&client, WEBSOCKET_FIN | WEBSOCKET_CONTINUATION, "c", 1);
        websocket_client_frame(&client, WEBSOCKET_FIN | WEBSOCKET_BINARY, "\0d", 2);
        websocket_client_frame(&client, WEBSOCKET_FIN | WEBSOCKET_BINARY, "\0", 1);
        EXPECT_EQ(channel_socket_receive(socket, byte_queue_bytes(&client),
                                         byte_queue_length(&client)),
                  0);
        EXPECT_EQ(channel_socket_send(socket, 3, "xy", 2), 0);
        REQUIRE(byte_queue_length(&output) == 5);
        EXPECT(memcmp(byte_queue_bytes(&output), "\x82\x03\x03xy", 5) == 0);
        fclose(log);
        EXPECT_STREQ(text, "2 ab;2 c;0 d;");
        byte_queue_done(&client);
        byte_queue_done(&output);
}

TEST(messages_of_channels_may_be_base64)
{
        cleanup_free char *text = NULL;
        cleanup_with(channel_socket_freep) ChannelSocket *socket = NULL;
        ByteQueue client = { 0 }, output = { 0 };
        size_t size;
        FILE *log = open_memstream(&text, &size);

        REQUIRE(log && channel_socket_new(true, log_channel_data, log, &output, &socket) >= 0);
        websocket_client_text(&client, "2aGVsbG8=");
        websocket_client_text(&client, "2***");
        websocket_client_frame(&client, WEBSOCKET_FIN | WEBSOCKET_CLOSE, "\3\350", 2);
        EXPECT_EQ(channel_socket_receive(socket, byte_queue_bytes(&client),
                                         byte_queue_length(&client)),
                  1);
        fclose(log);
        EXPECT_STREQ(text, "2 hello;");
        byte_queue_done(&client);
        byte_queue_done(&output);
}
