/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The record of a pod, by which a restarted agent recognizes it: the last valid spec, its source,
 * and the attempts that started from an older spec, in <state-dir>/pods/<uid>/record. All else is
 * known to the shims. A record carries its own checksum; one that does not verify is set aside and
 * logged, and never keeps the agent from starting. */

#include "agent/model/pod-source.h"
#include "common/error.h"

typedef struct PodRecord {
        PodSource source;
        Pod *pod;
        char *outdated; /* "web 3 db 0": up to these attempts; one line */
} PodRecord;

/* Writes the record, replacing an older one; its strings may be borrowed. 0; -E2BIG if it would be
 * too large to be loaded; -errno. */
int pod_record_store(const char *state_dir, const PodRecord *record, Error *reterr);

/* -ENOENT: there is none; -EBADMSG: it is damaged; -ENOTSUP: it is whole, but of a later version;
 * or another -errno, such as -EMFILE or -EIO, which may pass: it can be read later, or by the next
 * agent. The caller ends it with
 * pod_record_done(). */
int pod_record_load(const char *state_dir, const char *uid, PodRecord *ret, Error *reterr);
void pod_record_done(PodRecord *record);

/* Whether files next to the record show that the pod failed, ended or is being deleted: they are
 * valid without it, for example after damage. */
bool pod_record_has_companions(const char *state_dir, const char *uid);

/* Moves a damaged record to <state-dir>/corrupt/<uid>.<n>. */
int pod_record_set_aside(const char *state_dir, const char *uid, Error *reterr);
