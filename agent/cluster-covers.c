/* SPDX-License-Identifier: Apache-2.0 */
/* When a controller manager comes back, the pod that it binds here finds one of ours of the same
 * set running. If the two are the same, ours goes on in its place: a *cover* (model/cover.h). It
 * keeps its own name and UID, its record names the server as its origin, and what becomes of it is
 * told as what becomes of the server's pod. If they are not, ours ends before the other begins.
 * Nothing is remembered but what is in the cover's record. */

#include "agent/cluster-private.h"

#include "agent/kube/event-object.h"
#include "agent/model/cover.h"
#include "agent/model/edit.h"
#include "common/cleanup.h"
#include "common/log.h"

#include <stdio.h>

/* ---- a cover that stands ---- */

ClusterPod *cluster_find_covered(Cluster *cluster, const Pod *life) {
        cleanup_free char *name = cover_name(life), *key = NULL;
        ClusterPod *pod;

        if (!name || asprintf(&key, "%s/%s", life->metadata.namespace, name) < 0) {
                key = NULL;
                return NULL;
        }
        pod = cluster_find_pod(cluster, key);
        if (!pod || !pod->cover || !streq(pod->cover->metadata.uid, life->metadata.uid))
                return NULL;
        return pod;
}

const char *cluster_told_uid(const ClusterPod *pod, const Pod *life) {
        bool is_covered = pod->cover && streq(pod->cover->metadata.uid, life->metadata.uid);

        return is_covered ? cover_uid(pod->cover) : life->metadata.uid;
}

int cluster_seed_cover(Cluster *cluster, const Pod *cover) {
        cleanup_with(pod_freep) Pod *covered = NULL, *copy = NULL;
        ClusterPod *pod;
        int r = cover_restore(cover, &covered);

        if (r >= 0)
                r = pod_copy(cover, &copy);
        if (r < 0)
                return r;
        pod = cluster_get_pod(cluster, covered->metadata.namespace, covered->metadata.name);
        if (!pod)
                return -ENOMEM;
        if (pod->wanted) /* it has a record of its own: this one was about to be gone */
                return 0;
        pod->wanted = TAKE_PTR(covered);
        pod->cover = TAKE_PTR(copy);
        pod->is_carried = true;
        return 0;
}

/* 1: it stands; 0: there is none, or none any more; -ENOMEM. */
static int follow_wanted(ClusterPod *pod) {
        Pod *next = NULL;
        int r = 0;

        if (!pod->cover || pod->is_carried)
                return pod->cover != NULL;
        if (streq(cover_uid(pod->cover), pod->wanted->metadata.uid))
                r = cover_make(pod->cover, pod->wanted, EDIT_RESTART, &next);
        if (r < 0)
                return r;
        if (r == 0) {
                log_info("Pod '%s' of the API server is another than '%s' that stands for it, "
                         "which ends first",
                         pod->key, pod->cover->metadata.name);
                cluster_forget_life(pod);
        }
        pod_free(pod->cover);
        pod->cover = r > 0 ? next : NULL;
        pod->is_carried = r > 0;
        return r;
}

/* ---- ours that are there when a pod of the server's is to begin ---- */

typedef struct Search {
        const Cluster *cluster;
        const ClusterPod *pod;
        const OwnerReference *owner;
        const Pod *unknown; /* how it is will be known soon */
        const Pod *serving; /* it cannot stand, but it does serve */
        Pod *cover;
        bool is_in_the_way; /* something that has to end before */
} Search;

static bool is_of_ours(const Search *search, const Pod *life) {
        const OwnerReference *owner = object_controller(&life->metadata);
        const char *origin;

        if (!owner || !streq(owner->uid, search->owner->uid) || pod_is_of_api(life))
                return false;
        origin = supervisor_origin(search->cluster->config.supervisor, life->metadata.uid);
        return origin && streq(origin, cluster_origin);
}

/* Its record may not say so yet. */
static bool stands_for_another(const Search *search, const Pod *life) {
        for (const ClusterPod *pod = search->cluster->pods; pod; pod = pod->following)
                if (pod != search->pod && pod->cover &&
                    streq(pod->cover->metadata.uid, life->metadata.uid))
                        return true;
        return false;
}

