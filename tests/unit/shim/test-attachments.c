/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shim/attachments.h"

#include "agent/shim/attachment-streams.h"
#include "agent/shim/epoll-loop.h"
#include "common/cleanup.h"
#include "tests/test.h"

#include <signal.h>
#include <unistd.h>

enum {
        BLOCK = 64 * 1024,
        BLOCKS = 40, /* more than a pipe takes */
};

/* The number of the client that was dropped last. */
static unsigned dropped;

static void on_dropped(Attachments *attachments, unsigned id) {
        dropped = id;
}

static Attachments attachments_new(void) {
        Attachments attachments = { .epoll_fd = epoll_create1(EPOLL_CLOEXEC),
                                    .on_dropped = on_dropped };

        REQUIRE(attachments.epoll_fd >= 0);
        (void) signal(SIGPIPE, SIG_IGN);
        return attachments;
}

static void attachments_done(Attachments *attachments) {
        attachments_end(attachments);
        close_fd(attachments->epoll_fd);
}

/* Adds a client; 'options' have no descriptors yet. Returns the number of the client. */
static unsigned add_client(Attachments *attachments, AttachmentOptions options,
                           AttachmentStreams *ret) {
        static unsigned id;
        AttachmentEnds ends;

        REQUIRE(attachment_streams_open(&ends, ret) == 0);
        options.id = ++id;
        options.output_fd = ends.output_fd;
        options.error_fd = ends.error_fd;
        options.resume_fd = ends.resume_fd;
        close_fd(ends.notice_fd);
        REQUIRE(attachments_add(attachments, &options) == 0);
        return id;
}

/* Reads all data from the pipe, as a text of at most 'size' bytes. Returns the number of bytes. */
static size_t drain(int fd, char *ret, size_t size) {
        char chunk[BLOCK];
        size_t total = 0;
        ssize_t n;

        while ((n = read(fd, chunk, sizeof(chunk))) > 0) {
                size_t kept = MIN((size_t) n, size - 1);

                memcpy(ret, chunk + (size_t) n - kept, kept);
                ret[kept] = '\0';
                total += (size_t) n;
        }
        return total;
}

static size_t write_blocks(Attachments *attachments) {
        static char block[BLOCK];

        memset(block, 'x', sizeof(block));
        for (unsigned i = 0; i < BLOCKS; i++)
                attachments_write(attachments, false, block, sizeof(block));
        return (size_t) BLOCK * BLOCKS;
}

TEST(each_client_gets_the_streams_that_it_requested)
{
        cleanup_with(attachments_done) Attachments attachments = attachments_new();
        AttachmentStreams both, output;
        char text[64] = "";

        add_client(&attachments, (AttachmentOptions){ .has_output = true, .has_error = true },
                   &both);
        add_client(&attachments, (AttachmentOptions){ .has_output = true }, &output);
        attachments_write(&attachments, false, "out", 3);
        attachments_write(&attachments, true, "err", 3);
        EXPECT_EQ(drain(both.output_fd, text, sizeof(text)), 3);
        EXPECT_STREQ(text, "out");
        EXPECT_EQ(drain(both.error_fd, text, sizeof(text)), 3);
        EXPECT_STREQ(text, "err");
        EXPECT_EQ(drain(output.output_fd, text, sizeof(text)), 3);
        EXPECT_EQ(drain(output.error_fd, text, sizeof(text)), 0);
        attachments_end(&attachments);
        EXPECT(!attachments.first);
        EXPECT_EQ(read(both.output_fd, text, 1), 0);
        attachment_streams_close(&both);
        attachment_streams_close(&output);
}

TEST(the_first_client_gets_the_output_from_before_on_request)
{
        cleanup_with(attachments_done) Attachments attachments = attachments_new();
        AttachmentStreams first, second;
        char text[64] = "";

        attachments.keeps_early = true;
        attachments_write(&attachments, false, "ear", 3);
        attachments_write(&attachments, true, "err", 3);
        attachments_write(&attachments, false, "ly", 2);
        add_client(&attachments, (AttachmentOptions){ .has_output = true, .has_error = true },
                   &first);
        add_client(&attachments, (AttachmentOptions){ .has_output = true }, &second);
        attachments_write(&attachments, false, ".", 1);
        EXPECT_EQ(drain(first.output_fd, text, sizeof(text)), 6);
        EXPECT_STREQ(text, "early.");
        EXPECT_EQ(drain(first.error_fd, text, sizeof(text)), 3);
        EXPECT_STREQ(text, "err");
        EXPECT_EQ(drain(second.output_fd, text, sizeof(text)), 1);
        attachment_streams_close(&first);
        attachment_streams_close(&second);
}

