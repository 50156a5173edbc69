/* SPDX-License-Identifier: Apache-2.0 */
#include "common/cleanup.h"
#include "common/grpc.h"
#include "tests/test.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#define ECHO "/test.Echo/Say"

/* A server whose answer depends on the path, and a client, connected by a socket pair. */
typedef struct GrpcPair {
        GrpcConnection *server, *client;
        GrpcCall *held;
        unsigned n_gone, n_requests;
        uint64_t now;
} GrpcPair;

/* The result of a client's call. */
typedef struct CallRecord {
        unsigned n_messages, n_ends;
        size_t length; /* size of the last message */
        char first;    /* first byte of it */
        GrpcCode code;
        char text[256];
} CallRecord;

static void on_request(GrpcCall *call, const char *path, const char *message, size_t length,
                       void *userdata) {
        GrpcPair *pair = userdata;

        pair->n_requests++;
        if (streq(path, ECHO))
                grpc_call_reply(call, message, length);
        else if (streq(path, "/test.Echo/Hold"))
                pair->held = call;
        else
                grpc_call_fail(call, GRPC_UNKNOWN, "100%% wrong:\n\"%s\" é", path);
}

static void on_gone(GrpcCall *call, void *userdata) {
        GrpcPair *pair = userdata;

        EXPECT(call == pair->held);
        pair->held = NULL;
        pair->n_gone++;
}

static void on_message(const char *message, size_t length, void *userdata) {
        CallRecord *record = userdata;

        record->n_messages++;
        record->length = length;
        if (length > 0)
                record->first = message[0];
}

static void on_end(GrpcCode code, const char *text, void *userdata) {
        CallRecord *record = userdata;

        record->n_ends++;
        record->code = code;
        (void) snprintf(record->text, sizeof(record->text), "%s", text);
}

static void pair_start(GrpcPair *pair) {
        const GrpcServerHandlers handlers = { on_request, on_gone, pair };
        int fds[2];

        *pair = (GrpcPair){ .now = 1000 };
        REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) == 0);
        REQUIRE(grpc_server_new(fds[0], &handlers, &pair->server) == 0);
        REQUIRE(grpc_client_new(fds[1], &pair->client) == 0);
}

static void pair_done(GrpcPair *pair) {
        grpc_connection_free(pair->client);
        grpc_connection_free(pair->server);
}

/* Runs both sides until neither has anything to do. */
static void pair_run(GrpcPair *pair) {
        for (unsigned i = 0; i < 10000; i++) {
                struct pollfd fds[2] = { { .fd = -1 }, { .fd = -1 } };

                if (pair->server)
                        fds[0] = (struct pollfd){ .fd = grpc_connection_fd(pair->server),
                                                  .events = grpc_connection_events(pair->server) };
                if (pair->client)
                        fds[1] = (struct pollfd){ .fd = grpc_connection_fd(pair->client),
                                                  .events = grpc_connection_events(pair->client) };
                if (poll(fds, 2, 0) == 0)
                        return;
                if (fds[0].revents && grpc_connection_process(pair->server, pair->now) < 0)
                        pair->server = grpc_connection_free(pair->server);
                if (fds[1].revents && grpc_connection_process(pair->client, pair->now) < 0)
                        pair->client = grpc_connection_free(pair->client);
        }
        EXPECT(!"the connections never become idle");
}

static GrpcCall *start_call(GrpcPair *pair, const char *path, const void *message, size_t length,
                            uint64_t deadline, CallRecord *record) {
        const GrpcCallHandlers handlers = { on_message, on_end, record };
        GrpcCall *call = NULL;

        EXPECT_EQ(grpc_call_start(pair->client, path, message, length, false, deadline, &handlers,
                                  &call),
                  0);
        return call;
}

TEST(call_returns_the_message_of_its_response)
{
        GrpcPair pair;
        CallRecord record = { 0 };

        pair_start(&pair);
        start_call(&pair, ECHO, "hello", 5, UINT64_MAX, &record);
        pair_run(&pair);
        EXPECT_EQ(record.n_messages, 1);
        EXPECT_EQ(record.length, 5);
        EXPECT_EQ(record.n_ends, 1);
        EXPECT_EQ(record.code, GRPC_OK);
        EXPECT_STREQ(record.text, "");
        EXPECT_EQ(grpc_connection_calls(pair.client), 0);
        EXPECT_EQ(grpc_connection_calls(pair.server), 0);
        pair_done(&pair);
}