/* It stood for a pod of that name. */
static bool has_stood(const Search *search, const Pod *life) {
        const ObjectMeta *wanted = &search->pod->wanted->metadata;
        cleanup_free char *name = cover_name(life);

        return name && streq(name, wanted->name) &&
               streq(life->metadata.namespace, wanted->namespace);
}

/* One that does not serve may lack just what the server's has, the token of its account. */
static bool is_well(const PodStatus *status) {
        return status->phase == POD_RUNNING && status->conditions[CONDITION_READY].is_true;
}

static int look_at(const Pod *life, const PodStatus *status, void *userdata) {
        Search *search = userdata;
        bool is_ours = is_of_ours(search, life);
        int r = 0;

        if ((!is_ours && !has_stood(search, life)) || stands_for_another(search, life))
                return 0;
        search->is_in_the_way = true;
        if (!is_ours || status->deletion_time > 0 || search->cover)
                return 0;
        if (status->is_syncing)
                search->unknown = life;
        else if (is_well(status)) {
                r = cover_make(life, search->pod->wanted, EDIT_LIVE, &search->cover);
                if (r == 0)
                        search->serving = life;
        }
        return r < 0 ? r : 0;
}

static void on_staging_news(void *userdata) {
        cluster_schedule_wishes(userdata);
}

/* Nothing is to be waited for any more. What it lacks for good is better seen in its own status. */
static bool may_begin(Cluster *cluster, ClusterPod *pod) {
        int r = 0;

        if (!pod->staging)
                r = supervisor_stage(cluster->config.supervisor, pod->wanted, on_staging_news,
                                     cluster, &pod->staging);
        return r < 0 || staging_step(pod->staging, NULL) != 0;
}

static int wait_for(Cluster *cluster, ClusterPod *pod, const Search *search) {
        Supervisor *supervisor = cluster->config.supervisor;
        int r = 0;

        cluster->awaits_ours = true;
        if (search->unknown)
                r = supervisor_want(supervisor, cluster_origin, search->unknown, NULL);
        if (r != -ENOMEM && search->serving && (search->unknown || !may_begin(cluster, pod)))
                r = supervisor_want(supervisor, cluster_origin, search->serving, NULL);
        return r == -ENOMEM ? r : 0;
}

/* 1: it begins by itself, or 'pod->cover' stands for it; 0: not yet; -ENOMEM. */
static int look_for_cover(Cluster *cluster, ClusterPod *pod) {
        Search search = { .cluster = cluster,
                          .pod = pod,
                          .owner = object_controller(&pod->wanted->metadata) };
        int r = 0;

        if (search.owner)
                r = supervisor_each(cluster->config.supervisor, look_at, &search);
        if (r < 0) {
                pod_free(search.cover);
                return r;
        }
        if (!search.cover)
                return search.is_in_the_way ? wait_for(cluster, pod, &search) : 1;
        log_info("Pod '%s' of the API server is running here already, as '%s'", pod->key,
                 search.cover->metadata.name);
        pod->cover = search.cover;
        pod->is_carried = true;
        return 1;
}

int cluster_meet(Cluster *cluster, ClusterPod *pod, const Pod **ret_wish) {
        int r = follow_wanted(pod);

        *ret_wish = pod->wanted;
        if (r == 0 && !supervisor_origin(cluster->config.supervisor, pod->wanted->metadata.uid))
                r = look_for_cover(cluster, pod);
        else if (r == 0) {
                pod->staging = staging_free(pod->staging);
                r = 1; /* it is there */
        }
        if (r > 0 && pod->cover)
                *ret_wish = pod->cover;
        return r;
}

/* ---- what is said of it ---- */

char *cluster_rename_event(const Cluster *cluster, const char *json) {
        for (const ClusterPod *pod = cluster->pods; pod; pod = pod->following)
                if (pod->cover && strstr(json, pod->cover->metadata.uid))
                        return event_object_rename(json, pod->cover->metadata.uid,
                                                   strchr(pod->key, '/') + 1,
                                                   cover_uid(pod->cover));
        return NULL;
}
