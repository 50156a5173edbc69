/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Delivers a report, 'settings->body': with one POST, in which case the process can access nothing
 * but the network, and only reads the status of the response; or as a file, see report-file.h. */

#include "agent/image-helper/source/source-settings.h"

/* 0: it was delivered; -ENOMEDIUM: the directory does not exist; or -errno; with a message. */
int deliver_report(const SourceSettings *settings, Error *reterr);