TEST(empty_message_is_sent_and_received)
{
        GrpcPair pair;
        CallRecord record = { 0 };

        pair_start(&pair);
        start_call(&pair, ECHO, "", 0, UINT64_MAX, &record);
        pair_run(&pair);
        EXPECT_EQ(record.n_messages, 1);
        EXPECT_EQ(record.length, 0);
        EXPECT_EQ(record.code, GRPC_OK);
        pair_done(&pair);
}

TEST(message_of_the_limit_passes_and_a_larger_one_is_refused)
{
        GrpcPair pair;
        CallRecord record = { 0 }, other = { 0 };
        char *large = malloc(GRPC_MESSAGE_MAX + 1);
        const GrpcCallHandlers handlers = { on_message, on_end, &other };

        REQUIRE(large);
        memset(large, 'x', GRPC_MESSAGE_MAX + 1);
        pair_start(&pair);
        start_call(&pair, ECHO, large, GRPC_MESSAGE_MAX, UINT64_MAX, &record);
        pair_run(&pair);
        EXPECT_EQ(record.length, GRPC_MESSAGE_MAX);
        EXPECT_EQ(record.first, 'x');
        EXPECT_EQ(record.code, GRPC_OK);
        EXPECT(grpc_call_start(pair.client, ECHO, large, GRPC_MESSAGE_MAX + 1, false, UINT64_MAX,
                               &handlers, NULL) < 0);
        free(large);
        pair_done(&pair);
}

TEST(error_of_the_server_reaches_the_client_with_any_characters)
{
        GrpcPair pair;
        CallRecord record = { 0 };

        pair_start(&pair);
        start_call(&pair, "/test.Echo/None", "", 0, UINT64_MAX, &record);
        pair_run(&pair);
        EXPECT_EQ(record.n_messages, 0);
        EXPECT_EQ(record.n_ends, 1);
        EXPECT_EQ(record.code, GRPC_UNKNOWN);
        EXPECT_STREQ(record.text, "100% wrong:\n\"/test.Echo/None\" é");
        EXPECT_STREQ(grpc_code_name(record.code), "Unknown");
        pair_done(&pair);
}

TEST(path_without_a_method_is_not_implemented)
{
        GrpcPair pair;
        CallRecord record = { 0 };

        pair_start(&pair);
        start_call(&pair, "/nothing", "", 0, UINT64_MAX, &record);
        pair_run(&pair);
        EXPECT_EQ(record.code, GRPC_UNIMPLEMENTED);
        EXPECT_EQ(pair.n_requests, 0);
        pair_done(&pair);
}

TEST(response_may_be_late_while_other_calls_are_answered)
{
        GrpcPair pair;
        CallRecord held = { 0 }, other = { 0 };

        pair_start(&pair);
        start_call(&pair, "/test.Echo/Hold", "", 0, UINT64_MAX, &held);
        pair_run(&pair);
        REQUIRE(pair.held);
        start_call(&pair, ECHO, "x", 1, UINT64_MAX, &other);
        pair_run(&pair);
        EXPECT_EQ(held.n_ends, 0);
        EXPECT_EQ(other.n_ends, 1);
        grpc_call_reply(pair.held, "late", 4);
        pair_run(&pair);
        EXPECT_EQ(held.length, 4);
        EXPECT_EQ(held.code, GRPC_OK);
        EXPECT_EQ(pair.n_gone, 0);
        pair_done(&pair);
}

TEST(deadline_ends_the_call_on_both_sides)
{
        GrpcPair pair;
        CallRecord record = { 0 };

        pair_start(&pair);
        start_call(&pair, "/test.Echo/Hold", "", 0, 5000, &record);
        pair_run(&pair);
        EXPECT_EQ(grpc_connection_deadline(pair.client), 5000);
        EXPECT_EQ(record.n_ends, 0);
        pair.now = 5000;
        EXPECT_EQ(grpc_connection_process(pair.client, pair.now), 0);
        pair_run(&pair);
        EXPECT_EQ(record.n_ends, 1);
        EXPECT_EQ(record.code, GRPC_DEADLINE_EXCEEDED);
        EXPECT_EQ(pair.n_gone, 1);
        EXPECT(grpc_connection_deadline(pair.client) == UINT64_MAX);
        pair_done(&pair);
}

TEST(cancelled_call_is_dropped_at_the_server_and_not_reported)
{
        GrpcPair pair;
        CallRecord record = { 0 };
        GrpcCall *call;

        pair_start(&pair);
        call = start_call(&pair, "/test.Echo/Hold", "", 0, UINT64_MAX, &record);
        pair_run(&pair);
        grpc_call_cancel(call);
        pair_run(&pair);
        EXPECT_EQ(pair.n_gone, 1);
        EXPECT_EQ(record.n_ends, 0);
        /* Before it was sent. */
        call = start_call(&pair, ECHO, "", 0, UINT64_MAX, &record);
        grpc_call_cancel(call);
        pair_run(&pair);
        EXPECT_EQ(record.n_ends, 0);
        pair_done(&pair);
}

