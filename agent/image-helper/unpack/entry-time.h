/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <archive_entry.h>
#include <stdint.h>

/* When an entry of an archive was modified, in seconds since 1970. libarchive says it in the time_t
 * that it was built with, other than ours on a distribution of 32 bits: times until 2106 are read
 * there, in the place of those before 1970. */
int64_t archive_entry_read_mtime(struct archive_entry *entry);
