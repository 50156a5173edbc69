/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the agent remembers of a pod across its own death: the spec as it was last good, the file it
 * came from, and which attempts had begun by an older spec, in <state-dir>/pods/<uid>/record. All
 * else the shims know. A record carries its own checksum; one that does not verify is set aside and
 * named, and never stops a start. */

#include "agent/model/pod.h"
#include "common/error.h"

typedef struct Record {
        char *file;
        Pod *pod;
        char *outdated; /* "web 3 db 0": up to these attempts; one line */
} Record;

/* Writes the record, replacing an older one; its strings may be borrowed. 0 or -errno. */
int record_store(const char *state_dir, const Record *record, Error *reterr);

/* -ENOENT: there is none; -EBADMSG: it is damaged. The caller ends it with record_done(). */
int record_load(const char *state_dir, const char *uid, Record *ret, Error *reterr);
void record_done(Record *record);

/* Moves a damaged record to <state-dir>/corrupt/<uid>.<n>. */
int record_set_aside(const char *state_dir, const char *uid, Error *reterr);
