/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The DaemonSets of this node: what daemonset/ decides of them, done with what supervise/ has. It
 * wishes for their pods whenever the agent wishes for those of its files, and says when it wants to
 * be asked again: a pod came or went or became ready, or a time has come. */

#include "agent/daemonset/daemonset.h"
#include "agent/supervise/supervisor.h"

typedef struct Daemons Daemons;

/* Everything is borrowed and outlives the Daemons. */
typedef struct DaemonsConfig {
        sd_event *event;
        const char *state_dir;
        const NodeFacts *facts;
        Supervisor *supervisor;
        void (*on_due)(void *userdata); /* wishes are due, once a turn of the loop */
        void *userdata;
} DaemonsConfig;

int daemons_new(const DaemonsConfig *config, Daemons **ret);
Daemons *daemons_free(Daemons *daemons);
DEFINE_CLEANUP(Daemons *, daemons_free)

/* Reads what an earlier agent knew of revisions. What is damaged is set aside and named. */
int daemons_load(Daemons *daemons, Error *reterr);

/* A pod that a record names no file of: its set was deleted, and left it. Taken from then on as one
 * that is wanted. 0 or -ENOMEM. */
int daemons_take_orphan(Daemons *daemons, const Pod *pod);
extern const char orphan_file[]; /* in place of a file's name, in records */

/* Between supervisor_begin() and supervisor_sweep(), after the pods of files: begin, each set, end.
 * 'warn' is told, once a set, what stands against the set though nothing is wrong with it. 0, or
 * -ENOMEM: then a wish may not have been heard. */
void daemons_begin(Daemons *daemons);
int daemons_want(Daemons *daemons, const char *file, const DaemonSet *set);
int daemons_end(Daemons *daemons);

/* What overlaps: sentences for people, of which each is there as long as it holds. */
char *const *daemons_warnings(const Daemons *daemons);

/* A pod's status may be another; it is new or gone. */
void daemons_on_pod(Daemons *daemons, const Pod *pod, bool is_new, bool is_gone);

/* Images that were missing may be there now. */
void daemons_images_changed(Daemons *daemons);

/* Lists, as JSON that the caller frees; NULL where memory ends. */
char *daemons_to_json(Daemons *daemons);
char *daemons_revisions_to_json(Daemons *daemons);

/* Like a rollout of kubectl's: back to a revision (0: the one before the present one), or the
 * present one's pods anew. They hold until the file changes. 0; -ENOENT, -EINVAL with a sentence.
 */
int daemons_undo(Daemons *daemons, const char *namespace, const char *name, int64_t revision,
                 Error *reterr);
int daemons_restart(Daemons *daemons, const char *namespace, const char *name, Error *reterr);

/* The set's pods are nobody's from the next wishes on, and stay; the set is not wished for again
 * before its file has gone, which is for the caller to see to. 0; -ENOENT with a sentence. */
int daemons_orphan(Daemons *daemons, const char *namespace, const char *name, Error *reterr);

/* A person ended it: a pod that was left is not wanted again. */
void daemons_forget_orphan(Daemons *daemons, const char *namespace, const char *name);

/* The file of a set, or NULL with a sentence. */
const char *daemons_file(Daemons *daemons, const char *namespace, const char *name, Error *reterr);
