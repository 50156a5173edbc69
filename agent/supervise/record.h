/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the agent remembers of a pod across its own death: the spec as it was last good, and the
 * file it came from, in <state-dir>/pods/<uid>/record. All else the shims know. A record carries
 * its own checksum; one that does not verify is set aside and named, and never stops a start. */

#include "agent/model/pod.h"
#include "common/error.h"

/* Writes the record, replacing an older one. 0 or -errno. */
int record_store(const char *state_dir, const char *file, const Pod *pod, Error *reterr);

/* -ENOENT: there is none; -EBADMSG: it is damaged. The caller frees both. */
int record_load(const char *state_dir, const char *uid, char **ret_file, Pod **ret_pod,
                Error *reterr);

/* Moves a damaged record to <state-dir>/corrupt/<uid>.<n>. */
int record_set_aside(const char *state_dir, const char *uid, Error *reterr);
