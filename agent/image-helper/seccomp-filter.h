/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* System call filters of the two halves. */

#include "common/error.h"

/* For who parses and unpacks: only the calls of a list, none of which reaches the network, another
 * program or another process' memory. */
int seccomp_filter_unpacker(Error *reterr);

/* For who fetches, in whose libraries resolvers and TLS live: all but those that lead to other
 * programs, other processes, mounts, namespaces and the kernel's own workings. */
int seccomp_filter_fetcher(Error *reterr);
