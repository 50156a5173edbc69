/* SPDX-License-Identifier: Apache-2.0 */
/* The time_t of this file is that of the distribution's libraries; see agent/CMakeLists.txt. */

#include "agent/image-helper/unpack/entry-time.h"

int64_t archive_entry_read_mtime(struct archive_entry *entry) {
        time_t mtime = archive_entry_mtime(entry);

        return sizeof(mtime) > sizeof(uint32_t) ? (int64_t) mtime : (int64_t) (uint32_t) mtime;
}
