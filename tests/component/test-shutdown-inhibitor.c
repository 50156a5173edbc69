/* SPDX-License-Identifier: Apache-2.0 */
/* A private system bus with a fake logind, in the same event loop as the tested code. */

#include "agent/sandbox/shutdown-inhibitor.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "tests/test.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <systemd/sd-bus.h>

enum {
        DEADLINE_SEC = 180
};

typedef struct FakeLogind {
        sd_event *event;
        struct sockaddr_un address;
        int listen_fd;
        sd_event_source *listener;
        sd_bus *peer;
        int lock_fd; /* our end: the other end is closed when the lock is released */
        unsigned n_connections, n_locks, n_looks;
        bool is_preparing, refuses, fails;
        int last_reported; /* the last callback: 1 shutdown, 0 cancelled; -1 none */
        ShutdownInhibitor *inhibitor;
} FakeLogind;

static int give_lock(FakeLogind *logind, sd_bus_message *message) {
        int pipes[2], r;

        if (logind->refuses)
                return sd_bus_reply_method_errorf(message, SD_BUS_ERROR_ACCESS_DENIED, "No");
        if (logind->fails)
                return sd_bus_reply_method_errorf(message, SD_BUS_ERROR_NO_REPLY, "Not yet");
        EXPECT_EQ(pipe2(pipes, O_CLOEXEC | O_NONBLOCK), 0);
        close_fd(logind->lock_fd);
        logind->lock_fd = pipes[0];
        logind->n_locks++;
        r = sd_bus_reply_method_return(message, "h", pipes[1]);
        close_fd(pipes[1]);
        return r;
}

static int answer_property(FakeLogind *logind, sd_bus_message *message) {
        const char *interface, *property;

        EXPECT(sd_bus_message_read(message, "ss", &interface, &property) > 0);
        if (streq(property, "PreparingForShutdown"))
                return sd_bus_reply_method_return(message, "v", "b", logind->is_preparing);
        logind->n_looks++;
        return sd_bus_reply_method_return(message, "v", "t", 5 * USEC_PER_SEC);
}

static int on_message(sd_bus_message *message, void *userdata, sd_bus_error *ret_error) {
        FakeLogind *logind = userdata;
        const char *member = sd_bus_message_get_member(message);
        int r;

        if (streq_ptr(member, "Hello"))
                r = sd_bus_reply_method_return(message, "s", ":1.1");
        else if (streq_ptr(member, "Inhibit"))
                r = give_lock(logind, message);
        else if (streq_ptr(member, "Get"))
                r = answer_property(logind, message);
        else
                r = sd_bus_reply_method_return(message, NULL);
        return r < 0 ? r : 1;
}

static void drop_peer(FakeLogind *logind) {
        if (logind->peer)
                (void) sd_bus_detach_event(logind->peer);
        logind->peer = sd_bus_close_unref(logind->peer);
}

static int on_bus_connection(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        FakeLogind *logind = userdata;
        int peer = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

        EXPECT(peer >= 0);
        drop_peer(logind);
        EXPECT(sd_bus_new(&logind->peer) >= 0);
        EXPECT(sd_bus_set_fd(logind->peer, peer, peer) >= 0);
        EXPECT(sd_bus_set_server(logind->peer, true, (sd_id128_t){ .bytes = { 1 } }) >= 0);
        EXPECT(sd_bus_negotiate_fds(logind->peer, true) >= 0);
        EXPECT(sd_bus_add_filter(logind->peer, NULL, on_message, logind) >= 0);
        EXPECT(sd_bus_start(logind->peer) >= 0);
        EXPECT(sd_bus_attach_event(logind->peer, logind->event, SD_EVENT_PRIORITY_NORMAL) >= 0);
        logind->n_connections++;
        return 0;
}

static void logind_open(FakeLogind *logind) {
        *logind = (FakeLogind){ .lock_fd = -EBADF,
                                .last_reported = -1,
                                .address.sun_family = AF_UNIX };
        EXPECT(sd_event_new(&logind->event) >= 0);
        (void) snprintf(logind->address.sun_path, sizeof(logind->address.sun_path),
                        "/tmp/mainstay-test-bus-%d", getpid());
        (void) unlink(logind->address.sun_path);
        logind->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        EXPECT_EQ(bind(logind->listen_fd, (struct sockaddr *) &logind->address,
                       sizeof(logind->address)),
                  0);
        EXPECT_EQ(listen(logind->listen_fd, 8), 0);
        EXPECT(sd_event_add_io(logind->event, &logind->listener, logind->listen_fd, POLLIN,
                               on_bus_connection, logind) >= 0);
}

