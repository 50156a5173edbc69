/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The record of an index with a progress deadline, in the directory of its source:
 *   current/proven   its pods were ready: it cannot be rolled back any more
 *   rolled-back      the index that was: its digest, and why; it is not used again */

#include "agent/source/source-answer.h"

typedef struct SourceRollback {
        char *sha256; /* digest of the index; NULL: none was rolled back */
        char *reason; /* a message of one line */
} SourceRollback;

#define SOURCE_ROLLBACK_NAME "rolled-back"
#define SOURCE_PROVEN_NAME   "proven"

/* A damaged file is set aside and treated as empty. */
void source_rollback_load(int dir_fd, SourceRollback *ret);
void source_rollback_done(SourceRollback *rollback);

/* Replaces the record. 0 or -errno. */
int source_rollback_store(int dir_fd, const char *sha256, const char *reason);

/* True if the index in use has a progress deadline, has not been proven good, and can be rolled
 * back to 'before'. */
bool source_is_on_trial(int dir_fd, const SourceInUse *in_use, const SourceInUse *before,
                        const SourceRollback *rollback);

/* Whether a rollback of the index in use was recorded, but not carried out. */
bool source_rollback_is_due(const SourceInUse *in_use, const SourceInUse *before,
                            const SourceRollback *rollback);

/* 0 or -errno. */
int source_mark_proven(int dir_fd);