TEST(early_output_beyond_the_limit_is_dropped_completely)
{
        cleanup_with(attachments_done) Attachments attachments = attachments_new();
        static const char block[BLOCK];
        AttachmentStreams first;
        char text[64] = "";

        attachments.keeps_early = true;
        attachments_write(&attachments, false, block, sizeof(block));
        attachments_write(&attachments, false, "x", 1);
        add_client(&attachments, (AttachmentOptions){ .has_output = true }, &first);
        attachments_write(&attachments, false, "now", 3);
        EXPECT_EQ(drain(first.output_fd, text, sizeof(text)), 3);
        attachment_streams_close(&first);
}

TEST(a_client_that_does_not_read_is_dropped_and_others_lose_nothing)
{
        cleanup_with(attachments_done) Attachments attachments = attachments_new();
        AttachmentStreams slow, fast;
        char text[64] = "";
        unsigned slow_id, id;

        slow_id = add_client(&attachments, (AttachmentOptions){ .has_output = true }, &slow);
        id = add_client(&attachments, (AttachmentOptions){ .has_error = true }, &fast);
        (void) write_blocks(&attachments);
        EXPECT_EQ(dropped, slow_id);
        EXPECT(drain(slow.output_fd, text, sizeof(text)) > 0);
        attachments_write(&attachments, true, "err", 3);
        EXPECT_EQ(drain(fast.error_fd, text, sizeof(text)), 3);
        attachments_remove(&attachments, id);
        attachments_remove(&attachments, 12345); /* unknown: ignored */
        EXPECT(!attachments.first);
        attachment_streams_close(&slow);
        attachment_streams_close(&fast);
}

TEST(a_stalled_terminal_skips_output_and_shows_how_much)
{
        cleanup_with(attachments_done) Attachments attachments = attachments_new();
        AttachmentStreams streams;
        char text[128] = "", expected[128];
        size_t written, in_pipe;

        add_client(&attachments, (AttachmentOptions){ .has_output = true, .has_terminal = true },
                   &streams);
        written = write_blocks(&attachments);
        in_pipe = drain(streams.output_fd, text, sizeof(text));
        EXPECT(in_pipe > 0 && in_pipe < written);
        attachment_report_read(&streams, streams.output_fd);
        EXPECT_EQ(epoll_loop_run_once(attachments.epoll_fd, 0), 0);
        (void) snprintf(expected, sizeof(expected), "\r\n[%zu bytes were not read in time]\r\n",
                        written - in_pipe);
        (void) drain(streams.output_fd, text, sizeof(text));
        EXPECT_STREQ(text, expected);
        attachments_write(&attachments, false, "again", 5);
        (void) drain(streams.output_fd, text, sizeof(text));
        EXPECT_STREQ(text, "again");
        attachment_streams_close(&streams);
}

TEST(a_session_that_is_gone_is_ignored)
{
        cleanup_with(attachments_done) Attachments attachments = attachments_new();
        AttachmentStreams streams;

        add_client(&attachments, (AttachmentOptions){ .has_output = true }, &streams);
        attachment_streams_close(&streams);
        attachments_write(&attachments, false, "x", 1);
        EXPECT(!attachments.first);
}

TEST(a_session_receives_the_reason_why_its_streams_end)
{
        AttachmentStreams streams;
        AttachmentEnds ends;
        uint64_t notice = 0;
        char byte;

        REQUIRE(attachment_streams_open(&ends, &streams) == 0);
        EXPECT(read(streams.notice_fd, &notice, sizeof(notice)) < 0);
        attachment_ends_close(&ends, ATTACHMENT_DROPPED);
        EXPECT_EQ(read(streams.notice_fd, &notice, sizeof(notice)), (ssize_t) sizeof(notice));
        EXPECT_EQ(notice, ATTACHMENT_DROPPED);
        EXPECT_EQ(read(streams.output_fd, &byte, 1), 0);
        attachment_streams_close(&streams);
}
