/* SPDX-License-Identifier: Apache-2.0 */
/* Any input as a packet results in a message that can be encoded and decoded again, or in an
 * error. */

#include "tests/fuzz/fuzz.h"

#include "agent/sandbox/protocol.h"
#include "common/cleanup.h"

#include <errno.h>

static void check_decoded_request(const ShimRequest *request) {
        cleanup_shim_request ShimRequest again = { 0 };
        cleanup_free char *packet = NULL;
        size_t length = 0;
        int r = shim_request_encode(request, &packet, &length);

        assert(r >= 0 || r == -EMSGSIZE); /* our escapes may be longer than those of the input */
        if (r < 0)
                return;
        r = shim_request_decode(packet, length, &again, NULL);
        assert(r >= 0);
        assert(again.type == request->type && streq_ptr(again.id, request->id));
        assert(again.directories.n == request->directories.n);
        assert(again.grace_usec == request->grace_usec && again.signal == request->signal);
}

static void check_decoded_event(const ShimEvent *event) {
        cleanup_shim_event ShimEvent again = { 0 };
        cleanup_free char *packet = NULL;
        size_t length = 0;
        int r = shim_event_encode(event, &packet, &length);

        assert(r >= 0 || r == -EMSGSIZE);
        if (r < 0)
                return;
        r = shim_event_decode(packet, length, &again, NULL);
        assert(r >= 0);
        assert(again.type == event->type && streq_ptr(again.message, event->message));
        assert(again.exit_code == event->exit_code && again.finished_at == event->finished_at);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        cleanup_shim_request ShimRequest request = { 0 };
        cleanup_shim_event ShimEvent event = { 0 };
        cleanup_error Error first = ERROR_NULL, second = ERROR_NULL;

        if (shim_request_decode((const char *) data, size, &request, &first) >= 0)
                check_decoded_request(&request);
        else
                assert(first.message);
        if (shim_event_decode((const char *) data, size, &event, &second) >= 0)
                check_decoded_event(&event);
        else
                assert(second.message);
        return 0;
}
