/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes from a client that uses a protocol with channels have the same effect in one piece and byte
 * by byte, unless they violate the protocol: wslay checks each piece that arrives for valid UTF-8
 * in texts and in the reasons of close frames. The first byte selects whether messages are
 * base64. */

#include "tests/fuzz/fuzz.h"

#include "agent/node-api/session/channel-socket.h"
#include "common/cleanup.h"

#include <errno.h>

static void on_fuzzed_channel_data(unsigned char channel, const char *data, size_t length,
                                   void *userdata) {
        uint64_t *sum = userdata;

        assert(length > 0);
        for (size_t i = 0; i < length; i++)
                *sum = (*sum ^ ((uint64_t) channel << 8 | (unsigned char) data[i])) *
                       UINT64_C(1099511628211);
}

static uint64_t run_fuzzed_channels(const uint8_t *data, size_t size, size_t piece, int *ret) {
        ByteQueue output = { 0 };
        ChannelSocket *socket;
        uint64_t sum = 0;
        size_t n = 1;

        *ret = 0;
        assert(channel_socket_new(data[0] & 1, on_fuzzed_channel_data, &sum, &output, &socket) >=
               0);
        while (*ret == 0 && n < size) {
                size_t next = MIN(piece, size - n);

                *ret = channel_socket_receive(socket, data + n, next);
                n += next;
        }
        assert(*ret >= 0 || *ret == -EPROTO || *ret == -ENOBUFS);
        (void) channel_socket_send(socket, 1, "x", 1);
        (void) channel_socket_close(socket);
        channel_socket_free(socket);
        byte_queue_done(&output);
        return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        int whole, pieces;
        uint64_t sum, pieces_sum;

        if (size == 0)
                return 0;
        sum = run_fuzzed_channels(data, size, SIZE_MAX, &whole);
        pieces_sum = run_fuzzed_channels(data, size, 1, &pieces);
        assert(whole < 0 || pieces < 0 || (whole == pieces && sum == pieces_sum));
        return 0;
}
