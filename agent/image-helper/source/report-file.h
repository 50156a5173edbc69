/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Writes a report into a directory, such as one of a USB stick: a file for each node, which
 * replaces that of an earlier report only when it is complete and synced. The stick is a
 * stranger's: no link of it is followed, and whatever it has under the names of the files is
 * replaced or reported as an error. The process can write nothing but the directory, and read
 * nothing but logs. */

#include "agent/image-helper/source/source-settings.h"

/* 0; -ENOMEDIUM: the directory is not there; or -errno; with a message. */
int write_report_file(const SourceSettings *settings, Error *reterr);
