/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Asks a source of manifests whether there is something new (the kubelet's http source, and signed
 * indexes), and if so leaves it, whole and verified, for the agent. Here no manifest is parsed, and
 * nothing that the agent uses is changed. */

#include "agent/image-helper/source/source-settings.h"

/* 'directory' is that of source-store.h. A line of JSON on standard output contains the result:
 * {"result": "unchanged" or "new", "requests": …, "bytes": …}. 0; or -errno with a message, which
 * is -EAGAIN if the source cannot be reached or fails, and -ENOMEDIUM if there is no stick.
 */
int update_source(const char *directory, const SourceSettings *settings, Error *reterr);
