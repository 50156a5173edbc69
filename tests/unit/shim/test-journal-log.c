/* SPDX-License-Identifier: Apache-2.0 */
#include "common/cleanup.h"
#include "common/clock.h"
#include "tests/unit/shim/log-fixture.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static const char *const items[] = { "CONTAINER_NAME=web", "POD_NAME=shop", "no field",
                                     "TWO=a\nb" };
static const StringList fields = { items, N_ELEMENTS(items) };

/* A journal that reads only on request. */
static int listen_for_journal_log(char path[108]) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        (void) snprintf(path, 108, "%s/socket", test_directory());
        REQUIRE(strlen(path) < sizeof(address.sun_path));
        memcpy(address.sun_path, path, strlen(path));
        (void) unlink(path);
        REQUIRE(bind(fd, (struct sockaddr *) &address, sizeof(address)) >= 0);
        return fd;
}

static void send_test_line(JournalLog *journal, const char *text, bool is_error, bool is_part) {
        journal_log_line(journal, &(JournalLine){ .is_error = is_error,
                                                  .is_part = is_part,
                                                  .text = { { (void *) (uintptr_t) text, 1 },
                                                            { (void *) (uintptr_t) (text + 1),
                                                              strlen(text + 1) } } });
}

static JournalLog *new_test_journal(const char *path) {
        const JournalSocket at = JOURNAL_SOCKET_NULL(path);
        cleanup_free char *lines = journal_fields_format(&fields);
        JournalLog *journal = NULL;

        REQUIRE(lines);
        REQUIRE(journal_log_new(&at, lines, &journal) == 0);
        return journal;
}

/* The next entry, or "". */
static const char *receive_test_entry(int fd) {
        static char text[32 * 1024];
        ssize_t n = recv(fd, text, sizeof(text) - 1, 0);

        text[MAX(n, (ssize_t) 0)] = '\0';
        return text;
}

TEST(a_line_is_an_entry_with_the_fields_of_its_container)
{
        cleanup_with(journal_log_freep) JournalLog *journal = NULL;
        char path[108];
        cleanup_close int fd = listen_for_journal_log(path);

        journal = new_test_journal(path);
        send_test_line(journal, "hello", false, false);
        EXPECT_STREQ(receive_test_entry(fd),
                     "CONTAINER_NAME=web\nPOD_NAME=shop\nPRIORITY=6\nMESSAGE=hello\n");
        send_test_line(journal, "oh", true, true);
        EXPECT_STREQ(receive_test_entry(fd),
                     "CONTAINER_NAME=web\nPOD_NAME=shop\nPRIORITY=3\nMESSAGE=oh\n"
                     "CONTAINER_PARTIAL_MESSAGE=true\n");
}

TEST(a_stalled_journal_delays_output_only_briefly_and_lost_lines_are_reported)
{
        cleanup_with(journal_log_freep) JournalLog *journal = NULL;
        char path[108], expected[128];
        cleanup_close int fd = listen_for_journal_log(path);
        uint64_t begin = now_boottime_usec(), took;
        unsigned n_sent = 5000, n_heard = 0;

        journal = new_test_journal(path);
        for (unsigned i = 0; i < n_sent; i++)
                send_test_line(journal, "line", false, false);
        took = now_boottime_usec() - begin;
        EXPECT(took < 5 * USEC_PER_SEC);
        while (receive_test_entry(fd)[0])
                n_heard++;
        EXPECT(n_heard > 0 && n_heard < n_sent);
        send_test_line(journal, "again", false, false);
        (void) snprintf(expected, sizeof(expected),
                        "CONTAINER_NAME=web\nPOD_NAME=shop\nPRIORITY=4\n"
                        "MESSAGE=[mainstay: %u lines did not reach the journal]\n",
                        n_sent - n_heard);
        EXPECT_STREQ(receive_test_entry(fd), expected);
        EXPECT_STREQ(receive_test_entry(fd),
                     "CONTAINER_NAME=web\nPOD_NAME=shop\nPRIORITY=6\nMESSAGE=again\n");
}

