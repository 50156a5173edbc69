/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The header of the module: a source of manifests that is fetched at an interval. Its last response
 * is stored on disk, and stays in use until a new one can be used as a whole: a source that is
 * unreachable, or whose response is empty, truncated or broken, changes nothing. */

#include "agent/model/node-status.h"
#include "common/error.h"

#include <systemd/sd-event.h>

typedef struct ManifestSource ManifestSource;

/* Strings are borrowed and outlive it. */
typedef struct ManifestSourceConfig {
        sd_event *event;
        const char *name;        /* "staticPodURL": name of its directory, also shown to users */
        const char *state_dir;   /* its directory is <state_dir>/sources/<name> */
        const char *helper_path; /* path of mainstay-image */
        uint64_t interval_usec;
        uint64_t jitter_usec;   /* maximum random delay that is added */
        uint64_t timeout_usec;  /* limit for one run of the helper */
        const char *stick_path; /* for a "file:" URL: nothing is fetched until a file appears at
                                 * this path; NULL: the URL of a server */
        const char *window;     /* hours of the day (model/day-window.h) outside of which no request
                                 * is sent, unless no manifests are in use yet; NULL: always */

        /* Provides the input of the helper: a descriptor for its standard input, or -errno. */
        int (*open_settings)(bool was_refused, void *userdata);
        /* Whether all manifests of a directory can be used: 0, or -errno and the reason. */
        int (*check)(int dir_fd, Error *reterr, void *userdata);
        /* Fetches everything that valid manifests need. 1: everything is present; 0:
         * manifest_source_on_prepared() follows; or -errno and the reason. */
        int (*prepare)(int dir_fd, Error *reterr, void *userdata);
        /* Describes the progress of prepare(); the caller frees it; NULL: nothing is being
         * fetched. */
        char *(*describe_progress)(void *userdata);
        /* The manifests of this directory are in use from now on. */
        void (*on_accepted)(int dir_fd, void *userdata);
        /* The source has failed for a new reason, or works again. */
        void (*on_status)(const NodeSourceStatus *status, void *userdata);
        void *userdata;
} ManifestSourceConfig;

int manifest_source_new(const ManifestSourceConfig *config, ManifestSource **ret);

/* Sends no more requests; ends a running helper. */
ManifestSource *manifest_source_free(ManifestSource *source);
DEFINE_CLEANUP(ManifestSource *, manifest_source_free)

/* The manifests in use, as an open directory that the caller closes; -ENOENT: there are none yet;
 * or -errno. */
int manifest_source_open_current(const ManifestSource *source);

/* Queries the source after manifest_source_first_wait(), and then at each interval. 0 or -errno. */
int manifest_source_start(ManifestSource *source);

/* The delay of the first request, in microseconds. If the machine has just booted ('boottime') and
 * has manifests in use, it is a random part of the interval, so that machines whose power returns
 * at the same time do not send their requests at the same time; otherwise zero. */
uint64_t manifest_source_first_wait(uint64_t interval_usec, bool has_manifests, uint64_t boottime,
                                    uint32_t random);

/* The operation of prepare() has ended: everything is present, or -errno and the reason. -ECANCELED
 * is not a failure: the operation continues when the source may be contacted again. */
void manifest_source_on_prepared(ManifestSource *source, int r, const Error *error);

/* Whether the source may be contacted at this hour; false with a message. */
bool manifest_source_may_ask(const ManifestSource *source, Error *reterr);

/* The path of "current" or "next", which the caller frees; or NULL. */
char *manifest_source_path(const ManifestSource *source, const char *which);

/* The progress deadline of the index in use, in microseconds; 0: none. */
uint64_t manifest_source_deadline_usec(const ManifestSource *source);

/* Whether the pods of the index in use still have to become ready. 'ret_since' is the realtime at
 * which it was fetched. No request is sent in the meantime, so that the previous index is kept. */
bool manifest_source_is_on_trial(const ManifestSource *source, uint64_t *ret_since);

/* During the trial, the index before the one in use, as an open directory of manifests that the
 * caller closes; or -errno. */
int manifest_source_open_previous(const ManifestSource *source);

/* Ends the trial. Either the index stays, or the previous one is used again, for which
 * on_accepted() and on_status() are called, and the rejected one is never used again. If the
 * previous index is no longer usable, nothing changes. 'reason' is a message of one line. -errno:
 * the rollback cannot be written to disk; the trial continues, and the caller tries again later. */
void manifest_source_end_trial(ManifestSource *source);
int manifest_source_roll_back(ManifestSource *source, const char *reason);

/* Strings are borrowed until the next call. */
NodeSourceStatus manifest_source_status(ManifestSource *source);
