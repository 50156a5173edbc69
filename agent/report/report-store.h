/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The queue on disk: a file for each object, replaced as a whole, with a checksum (see
 * common/checksummed.h), so that a change of an object writes its lines only. The file of an object
 * of which all was sent is removed. The file ".dropped" has the count of what was dropped. */

#include "agent/report/report-queue.h"

/* Reads what an earlier agent left; a damaged file is set aside and named in the log. Files of no
 * object are ignored. 0 or -ENOMEM. */
int report_store_load(int dir_fd, ReportQueue *queue);

/* Writes what has changed since. 0 or the first -errno; what failed is tried again the next time.
 */
int report_store_save(int dir_fd, ReportQueue *queue, uint64_t *saved_dropped);
