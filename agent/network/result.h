/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a plugin writes: a result, or an error. Both were made by programs that an administrator
 * installed, and are checked as if they were a stranger's. */

#include "common/error.h"

#include <jansson.h>

enum {
        ADDRESS_SIZE = 46, /* INET6_ADDRSTRLEN */
        ADDRESSES_MAX = 2, /* one of each family */
};

typedef struct Addresses {
        char texts[ADDRESSES_MAX][ADDRESS_SIZE];
        size_t n;
} Addresses;

/* Parses the output of ADD. The caller owns the reference. 0 or -EBADMSG with the sentence. */
int network_result_parse(const char *output, json_t **ret, Error *reterr);

/* The addresses of the pod's interface in a result: without their prefixes, the first of each
 * family, IPv4 before IPv6. -EBADMSG with the sentence where one is none, or there is none. */
int network_result_addresses(const json_t *result, const char *interface, Addresses *ret,
                             Error *reterr);

/* All addresses of the pod's interface in a result that is one, as a list of texts without
 * prefixes; empty for NULL. The caller owns the reference. */
json_t *network_result_list(const json_t *result, const char *interface);

/* The sentence of an error object, in memory that the caller frees; NULL where the output has none.
 */
char *network_error_sentence(const char *output);
