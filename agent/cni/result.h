/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a plugin writes: a result, or an error. Both were made by programs that an administrator
 * installed, and are checked as if they were a stranger's. */

#include "common/error.h"

#include <jansson.h>

enum {
        CNI_ADDRESS_SIZE = 46, /* INET6_ADDRSTRLEN */
        CNI_ADDRESSES_MAX = 2, /* one of each family */
};

typedef struct CniAddresses {
        char texts[CNI_ADDRESSES_MAX][CNI_ADDRESS_SIZE];
        size_t n;
} CniAddresses;

/* Parses the output of ADD. The caller owns the reference. 0 or -EBADMSG with the sentence. */
int cni_result_parse(const char *output, json_t **ret, Error *reterr);

/* The addresses of the pod's interface in a result: without their prefixes, the first of each
 * family, IPv4 before IPv6. -EBADMSG with the sentence where one is none, or there is none. */
int cni_result_pod_addresses(const json_t *result, const char *interface, CniAddresses *ret,
                             Error *reterr);

/* All addresses of the pod's interface in a result that is one, as a list of texts without
 * prefixes; empty for NULL. The caller owns the reference. */
json_t *cni_result_list_addresses(const json_t *result, const char *interface);

/* The sentence of an error object, in memory that the caller frees; NULL where the output has none.
 */
char *cni_error_message(const char *output);
