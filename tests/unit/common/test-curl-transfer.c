/* SPDX-License-Identifier: Apache-2.0 */
#include "common/curl-transfer.h"

#include "common/cleanup.h"
#include "tests/test.h"

#include <errno.h>

TEST(equal_failures_have_equal_explanations)
{
        static const struct {
                CURLcode code;
                int result;
                const char *message, *expected;
        } cases[] = {
                { CURLE_COULDNT_CONNECT, 0, "Failed to connect to a port 1 after 12 ms: Refused",
                  "Failed to connect to a port 1: Refused" },
                { CURLE_COULDNT_CONNECT, 0, "The port after 9 is busy.\n",
                  "The port after 9 is busy" },
                { CURLE_OPERATION_TIMEDOUT, 0, "Connection timed out after 30004 milliseconds",
                  "Connection timed out" },
                { CURLE_OPERATION_TIMEDOUT, 0,
                  "Operation timed out after 5001 milliseconds with 0 bytes received",
                  "Operation timed out with 0 bytes received" },
                { CURLE_PEER_FAILED_VERIFICATION, 0,
                  "It is unknown. CAfile: /proc/self/fd/7 CRLfile: none", "It is unknown" },
                { CURLE_GOT_NOTHING, 0, "Empty reply from server",
                  "the server closed the connection without a response" },
                { CURLE_COULDNT_CONNECT, 0, "", NULL }, /* the library's own message */
                { CURLE_WRITE_ERROR, -EFBIG, "Failure writing", "the response is too long" },
                { CURLE_WRITE_ERROR, -ENOSPC, "Failure writing", "No space left on device" },
                { CURLE_WRITE_ERROR, -EMSGSIZE, "Failure writing",
                  "the header of the response is larger than 64 KiB" },
        };

        REQUIRE(curl_library(NULL));
        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                CurlTransfer transfer = { .result = cases[i].result, .header_max = 64 * KIB };

                (void) snprintf(transfer.error, sizeof(transfer.error), "%s", cases[i].message);
                EXPECT_STREQ(curl_transfer_explain(&transfer, cases[i].code),
                             cases[i].expected ?: curl_library(NULL)->easy_strerror(cases[i].code));
        }
}

TEST(header_of_several_lines_is_refused)
{
        static const char *const lines[] = { "X-A: b\r\nX-C: d", "X-A: b\n", "X-A: b\r" };
        CurlTransfer transfer = { 0 };

        REQUIRE(curl_library(NULL));
        for (size_t i = 0; i < N_ELEMENTS(lines); i++)
                EXPECT_EQ(curl_transfer_add_header(&transfer, lines[i]), -EINVAL);
        EXPECT(!transfer.headers);
}
