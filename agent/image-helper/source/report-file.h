/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Writes a report to a directory, such as one on a USB stick: a file for each node, which replaces
 * the file of an earlier report only when it is complete and synced. The content of a stick is
 * untrusted: links are not followed, and existing files with the names of the report are replaced
 * or reported as an error. The process can only write to the directory and read logs. */

#include "agent/image-helper/source/source-settings.h"

/* 0; -ENOMEDIUM: the directory does not exist; or -errno; with a message. */
int write_report_file(const SourceSettings *settings, Error *reterr);
