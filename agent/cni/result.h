/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The output of a plugin: a result or an error. Plugins are installed by the administrator, but
 * their output is not trusted. */

#include "common/error.h"

#include <jansson.h>

enum {
        CNI_ADDRESS_SIZE = 46, /* INET6_ADDRSTRLEN */
        CNI_ADDRESSES_MAX = 2, /* one per family */
};

typedef struct CniAddresses {
        char texts[CNI_ADDRESSES_MAX][CNI_ADDRESS_SIZE];
        size_t n;
} CniAddresses;

/* Parses the output of ADD. The caller owns the reference. 0 or -EBADMSG with a message. */
int cni_result_parse(const char *output, json_t **ret, Error *reterr);

/* The addresses of the pod's interface in a result: without prefix lengths, the first of each
 * family, IPv4 before IPv6. -EBADMSG with a message if an address is invalid or there is none. */
int cni_result_pod_addresses(const json_t *result, const char *interface, CniAddresses *ret,
                             Error *reterr);

/* All valid addresses of the pod's interface in a result, as a list of strings without prefix
 * lengths; empty for NULL. The caller owns the reference. */
json_t *cni_result_list_addresses(const json_t *result, const char *interface);

/* The message of an error object, which the caller frees; NULL if the output has none. */
char *cni_error_message(const char *output);