TEST(a_stalled_journal_delays_many_containers_no_more_than_one)
{
        JournalLog *journals[60];
        char path[108];
        cleanup_close int fd = listen_for_journal_log(path);
        uint64_t begin = now_boottime_usec();

        for (size_t i = 0; i < N_ELEMENTS(journals); i++)
                journals[i] = new_test_journal(path);
        for (unsigned i = 0; i < 1000; i++)
                send_test_line(journals[0], "line", false, false);
        for (size_t i = 0; i < N_ELEMENTS(journals); i++)
                send_test_line(journals[i], "line", false, false);
        EXPECT(now_boottime_usec() - begin < 5 * USEC_PER_SEC);
        EXPECT(strstr(receive_test_entry(fd), "MESSAGE=line\n"));
        for (size_t i = 0; i < N_ELEMENTS(journals); i++)
                journal_log_free(journals[i]);
}

TEST(a_journal_that_starts_later_or_is_restarted_is_found)
{
        cleanup_with(journal_log_freep) JournalLog *journal = NULL;
        char path[108];
        int fd = listen_for_journal_log(path);
        uint64_t end = now_boottime_usec() + 180 * USEC_PER_SEC;
        bool found = false;

        journal = new_test_journal(path);
        send_test_line(journal, "first", false, false);
        EXPECT(strstr(receive_test_entry(fd), "MESSAGE=first\n"));
        close_fd(fd);
        (void) unlink(path);
        send_test_line(journal, "lost", false, false);
        fd = listen_for_journal_log(path);
        while (!found && now_boottime_usec() < end) {
                (void) usleep(50000);
                send_test_line(journal, "found", false, false);
                found = strstr(receive_test_entry(fd), "did not reach") &&
                        strstr(receive_test_entry(fd), "MESSAGE=found\n");
        }
        EXPECT(found);
        close_fd(fd);
}

TEST(complete_and_partial_log_lines_are_sent_to_the_journal)
{
        TestLogFile opened;
        ContainerLog *log;
        LogStreamBuffer out = { .name = "stdout" }, error = { .name = "stderr" };
        static char long_line[LOG_LINE_MAX + 4];
        char path[108], file[160];
        cleanup_close int fd = listen_for_journal_log(path);
        JournalLog *journal = NULL;

        (void) snprintf(file, sizeof(file), "%s/0.log", test_directory());
        log = open_test_log(&opened, file, (LogLimits){ 0 });
        journal = new_test_journal(path);
        container_log_set_journal_take(log, journal);
        container_log_write(log, &out, "one\ntw", 6, 1);
        container_log_write(log, &out, "o\n", 2, 1);
        container_log_write(log, &error, "bad\n", 4, 1);
        EXPECT(strstr(receive_test_entry(fd), "PRIORITY=6\nMESSAGE=one\n"));
        EXPECT(strstr(receive_test_entry(fd), "PRIORITY=6\nMESSAGE=two\n"));
        EXPECT(strstr(receive_test_entry(fd), "PRIORITY=3\nMESSAGE=bad\n"));
        memset(long_line, 'x', LOG_LINE_MAX + 2);
        long_line[LOG_LINE_MAX + 2] = '\n';
        container_log_write(log, &out, long_line, LOG_LINE_MAX + 3, 1);
        EXPECT(strstr(receive_test_entry(fd), "x\nCONTAINER_PARTIAL_MESSAGE=true\n"));
        EXPECT(strstr(receive_test_entry(fd), "MESSAGE=xx\n"));
        EXPECT_STREQ(receive_test_entry(fd), "");
        log_stream_buffer_done(&out);
        log_stream_buffer_done(&error);
        container_log_free(log);
        rotated_log_free(opened.file);
}