TEST(end_of_the_server_ends_all_calls_as_unavailable)
{
        GrpcPair pair;
        CallRecord record = { 0 };

        pair_start(&pair);
        start_call(&pair, "/test.Echo/Hold", "", 0, UINT64_MAX, &record);
        pair_run(&pair);
        pair.server = grpc_connection_free(pair.server);
        EXPECT_EQ(pair.n_gone, 1);
        pair_run(&pair);
        EXPECT(!pair.client);
        EXPECT_EQ(record.n_ends, 1);
        EXPECT_EQ(record.code, GRPC_UNAVAILABLE);
        pair_done(&pair);
}

TEST(many_calls_at_once_are_all_answered)
{
        enum {
                N = 500
        };
        GrpcPair pair;
        static CallRecord records[N];
        char message[3000];

        memset(message, 'm', sizeof(message));
        memset(records, 0, sizeof(records));
        pair_start(&pair);
        for (size_t i = 0; i < N; i++)
                start_call(&pair, ECHO, message, sizeof(message), UINT64_MAX, &records[i]);
        pair_run(&pair);
        for (size_t i = 0; i < N; i++)
                if (records[i].n_ends != 1 || records[i].code != GRPC_OK ||
                    records[i].length != sizeof(message))
                        EXPECT(!"a call was not answered");
        pair_done(&pair);
}

/* ---- a peer that does not speak HTTP/2 ---- */

TEST(peer_that_sends_invalid_data_is_disconnected)
{
        const GrpcServerHandlers handlers = { on_request, on_gone, NULL };
        static const char request[] = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
        GrpcConnection *server = NULL;
        int fds[2];

        REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) == 0);
        REQUIRE(grpc_server_new(fds[0], &handlers, &server) == 0);
        REQUIRE(write(fds[1], request, strlen(request)) == (ssize_t) strlen(request));
        EXPECT_EQ(grpc_connection_process(server, 1), -EPROTO);
        EXPECT_EQ(grpc_connection_events(server), 0);
        EXPECT_EQ(grpc_connection_process(server, 1), -ECONNRESET);
        grpc_connection_free(server);
        close(fds[1]);
}

/* ---- a peer that does not read ---- */

/* A request of HTTP/2 for "/", without a body. */
static void format_request(unsigned char frame[14], uint32_t stream) {
        enum {
                HEADERS = 1,
                END_STREAM_AND_HEADERS = 5,
        };
        /* Three fields of HPACK's static table, and an empty ":authority". */
        const unsigned char bytes[14] = { 0,
                                          0,
                                          5,
                                          HEADERS,
                                          END_STREAM_AND_HEADERS,
                                          (unsigned char) (stream >> 24),
                                          (unsigned char) (stream >> 16),
                                          (unsigned char) (stream >> 8),
                                          (unsigned char) stream,
                                          0x83,
                                          0x84,
                                          0x86,
                                          0x01,
                                          0x00 };

        memcpy(frame, bytes, sizeof(bytes));
}

static void read_everything(int fd) {
        char data[65536];

        while (read(fd, data, sizeof(data)) > 0)
                ;
}

TEST(nothing_is_read_from_a_peer_that_does_not_read)
{
        enum {
                N = 50000
        };
        static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0";
        const GrpcServerHandlers handlers = { on_request, on_gone, NULL };
        GrpcConnection *server = NULL;
        uint32_t stream = 1;
        int fds[2];

        REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) == 0);
        REQUIRE(grpc_server_new(fds[0], &handlers, &server) == 0);
        REQUIRE(write(fds[1], preface, sizeof(preface) - 1) == (ssize_t) sizeof(preface) - 1);
        for (; stream < 2 * N && grpc_connection_events(server) & POLLIN; stream += 2) {
                unsigned char frame[14];

                format_request(frame, stream);
                if (write(fds[1], frame, sizeof(frame)) == (ssize_t) sizeof(frame) &&
                    stream % 1024 != 1)
                        continue;
                REQUIRE(grpc_connection_process(server, 1) == 0);
        }
        EXPECT(stream < 2 * N);
        EXPECT_EQ(grpc_connection_events(server), POLLOUT);
        for (unsigned i = 0; i < 1000 && !(grpc_connection_events(server) & POLLIN); i++) {
                read_everything(fds[1]);
                REQUIRE(grpc_connection_process(server, 1) == 0);
        }
        EXPECT(grpc_connection_events(server) & POLLIN);
        grpc_connection_free(server);
        close(fds[1]);
}
