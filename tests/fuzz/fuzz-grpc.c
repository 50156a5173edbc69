/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes from a peer after the preface: a server and a client survive them, answer each request
 * at most once, and end each call once. The first byte selects the server or the client. */

#include "tests/fuzz/fuzz.h"

#include "common/grpc.h"

#include <sys/socket.h>
#include <unistd.h>

static unsigned n_ends;

static void on_fuzzed_request(GrpcCall *call, const char *path, const char *message, size_t length,
                              void *userdata) {
        assert(path[0] == '/' && length <= GRPC_MESSAGE_MAX);
        if (length % 2 == 0)
                grpc_call_reply(call, message, length);
        else
                grpc_call_fail(call, GRPC_UNKNOWN, "%s", path);
}

static void on_fuzzed_gone(GrpcCall *call, void *userdata) {
        assert(!"all are answered at once");
}

static void on_fuzzed_message(const char *message, size_t length, void *userdata) {
        assert(length <= GRPC_MESSAGE_MAX && n_ends == 0);
}

static void on_fuzzed_end(GrpcCode code, const char *text, void *userdata) {
        n_ends++;
}

static GrpcConnection *make_end(int fd, bool is_server) {
        static const GrpcServerHandlers server = { on_fuzzed_request, on_fuzzed_gone, NULL };
        static const GrpcCallHandlers call = { on_fuzzed_message, on_fuzzed_end, NULL };
        GrpcConnection *connection = NULL;

        if (is_server) {
                assert(grpc_server_new(fd, &server, &connection) == 0);
                return connection;
        }
        assert(grpc_client_new(fd, &connection) == 0);
        assert(grpc_call_start(connection, "/v1beta1.DevicePlugin/ListAndWatch", "", 0, true,
                               UINT64_MAX, &call, NULL) == 0);
        return connection;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
        bool is_server = size > 0 && data[0] % 2 == 0;
        GrpcConnection *connection;
        int fds[2], buffer = 1 << 20;

        if (size < 1 || size > 60000)
                return 0;
        n_ends = 0;
        assert(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) == 0);
        (void) setsockopt(fds[1], SOL_SOCKET, SO_SNDBUF, &buffer, sizeof(buffer));
        connection = make_end(fds[0], is_server);
        assert(grpc_connection_process(connection, 1) == 0);
        if (is_server)
                assert(write(fds[1], preface, sizeof(preface) - 1) == sizeof(preface) - 1);
        (void) !write(fds[1], data + 1, size - 1);
        (void) grpc_connection_process(connection, 2);
        (void) grpc_connection_process(connection, 3);
        grpc_connection_free(connection);
        assert(is_server || n_ends == 1);
        close(fds[1]);
        return 0;
}
