/* SPDX-License-Identifier: Apache-2.0 */
#include "common/cleanup.h"
#include "common/mhd-loop.h"
#include "tests/test.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

typedef struct MhdWorld {
        sd_event *event;
        MhdLoop loop;
        int client_fd;
        unsigned n_deferred_runs, n_started;
} MhdWorld;

static enum MHD_Result reply_with_path(void *userdata, struct MHD_Connection *http,
                                       const char *path, const char *method, const char *version,
                                       const char *data, size_t *length, void **context) {
        struct MHD_Response *response = MHD_create_response_from_buffer(
                strlen(path), (char *) (uintptr_t) path, MHD_RESPMEM_MUST_COPY);
        enum MHD_Result result = MHD_queue_response(http, MHD_HTTP_OK, response);

        MHD_destroy_response(response);
        return result;
}

static void count_deferred_run(void *userdata) {
        MhdWorld *world = userdata;

        world->n_deferred_runs++;
}

static void count_started(void *userdata, struct MHD_Connection *http, void **context,
                          enum MHD_ConnectionNotificationCode code) {
        MhdWorld *world = userdata;

        world->n_started += code == MHD_CONNECTION_NOTIFY_STARTED;
}

static void start_mhd_world(MhdWorld *world, unsigned idle_sec) {
        static const struct sockaddr_un address = { .sun_family = AF_UNIX };
        int fds[2];

        *world = (MhdWorld){ .loop = { .on_deferred_run = count_deferred_run, .userdata = world } };
        REQUIRE(sd_event_new(&world->event) >= 0);
        REQUIRE(mhd_loop_start(&world->loop, world->event,
                               MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET, 0, NULL,
                                                NULL, reply_with_path, NULL,
                                                MHD_OPTION_UNESCAPE_CALLBACK, mhd_unescape_path,
                                                NULL, MHD_OPTION_NOTIFY_CONNECTION, count_started,
                                                world, MHD_OPTION_CONNECTION_TIMEOUT, idle_sec,
                                                MHD_OPTION_END)) == 0);
        REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) >= 0);
        REQUIRE(mhd_loop_add_connection(&world->loop, fds[0], (const struct sockaddr *) &address,
                                        sizeof(address)));
        world->client_fd = fds[1];
        mhd_loop_schedule_run(&world->loop);
}

static void stop_mhd_world(MhdWorld *world) {
        close_fd(world->client_fd);
        mhd_loop_stop(&world->loop);
        sd_event_unref(world->event);
}

/* Runs the loop until the client receives data. Returns the number of bytes; 0: end of the
 * connection. */
static size_t run_until_received(MhdWorld *world, char *buffer, size_t size) {
        for (;;) {
                ssize_t n = read(world->client_fd, buffer, size - 1);

                if (n >= 0) {
                        buffer[n] = '\0';
                        return (size_t) n;
                }
                REQUIRE(errno == EAGAIN);
                REQUIRE(sd_event_run(world->event, UINT64_MAX) >= 0);
        }
}

TEST(a_request_is_answered_by_the_loop)
{
        static const char request[] = "GET /a%00b HTTP/1.1\r\nHost: h\r\n\r\n";
        char reply[1024];
        MhdWorld world;

        start_mhd_world(&world, 0);
        REQUIRE(write(world.client_fd, request, strlen(request)) == (ssize_t) strlen(request));
        (void) run_until_received(&world, reply, sizeof(reply));
        EXPECT(strncmp(reply, "HTTP/1.1 200 OK\r\n", 17) == 0);
        EXPECT(strstr(reply, "\r\n\r\n/a?b"));
        EXPECT(world.n_deferred_runs > 0);
        stop_mhd_world(&world);
}

TEST(a_connection_is_started_when_it_is_added)
{
        MhdWorld world;

        start_mhd_world(&world, 0);
        EXPECT_EQ(MHD_get_daemon_info(world.loop.mhd, MHD_DAEMON_INFO_CURRENT_CONNECTIONS)
                          ->num_connections,
                  1);
        EXPECT_EQ(world.n_started, 1);
        stop_mhd_world(&world);
}

TEST(an_idle_connection_ends_at_the_time_limit_of_the_daemon)
{
        char reply[16];
        MhdWorld world;

        start_mhd_world(&world, 1);
        EXPECT_EQ(run_until_received(&world, reply, sizeof(reply)), 0);
        stop_mhd_world(&world);
}

TEST(a_daemon_that_did_not_start_is_an_error)
{
        MhdLoop loop = { 0 };

        EXPECT_EQ(mhd_loop_start(&loop, NULL, NULL), -EIO);
        mhd_loop_stop(&loop);
}
