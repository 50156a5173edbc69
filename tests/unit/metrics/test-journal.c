/* SPDX-License-Identifier: Apache-2.0 */
/* Log messages in the journal. */

#include "agent/metrics/journal.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "tests/test.h"

#include <inttypes.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

static const LogSubject web = {
        .namespace = "default", .pod = "web", .uid = "1-2", .container = "main"
};

/* A journal that reads when the test does, connected to standard error. */
static int listen_at(char path[108]) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        char stream[64];
        struct stat st;

        (void) snprintf(path, 108, "%s/socket", test_directory());
        REQUIRE(strlen(path) < sizeof(address.sun_path));
        memcpy(address.sun_path, path, strlen(path));
        (void) unlink(path);
        REQUIRE(bind(fd, (struct sockaddr *) &address, sizeof(address)) >= 0);
        REQUIRE(fstat(STDERR_FILENO, &st) >= 0);
        (void) snprintf(stream, sizeof(stream), "%ju:%ju", (uintmax_t) st.st_dev,
                        (uintmax_t) st.st_ino);
        REQUIRE(setenv("JOURNAL_STREAM", stream, 1) >= 0);
        return fd;
}

/* The next entry, or "". */
static const char *read_entry(int fd) {
        static char text[32 * 1024];
        ssize_t n = recv(fd, text, sizeof(text) - 1, 0);

        text[MAX(n, (ssize_t) 0)] = '\0';
        return text;
}

TEST(log_message_is_an_entry_with_fields_of_its_subject)
{
        char path[108], expected[512];
        cleanup_close int fd = listen_at(path);

        journal_attach_log(path);
        {
                LOG_ABOUT(&web);
                log_set_message_id("00ff");
                log_warning("Pod '%s' says '%s'", "web", "a\nMESSAGE=b");
        }
        (void) snprintf(expected, sizeof(expected),
                        "MESSAGE=Pod 'web' says 'a MESSAGE=b'\nPRIORITY=4\nSYSLOG_IDENTIFIER=%s\n"
                        "MESSAGE_ID=00ff\nPOD_NAMESPACE=default\nPOD_NAME=web\nPOD_UID=1-2\n"
                        "CONTAINER_NAME=main\n",
                        program_invocation_short_name);
        EXPECT_STREQ(read_entry(fd), expected);
        log_info("Nothing in particular");
        (void) snprintf(expected, sizeof(expected),
                        "MESSAGE=Nothing in particular\nPRIORITY=6\nSYSLOG_IDENTIFIER=%s\n",
                        program_invocation_short_name);
        EXPECT_STREQ(read_entry(fd), expected);
        log_set_sink(NULL);
}

TEST(messages_to_a_stalled_journal_are_dropped_and_counted)
{
        char path[108], expected[64];
        cleanup_close int fd = listen_at(path);
        unsigned n_sent = 5000, n_received = 0;

        journal_attach_log(path);
        for (unsigned i = 0; i < n_sent; i++) /* returns although the journal does not read */
                log_info("Message %u", i);
        while (read_entry(fd)[0])
                n_received++;
        EXPECT(n_received > 0 && n_received < n_sent);
        log_info("Again");
        (void) snprintf(expected, sizeof(expected), "MESSAGE=%u messages were lost\nPRIORITY=4\n",
                        n_sent - n_received);
        EXPECT(strncmp(read_entry(fd), expected, strlen(expected)) == 0);
        EXPECT(strstr(read_entry(fd), "MESSAGE=Again\n"));
        log_info("And again");
        EXPECT(strstr(read_entry(fd), "MESSAGE=And again\n"));
        log_set_sink(NULL);
}

TEST(redirected_standard_error_keeps_the_log_out_of_the_journal)
{
        char path[108];
        cleanup_close int fd = listen_at(path);

        REQUIRE(setenv("JOURNAL_STREAM", "1:1", 1) >= 0);
        journal_attach_log(path);
        log_info("To standard error");
        EXPECT_STREQ(read_entry(fd), "");
}
