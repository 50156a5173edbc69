/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Delivers a report, 'settings->body': by one POST, in which case the process has access to nothing
 * but the network, and only the status of the response is read; or as a file, see report-file.h. */

#include "agent/image-helper/source/source-settings.h"

/* 0: it has arrived; -ENOMEDIUM: the directory is not there; or -errno; with a message. */
int deliver_report(const SourceSettings *settings, Error *reterr);
