/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* System call filters (seccomp) of the two kinds of processes. */

#include "common/error.h"

/* For the parser: only the calls of a list, none of which reaches the network, runs a program or
 * accesses the memory of a process. */
int seccomp_filter_unpacker(Error *reterr);

/* For fetchers, whose libraries resolve names and do TLS: all but those that run programs, reach
 * other processes, mount, create namespaces or administer the kernel. */
int seccomp_filter_fetcher(Error *reterr);
