/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <archive_entry.h>
#include <stdint.h>

/* The modification time of an archive entry, in seconds since 1970. libarchive returns it in the
 * time_t with which it was built, which differs from ours on a 32-bit distribution: there, values
 * that would be before 1970 are interpreted as times until 2106. */
int64_t archive_entry_read_mtime(struct archive_entry *entry);
