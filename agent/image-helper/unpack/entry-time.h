/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <archive_entry.h>
#include <stdint.h>

/* The time when an entry of an archive was modified, in seconds since 1970. libarchive returns it
 * in the time_t that it was built with, which differs from ours on a 32-bit distribution: times
 * until 2106 are read there, instead of those before 1970. */
int64_t archive_entry_read_mtime(struct archive_entry *entry);
