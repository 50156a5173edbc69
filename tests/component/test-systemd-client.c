/* SPDX-License-Identifier: Apache-2.0 */
/* A fake systemd that responds late, on the private socket in a separate mount namespace. */

#include "agent/sandbox/systemd-client.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "tests/test.h"

#include <poll.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <systemd/sd-bus.h>

#define SOCKET_DIRECTORY "/run/systemd"

static const SliceProperty weight = { "CPUWeight", 100 };

enum {
        DEADLINE_SEC = 180
};

typedef struct LateSystemd {
        sd_event *event;
        int listen_fd;
        sd_bus *peer;
        sd_bus_message *start; /* its reply follows the request to stop */
        char requests[256];    /* "StartTransientUnit StopUnit " */
} LateSystemd;

static int answer_late(LateSystemd *systemd, sd_bus_message *message, const char *member) {
        if (streq(member, "StartTransientUnit") && !systemd->start) {
                systemd->start = sd_bus_message_ref(message);
                return 1;
        }
        if (streq(member, "StopUnit") && systemd->start)
                EXPECT(sd_bus_reply_method_errorf(systemd->start,
                                                  "org.freedesktop.systemd1.UnitExists",
                                                  "Unit exists.") >= 0);
        EXPECT(sd_bus_reply_method_return(message, "o", "/job") >= 0);
        return 1;
}

static int on_request(sd_bus_message *message, void *userdata, sd_bus_error *ret_error) {
        LateSystemd *systemd = userdata;
        const char *member = sd_bus_message_get_member(message);
        size_t n = strlen(systemd->requests);

        (void) snprintf(systemd->requests + n, sizeof(systemd->requests) - n, "%s ", member);
        return answer_late(systemd, message, member);
}

static int on_client(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        LateSystemd *systemd = userdata;
        int peer = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

        REQUIRE(peer >= 0);
        REQUIRE(sd_bus_new(&systemd->peer) >= 0);
        REQUIRE(sd_bus_set_fd(systemd->peer, peer, peer) >= 0);
        REQUIRE(sd_bus_set_server(systemd->peer, true, (sd_id128_t){ .bytes = { 1 } }) >= 0);
        REQUIRE(sd_bus_add_filter(systemd->peer, NULL, on_request, systemd) >= 0);
        REQUIRE(sd_bus_start(systemd->peer) >= 0);
        REQUIRE(sd_bus_attach_event(systemd->peer, systemd->event, SD_EVENT_PRIORITY_NORMAL) >= 0);
        return 0;
}

static void late_systemd_open(LateSystemd *systemd) {
        static const struct sockaddr_un address = { .sun_family = AF_UNIX,
                                                    .sun_path = SOCKET_DIRECTORY "/private" };

        *systemd = (LateSystemd){ 0 };
        REQUIRE(unshare(CLONE_NEWNS) == 0);
        REQUIRE(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
        REQUIRE(mount("run", "/run", "tmpfs", 0, NULL) == 0);
        REQUIRE(mkdir(SOCKET_DIRECTORY, 0755) == 0);
        REQUIRE(sd_event_new(&systemd->event) >= 0);
        systemd->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        REQUIRE(bind(systemd->listen_fd, (const struct sockaddr *) &address, sizeof(address)) == 0);
        REQUIRE(listen(systemd->listen_fd, 8) == 0);
        REQUIRE(sd_event_add_io(systemd->event, NULL, systemd->listen_fd, POLLIN, on_client,
                                systemd) >= 0);
}

static void late_systemd_done(LateSystemd *systemd) {
        sd_bus_message_unref(systemd->start);
        if (systemd->peer)
                (void) sd_bus_detach_event(systemd->peer);
        sd_bus_close_unref(systemd->peer);
        close_fd(systemd->listen_fd);
        sd_event_unref(systemd->event);
}

static void run_until_idle(LateSystemd *systemd, const SystemdClient *client) {
        uint64_t end = now_boottime_usec() + DEADLINE_SEC * USEC_PER_SEC;

        while (!systemd_client_is_idle(client) && now_boottime_usec() < end)
                REQUIRE(sd_event_run(systemd->event, USEC_PER_SEC) >= 0);
        EXPECT(systemd_client_is_idle(client));
}

TEST(late_reply_does_not_start_a_slice_that_is_being_stopped)
{
        SystemdClient *client;
        LateSystemd systemd;

        late_systemd_open(&systemd);
        REQUIRE(systemd_client_new(systemd.event, &client) == 0);
        EXPECT_EQ(systemd_client_set_slice(client, "kubepods.slice", &weight, 1, NULL), 0);
        EXPECT_EQ(systemd_client_stop_unit(client, "kubepods.slice", NULL), 0);
        run_until_idle(&systemd, client);
        EXPECT_STREQ(systemd.requests, "StartTransientUnit StopUnit ");
        systemd_client_free(client);
        late_systemd_done(&systemd);
}

TEST(existing_slice_is_started_and_gets_its_properties)
{
        SystemdClient *client;
        LateSystemd systemd;

        late_systemd_open(&systemd);
        REQUIRE(systemd_client_new(systemd.event, &client) == 0);
        EXPECT_EQ(systemd_client_set_slice(client, "kubepods.slice", &weight, 1, NULL), 0);
        EXPECT_EQ(systemd_client_stop_unit(client, "kubepods-burstable.slice", NULL), 0);
        run_until_idle(&systemd, client);
        EXPECT_STREQ(systemd.requests, "StartTransientUnit StopUnit StartUnit SetUnitProperties ");
        systemd_client_free(client);
        late_systemd_done(&systemd);
}
