/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Delivers the report 'settings->body': as a file (see report-file.h), or with one POST. For the
 * POST, the process can access nothing but the network, and reads only the status of the response.
 */

#include "agent/image-helper/source/source-settings.h"

/* 0: it was delivered; -ENOMEDIUM: the directory does not exist; or -errno; with a message. */
int deliver_report(const SourceSettings *settings, Error *reterr);
