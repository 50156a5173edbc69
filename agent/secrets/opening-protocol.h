/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The bytes exchanged between the agent and mainstay-secret, which are from the same build:
 * integers are in native byte order.
 *
 * The request, on standard input: OpeningRequest; n_identities AgeKeys; for each value its length,
 * a uint32_t, and its bytes. The answer, on standard output: for each value in the order of the
 * request an OpenedHeader, and the plaintext, or the message. */

#include "common/age-file.h"

enum {
        OPENING_IDENTITIES_MAX = 8,
        OPENING_MESSAGE_MAX = 512,           /* bytes */
        OPENING_VALUES_MAX = 4096,           /* limit of a request */
        OPENING_BYTES_MAX = 4 * 1024 * 1024, /* limit for the values of a request */
};

typedef struct OpeningRequest {
        uint32_t n_identities;
        uint32_t n_values;
} OpeningRequest;

typedef struct OpenedHeader {
        uint32_t error; /* 0, or an errno, in which case the bytes are a message */
        uint32_t length;
} OpenedHeader;
