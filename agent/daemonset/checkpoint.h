/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Checkpoints of DaemonSets: one checksummed file <state>/daemonsets/<uid> each, with the revision
 * history, so that a rollback or rollout restart survives a restart of the agent. */

#include "agent/daemonset/rules/history.h"

/* 0 or -errno with a message; the second function logs the message. */
int daemonset_checkpoint_store(const char *state_dir, const char *uid,
                               const DaemonSetHistory *history, Error *reterr);
void daemonset_checkpoint_store_or_log(const char *state_dir, const char *uid,
                                       const DaemonSetHistory *history);

void daemonset_checkpoint_remove(const char *state_dir, const char *uid,
                                 const DaemonSetHistory *history);

/* Called with a checkpoint: takes the history and the set. 'set' is NULL if the file contains none
 * that can be parsed. 0 or -ENOMEM. */
typedef int (*daemonset_checkpoint_each_t)(const char *uid, DaemonSetHistory *history,
                                           DaemonSet *set, void *userdata);

/* Reads all checkpoints. A damaged file is set aside and logged. 0 or -errno with a message. */
int daemonset_checkpoint_load(const char *state_dir, daemonset_checkpoint_each_t each,
                              void *userdata, Error *reterr);
