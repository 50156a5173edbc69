/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Checks a manifest source for new content (the kubelet's http source, and signed indexes), and
 * provides new content, complete and verified, to the agent. Manifests are not parsed here, and
 * nothing that the agent uses is changed. */

#include "agent/image-helper/source/source-settings.h"

/* 'directory' is the directory of source-store.h. Prints a line of JSON with the result on standard
 * output: {"result": "unchanged" or "new", "requests": …, "bytes": …}. 0; or -errno with a message:
 * -EAGAIN if the source cannot be reached or fails, -ENOMEDIUM if there is no stick.
 */
int update_source(const char *directory, const SourceSettings *settings, Error *reterr);
