/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the agent remembers of a pod across its own death: the spec as it was last good, its
 * source, and which attempts were started by an older spec, in <state-dir>/pods/<uid>/record. All
 * else the shims know. A record carries its own checksum; one that does not verify is set aside and
 * named, and never stops a start. */

#include "agent/model/pod-source.h"
#include "common/error.h"

typedef struct PodRecord {
        PodSource source;
        Pod *pod;
        char *outdated; /* "web 3 db 0": up to these attempts; one line */
} PodRecord;

/* Writes the record, replacing an older one; its strings may be borrowed. 0 or -errno. */
int pod_record_store(const char *state_dir, const PodRecord *record, Error *reterr);

/* -ENOENT: there is none; -EBADMSG: it is damaged. The caller ends it with pod_record_done(). */
int pod_record_load(const char *state_dir, const char *uid, PodRecord *ret, Error *reterr);
void pod_record_done(PodRecord *record);

/* Moves a damaged record to <state-dir>/corrupt/<uid>.<n>. */
int pod_record_set_aside(const char *state_dir, const char *uid, Error *reterr);
