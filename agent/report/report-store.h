/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The queue on disk: a file for each object, with a checksum (see common/checksummed.h), so that a
 * change of an object writes its lines only. The file of an object is removed when all of it was
 * sent. The file ".dropped" has the count of dropped lines. Files are written by a child, and
 * synced before they replace older ones: a power cut leaves the old lines of an object or the new
 * ones. While nothing changes, no timer runs and nothing is written. */

#include "agent/report/report-queue.h"

#include <systemd/sd-event.h>

typedef struct ReportStore ReportStore;

/* Reads the files of an earlier agent in 'directory', which is created if it is missing. A damaged
 * file is set aside and named in the log; files of no object are ignored. 'queue' is borrowed, and
 * outlives it. 0 or -errno. */
int report_store_new(sd_event *event, const char *directory, ReportQueue *queue, ReportStore **ret);

/* Writes all changes, and waits for the disk. NULL is fine. */
ReportStore *report_store_free(ReportStore *store);
DEFINE_CLEANUP(ReportStore *, report_store_free)

/* The queue has changed: it is written some seconds later, with the changes until then. */
void report_store_wake(ReportStore *store);

/* The queue has changed, and is written now. A failed write is tried again, and logged once until
 * it succeeds. */
void report_store_save(ReportStore *store);
