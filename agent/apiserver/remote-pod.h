/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One name in the API server's list of pods: the object as the watch and our own requests have
 * shown it. Pure: it sends nothing and decides nothing. */

#include "agent/kubeclient/object-summary.h"

typedef struct RemotePod {
        bool exists; /* the object exists, according to the latest information */
        KubeObjectSummary metadata;
        unsigned generation;   /* of the last list that contained it */
        char *deleted_uid;     /* UID of an object that is known to be deleted */
        unsigned watch_events; /* counts the events of this name */
} RemotePod;

void remote_pod_done(RemotePod *remote);

/* Whether an event of the watch shows an older state of the object than an earlier response did. */
bool remote_pod_is_event_outdated(const RemotePod *remote, const KubeObjectSummary *metadata);

/* The object was listed, added or modified. Takes the metadata. */
void remote_pod_update_take(RemotePod *remote, KubeObjectSummary *metadata);

/* The object with that UID was deleted; a newer object with the same name stays. */
void remote_pod_remove(RemotePod *remote, const char *uid);

/* A complete list did not contain the object. */
void remote_pod_forget(RemotePod *remote);

/* A request has shown that the object is deleted, before the watch reports it. 0 or -ENOMEM. */
int remote_pod_mark_deleted(RemotePod *remote);

/* A list contains the object again, as after the restoration of a backup. */
void remote_pod_clear_deleted(RemotePod *remote);

/* The object in the response to a request that was sent after 'watch_events' events; takes its
 * metadata. It is ignored if the watch has reported the object since, unless its version shows that
 * it is newer. */
void remote_pod_apply_response_take(RemotePod *remote, unsigned watch_events,
                                    KubeObjectSummary *metadata);

/* The object, or NULL if none exists or it is known to be deleted. */
const KubeObjectSummary *remote_pod_object(const RemotePod *remote);

/* The pod is Succeeded or Failed at the server. */
bool remote_pod_has_terminated(const RemotePod *remote);
bool remote_pod_is_deleting(const RemotePod *remote);

/* A list in which more than half of the pods that were bound to this node are missing is doubtful:
 * it is requested again before any of them is stopped. */
bool pod_list_is_doubtful(unsigned n_bound, unsigned n_missing);
