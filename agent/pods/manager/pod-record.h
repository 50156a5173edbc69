/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The record of a pod, by which a restarted agent recognizes it: the last valid spec, its source,
 * and the attempts that were started with an older spec, in <state-dir>/pods/<uid>/record. The
 * shims keep everything else. A record contains its own checksum; if the checksum does not match,
 * the record is set aside, this is logged, and the agent starts nevertheless. */

#include "agent/model/pod-source.h"
#include "common/error.h"

typedef struct PodRecord {
        PodSource source;
        Pod *pod;
        char *outdated; /* "web 3 db 0": the attempts up to these numbers; one line */
} PodRecord;

/* Writes the record, replacing an older one; its strings may be borrowed. 0; -E2BIG if it would be
 * too large to be loaded; -errno. */
int pod_record_store(const char *state_dir, const PodRecord *record, Error *reterr);

/* -ENOENT: there is none; -EBADMSG: it is damaged; -ENOTSUP: it is intact, but was written by a
 * later version; or another -errno, such as -EMFILE or -EIO, which may be temporary: the record can
 * be read later, or by the next agent. The caller releases it with pod_record_done(). */
int pod_record_load(const char *state_dir, const char *uid, PodRecord *ret, Error *reterr);
void pod_record_done(PodRecord *record);

/* Whether files next to the record show that the pod has failed, has ended or is being deleted.
 * They are valid without the record, for example if it is damaged. */
bool pod_record_has_companions(const char *state_dir, const char *uid);

/* Moves a damaged record to <state-dir>/corrupt/<uid>.<n>. */
int pod_record_set_aside(const char *state_dir, const char *uid, Error *reterr);