static void logind_done(FakeLogind *logind) {
        shutdown_inhibitor_free(logind->inhibitor);
        drop_peer(logind);
        sd_event_source_disable_unref(logind->listener);
        close_fd(logind->listen_fd);
        close_fd(logind->lock_fd);
        sd_event_unref(logind->event);
        (void) unlink(logind->address.sun_path);
}

static void on_shutdown(bool begins, void *userdata) {
        FakeLogind *logind = userdata;

        logind->last_reported = begins;
}

static void inhibit(FakeLogind *logind) {
        char address[sizeof(logind->address.sun_path) + 16];

        (void) snprintf(address, sizeof(address), "unix:path=%s", logind->address.sun_path);
        EXPECT_EQ(setenv("DBUS_SYSTEM_BUS_ADDRESS", address, true), 0);
        EXPECT_EQ(
                shutdown_inhibitor_new(&(ShutdownInhibitorConfig){ .event = logind->event,
                                                                   .needed_usec = 30 * USEC_PER_SEC,
                                                                   .logind_conf_dir = "/nowhere",
                                                                   .on_shutdown = on_shutdown,
                                                                   .userdata = logind },
                                       &logind->inhibitor),
                0);
}

static bool is_held(const FakeLogind *logind) {
        char byte;

        return logind->lock_fd >= 0 && read(logind->lock_fd, &byte, 1) < 0 && errno == EAGAIN;
}

#define WAIT_FOR(condition)                                                          \
        do {                                                                         \
                uint64_t end = now_boottime_usec() + DEADLINE_SEC * USEC_PER_SEC;    \
                while (!(condition) && now_boottime_usec() < end)                    \
                        EXPECT(sd_event_run(logind.event, 50 * USEC_PER_MSEC) >= 0); \
                EXPECT(condition);                                                   \
        } while (false)

static void prepare(FakeLogind *logind, bool begins) {
        sd_bus_message *signal = NULL;

        logind->is_preparing = begins;
        EXPECT(sd_bus_message_new_signal(logind->peer, &signal, "/org/freedesktop/login1",
                                         "org.freedesktop.login1.Manager",
                                         "PrepareForShutdown") >= 0);
        EXPECT(sd_bus_message_set_sender(signal, ":1.0") >= 0);
        EXPECT(sd_bus_message_append(signal, "b", begins) >= 0);
        EXPECT(sd_bus_send(logind->peer, signal, NULL) >= 0);
        sd_bus_message_unref(signal);
}

TEST(a_lock_is_held_until_it_is_released_and_again_after_a_cancelled_shutdown)
{
        cleanup_with(logind_done) FakeLogind logind;

        logind_open(&logind);
        inhibit(&logind);
        WAIT_FOR(logind.n_looks == 1 && is_held(&logind));
        prepare(&logind, true);
        WAIT_FOR(logind.last_reported == 1);
        EXPECT(is_held(&logind));
        shutdown_inhibitor_release(logind.inhibitor);
        EXPECT(!is_held(&logind));
        prepare(&logind, false);
        WAIT_FOR(logind.last_reported == 0 && is_held(&logind));
        EXPECT_EQ(logind.n_locks, 2);
}

TEST(a_lock_outlives_the_bus_and_a_missed_shutdown_is_detected)
{
        cleanup_with(logind_done) FakeLogind logind;

        logind_open(&logind);
        inhibit(&logind);
        WAIT_FOR(is_held(&logind));
        drop_peer(&logind);
        logind.is_preparing = true;
        WAIT_FOR(logind.last_reported == 1);
        EXPECT_EQ(logind.n_connections, 2);
        EXPECT_EQ(logind.n_locks, 1);
        EXPECT(is_held(&logind));
}

TEST(inhibitor_does_not_retry_if_logind_refuses)
{
        cleanup_with(logind_done) FakeLogind logind;

        logind_open(&logind);
        logind.refuses = true;
        inhibit(&logind);
        WAIT_FOR(logind.n_looks == 1);
        EXPECT(!is_held(&logind));
        prepare(&logind, true);
        WAIT_FOR(logind.last_reported == 1);
}

TEST(inhibitor_retries_if_logind_fails)
{
        cleanup_with(logind_done) FakeLogind logind;

        logind_open(&logind);
        logind.fails = true;
        inhibit(&logind);
        WAIT_FOR(logind.n_looks == 1);
        EXPECT(!is_held(&logind));
        logind.fails = false;
        WAIT_FOR(is_held(&logind));
        EXPECT_EQ(logind.n_locks, 1);
}

TEST(inhibitor_does_not_wait_without_a_bus)
{
        cleanup_with(logind_done) FakeLogind logind;

        logind_open(&logind);
        (void) unlink(logind.address.sun_path);
        inhibit(&logind);
        EXPECT_EQ(sd_event_run(logind.event, 100 * USEC_PER_MSEC), 0);
        EXPECT_EQ(logind.n_connections, 0);
}
