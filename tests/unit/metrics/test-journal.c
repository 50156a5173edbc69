/* SPDX-License-Identifier: Apache-2.0 */
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

/* A journal that reads when it is told to, and is what standard error goes to. */
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
static const char *heard(int fd) {
        static char text[32 * 1024];
        ssize_t n = recv(fd, text, sizeof(text) - 1, 0);

        text[MAX(n, (ssize_t) 0)] = '\0';
        return text;
}

TEST(a_sentence_is_an_entry_with_fields_for_what_it_is_about)
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
        EXPECT_STREQ(heard(fd), expected);
        log_info("Nothing in particular");
        (void) snprintf(expected, sizeof(expected),
                        "MESSAGE=Nothing in particular\nPRIORITY=6\nSYSLOG_IDENTIFIER=%s\n",
                        program_invocation_short_name);
        EXPECT_STREQ(heard(fd), expected);
        log_set_sink(NULL);
}

TEST(nobody_waits_for_a_journal_that_does_not_read_and_it_is_told_how_much_it_lacks)
{
        char path[108], expected[64];
        cleanup_close int fd = listen_at(path);
        unsigned n_sent = 5000, n_heard = 0;

        journal_attach_log(path);
        for (unsigned i = 0; i < n_sent; i++) /* this ends */
                log_info("Sentence %u", i);
        while (heard(fd)[0])
                n_heard++;
        EXPECT(n_heard > 0 && n_heard < n_sent);
        log_info("Again");
        (void) snprintf(expected, sizeof(expected), "MESSAGE=%u messages were lost\nPRIORITY=4\n",
                        n_sent - n_heard);
        EXPECT(strncmp(heard(fd), expected, strlen(expected)) == 0);
        EXPECT(strstr(heard(fd), "MESSAGE=Again\n"));
        log_info("And again");
        EXPECT(strstr(heard(fd), "MESSAGE=And again\n"));
        log_set_sink(NULL);
}

TEST(where_standard_error_is_something_else_nothing_goes_to_the_journal)
{
        char path[108];
        cleanup_close int fd = listen_at(path);

        REQUIRE(setenv("JOURNAL_STREAM", "1:1", 1) >= 0);
        journal_attach_log(path);
        log_info("To standard error");
        EXPECT_STREQ(heard(fd), "");
}
