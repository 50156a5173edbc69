/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* System call filters (seccomp) for both kinds of processes. */

#include "common/error.h"

/* For the parser: permits only listed calls, none of which uses the network, runs a program or
 * accesses the memory of a process. */
int seccomp_filter_unpacker(Error *reterr);

/* For fetchers, whose libraries resolve names and implement TLS: permits all calls except those
 * that run programs, reach other processes, mount, create namespaces or administer the kernel. */
int seccomp_filter_fetcher(Error *reterr);
