/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Compares the address of a listening socket with 'address' and 'port' of a
 * KubeletConfiguration. */

#include "common/error.h"

/* 'address' is numeric; NULL, "0.0.0.0" and "::" mean all addresses. 0; -EINVAL with a message if
 * they differ; -errno. */
int check_listen_address(int fd, const char *address, unsigned port, Error *reterr);
