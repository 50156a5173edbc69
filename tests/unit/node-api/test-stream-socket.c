/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node-api/http/stream-socket.h"

#include "common/cleanup.h"
#include "common/clock.h"
#include "tests/test.h"

#include <errno.h>
#include <sys/socket.h>

typedef struct SocketWorld {
        sd_event *event;
        int fds[2];
        StreamSocket *socket;
        int error;
        size_t received;
        size_t room, sent; /* bytes of the fake transport */
        int send_error;
        unsigned n_written;
} SocketWorld;

static void on_world_data(const char *data, size_t length, void *userdata) {
        ((SocketWorld *) userdata)->received += length;
}

static void on_world_end(void *userdata) {
}

static void on_world_written(void *userdata) {
        ((SocketWorld *) userdata)->n_written++;
}

static void on_world_error(int error, void *userdata) {
        SocketWorld *world = userdata;

        world->error = error;
        (void) sd_event_exit(world->event, 0);
}

static const StreamSocketHandlers world_socket_handlers = { on_world_data, on_world_end,
                                                            on_world_written, on_world_error };

TEST(a_socket_without_a_byte_times_out)
{
        SocketWorld world = { 0 };

        REQUIRE(sd_event_new(&world.event) >= 0);
        REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, world.fds) == 0);
        REQUIRE(stream_socket_new(world.event, world.fds[0], &world_socket_handlers, &world,
                                  &world.socket) >= 0);
        EXPECT_EQ(stream_socket_limit_idle(world.socket, 20 * USEC_PER_MSEC), 0);
        REQUIRE(send(world.fds[1], "abc", 3, MSG_NOSIGNAL) == 3);
        EXPECT_EQ(sd_event_loop(world.event), 0);
        EXPECT_EQ(world.received, 3);
        EXPECT_EQ(world.error, -ETIMEDOUT);
        stream_socket_free(world.socket);
        close_fd(world.fds[0]);
        close_fd(world.fds[1]);
        sd_event_unref(world.event);
}

TEST(data_from_before_the_peer_closed_is_read_though_nothing_can_be_written)
{
        SocketWorld world = { 0 };

        REQUIRE(sd_event_new(&world.event) >= 0);
        REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, world.fds) == 0);
        REQUIRE(stream_socket_new(world.event, world.fds[0], &world_socket_handlers, &world,
                                  &world.socket) >= 0);
        stream_socket_read_to_the_end(world.socket);
        REQUIRE(send(world.fds[1], "abc", 3, MSG_NOSIGNAL) == 3);
        world.fds[1] = close_fd(world.fds[1]);
        REQUIRE(byte_queue_append(stream_socket_queue(world.socket), SIZE_MAX, "x", 1) >= 0);
        stream_socket_update(world.socket);
        EXPECT_EQ(sd_event_loop(world.event), 0);
        EXPECT_EQ(world.received, 3);
        EXPECT_EQ(world.error, -EPIPE);
        EXPECT_EQ(byte_queue_length(stream_socket_queue(world.socket)), 0);
        stream_socket_free(world.socket);
        close_fd(world.fds[0]);
        sd_event_unref(world.event);
}

/* ---- a transport ---- */

static ssize_t receive_nothing(void *userdata, void *buffer, size_t size) {
        return -EAGAIN;
}

static ssize_t send_to_world(void *userdata, const void *data, size_t length) {
        SocketWorld *world = userdata;
        size_t n = MIN(length, world->room);

        if (world->send_error < 0)
                return world->send_error;
        world->room -= n;
        world->sent += n;
        return n > 0 ? (ssize_t) n : -EAGAIN;
}

static void shut_nothing(void *userdata) {
}

static const StreamTransport world_transport = { receive_nothing, send_to_world, shut_nothing };

static bool open_client_world(SocketWorld *world) {
        ClientStream client = { .transport = &world_transport, .transport_userdata = world };

        if (sd_event_new(&world->event) < 0 ||
            socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, world->fds) < 0)
                return false;
        client.fd = world->fds[0];
        return stream_socket_new_client(world->event, &client, &world_socket_handlers, world,
                                        &world->socket) >= 0;
}

static void close_client_world(SocketWorld *world) {
        stream_socket_free(world->socket);
        close_fd(world->fds[0]);
        close_fd(world->fds[1]);
        sd_event_unref(world->event);
}

static bool queue_bytes(SocketWorld *world, size_t length) {
        static const char zeros[STREAM_QUEUE_HIGH];

        return byte_queue_append(stream_socket_queue(world->socket), SIZE_MAX, zeros, length) >= 0;
}

TEST(queue_of_a_client_is_written_without_the_loop)
{
        SocketWorld world = { .room = SIZE_MAX };

        REQUIRE(open_client_world(&world));
        REQUIRE(queue_bytes(&world, 1000));
        stream_socket_update(world.socket);
        EXPECT_EQ(world.sent, 1000);
        EXPECT_EQ(sd_event_run(world.event, 0), 0);
        EXPECT_EQ(world.n_written, 0);
        close_client_world(&world);
}

TEST(a_producer_is_notified_when_its_full_queue_was_written)
{
        SocketWorld world = { .room = SIZE_MAX };

        REQUIRE(open_client_world(&world));
        REQUIRE(queue_bytes(&world, STREAM_QUEUE_HIGH));
        stream_socket_update(world.socket);
        EXPECT_EQ(world.sent, STREAM_QUEUE_HIGH);
        EXPECT_EQ(world.n_written, 0);
        EXPECT_EQ(sd_event_run(world.event, 0), 1);
        EXPECT_EQ(world.n_written, 1);
        EXPECT_EQ(sd_event_run(world.event, 0), 0);
        close_client_world(&world);
}

TEST(data_that_a_client_does_not_accept_is_written_by_the_loop)
{
        SocketWorld world = { .room = 600 };

        REQUIRE(open_client_world(&world));
        REQUIRE(queue_bytes(&world, 1000));
        stream_socket_update(world.socket);
        EXPECT_EQ(world.sent, 600);
        EXPECT_EQ(byte_queue_length(stream_socket_queue(world.socket)), 400);
        world.room = SIZE_MAX;
        EXPECT_EQ(sd_event_run(world.event, 0), 1);
        EXPECT_EQ(world.sent, 1000);
        EXPECT_EQ(world.n_written, 1);
        close_client_world(&world);
}

TEST(a_write_error_is_reported_by_the_loop)
{
        SocketWorld world = { .send_error = -EPIPE };

        REQUIRE(open_client_world(&world));
        REQUIRE(queue_bytes(&world, 1000));
        stream_socket_update(world.socket);
        EXPECT_EQ(world.error, 0);
        EXPECT_EQ(sd_event_loop(world.event), 0);
        EXPECT_EQ(world.error, -EPIPE);
        close_client_world(&world);
}

TEST(end_of_a_client_is_noticed_while_nothing_is_read_from_it)
{
        SocketWorld world = { 0 };

        REQUIRE(open_client_world(&world));
        stream_socket_pause_reading(world.socket, true);
        REQUIRE(send(world.fds[1], "abc", 3, MSG_NOSIGNAL) == 3);
        EXPECT_EQ(sd_event_run(world.event, 0), 0);
        world.fds[1] = close_fd(world.fds[1]);
        EXPECT_EQ(sd_event_run(world.event, 0), 1);
        EXPECT_EQ(world.error, -ECONNRESET);
        close_client_world(&world);
}
