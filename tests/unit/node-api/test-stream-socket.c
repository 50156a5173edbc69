/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node-api/stream-socket.h"

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
} SocketWorld;

static void on_world_data(const char *data, size_t length, void *userdata) {
        ((SocketWorld *) userdata)->received += length;
}

static void on_world_end(void *userdata) {
}

static void on_world_written(void *userdata) {
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

TEST(what_came_before_the_peer_closed_is_read_though_nothing_can_be_written)
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
