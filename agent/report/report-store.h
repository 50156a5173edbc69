/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The queue on disk: a checksummed file for each object (see common/checksummed.h), so that a
 * change of an object writes only its own lines. The file of an object is removed when all of its
 * lines have been sent. The file ".dropped" contains the number of dropped lines. A child writes
 * the files, and syncs them before they replace older ones, so that after a power cut an object has
 * either its old or its new lines. While nothing changes, no timer runs and nothing is written. */

#include "agent/report/report-queue.h"

#include <systemd/sd-event.h>

typedef struct ReportStore ReportStore;

/* Reads the files of an earlier agent in 'directory', which is created if it is missing. A damaged
 * file is set aside and logged; files that belong to no object are ignored. 'queue' is borrowed,
 * and outlives it. 0 or -errno. */
int report_store_new(sd_event *event, const char *directory, ReportQueue *queue, ReportStore **ret);

/* Writes all changes, and waits for the disk. NULL is allowed. */
ReportStore *report_store_free(ReportStore *store);
DEFINE_CLEANUP(ReportStore *, report_store_free)

/* The queue has changed. It is written a few seconds later, together with all changes until then.
 */
void report_store_wake(ReportStore *store);

/* The queue has changed, and is written now. A failed write is repeated, and logged once until it
 * succeeds. */
void report_store_save(ReportStore *store);
