/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Compares the address of a listening socket with 'address' and 'port' of a
 * KubeletConfiguration. */

#include "common/error.h"

/* 'address' is numeric; NULL, "0.0.0.0" and "::" are all addresses. 0; -EINVAL with a message if
 * the two differ; -errno. */
int check_listen_address(int fd, const char *address, unsigned port, Error *reterr);
