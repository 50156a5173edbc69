/* SPDX-License-Identifier: Apache-2.0 */
/* Messages to systemd. */

#include "agent/metrics/service-notifier.h"
#include "common/cleanup.h"
#include "tests/test.h"

#include <sys/socket.h>
#include <sys/un.h>

/* A notification socket in place of systemd's. */
static int open_notify_socket(void) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        (void) snprintf(address.sun_path, sizeof(address.sun_path), "%s/notify", test_directory());
        REQUIRE(fd >= 0);
        REQUIRE(bind(fd, (struct sockaddr *) &address, sizeof(address)) == 0);
        setenv("NOTIFY_SOCKET", address.sun_path, 1);
        return fd;
}

static void expect_message(int fd, const char *expected) {
        char text[256] = { 0 };
        ssize_t n = recv(fd, text, sizeof(text) - 1, 0);

        EXPECT_STREQ(n < 0 ? NULL : text, expected);
}

TEST(status_is_sent_when_it_has_changed)
{
        cleanup_close int fd = open_notify_socket();
        cleanup_with(service_notifier_freep) ServiceNotifier *notifier = service_notifier_new();

        REQUIRE(notifier);
        service_notifier_status(notifier, "1 pod, 0 running");
        expect_message(fd, "STATUS=1 pod, 0 running");
        service_notifier_status(notifier, "1 pod, 0 running");
        expect_message(fd, NULL);
        service_notifier_status(notifier, "1 pod, 1 running");
        expect_message(fd, "STATUS=1 pod, 1 running");
        service_notifier_ready(notifier);
        service_notifier_ready(notifier);
        expect_message(fd, "READY=1");
        expect_message(fd, NULL);
        service_notifier_stopping(notifier);
        service_notifier_stopping(notifier);
        expect_message(fd, "STOPPING=1");
        expect_message(fd, NULL);
        unsetenv("NOTIFY_SOCKET");
}
