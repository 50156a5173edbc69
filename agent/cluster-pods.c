/* SPDX-License-Identifier: Apache-2.0 */
/* The pods that an API server has bound to this node, and the mirrors of ours that it has. A list
 * that lacks many of those that run here is asked for once more before anybody believes it. */

#include "agent/cluster-private.h"

#include "agent/model/cover.h"
#include "agent/model/edit.h"
#include "agent/model/json.h"
#include "agent/model/names.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/log.h"

#include <stdio.h>

#define DOUBT_USEC (10 * USEC_PER_SEC)

/* ---- by name ---- */

ClusterPod *cluster_find_pod(Cluster *cluster, const char *key) {
        for (ClusterPod *pod = cluster->pods; pod; pod = pod->following)
                if (streq(pod->key, key))
                        return pod;
        return NULL;
}

ClusterPod *cluster_get_pod(Cluster *cluster, const char *namespace, const char *name) {
        ClusterPod **link = &cluster->pods, *pod;
        cleanup_free char *key = NULL;

        if (asprintf(&key, "%s/%s", namespace, name) < 0) {
                key = NULL;
                return NULL;
        }
        while (*link && strcmp((*link)->key, key) < 0)
                link = &(*link)->following;
        if (*link && streq((*link)->key, key))
                return *link;
        pod = calloc(1, sizeof(*pod));
        if (!pod)
                return NULL;
        pod->key = TAKE_PTR(key);
        pod->told_grace = -1;
        pod->following = *link;
        *link = pod;
        return pod;
}

void cluster_forget_life(ClusterPod *pod) {
        free(pod->local_uid);
        free(pod->local_name);
        free(pod->told_uid);
        pod->local_uid = pod->local_name = pod->told_uid = NULL;
}

static void pod_forget(ClusterPod *pod) {
        kube_metadata_done(&pod->remote);
        free(pod->deleted_uid);
        staging_free(pod->staging);
        pod_free(pod->wanted);
        pod_free(pod->cover);
        free(pod->refusal);
        free(pod->refused);
        cluster_forget_life(pod);
        free(pod->last);
        free(pod->last_uid);
        free(pod->key);
        free(pod);
}

void cluster_forget_pods(Cluster *cluster) {
        while (cluster->pods) {
                ClusterPod *pod = cluster->pods;

                cluster->pods = pod->following;
                pod_forget(pod);
        }
}

/* Neither side has it any more, and the server has said so. */
static bool is_forgotten(const Cluster *cluster, const ClusterPod *pod) {
        if (pod->has_remote || pod->wanted || pod->local_uid)
                return false;
        return !pod->is_of_api || (cluster->reflector && !cluster->has_doubt &&
                                   kube_reflector_is_synced(cluster->reflector));
}

static void sweep(Cluster *cluster) {
        ClusterPod **link = &cluster->pods;

        while (*link) {
                ClusterPod *pod = *link;

                if (!is_forgotten(cluster, pod)) {
                        link = &pod->following;
                        continue;
                }
                *link = pod->following;
                if (cluster->writer)
                        kube_writer_forget(cluster->writer, pod->key);
                if (pod->is_of_api && pod->last_uid)
                        cluster_forget_ended(cluster, pod->last_uid);
                pod_forget(pod);
        }
}

static void mark(Cluster *cluster, const ClusterPod *pod) {
        if (cluster->writer && kube_writer_mark(cluster->writer, pod->key) < 0)
                log_error("Out of memory, the status of pod '%s' is told later", pod->key);
}

void cluster_tell_all_pods(Cluster *cluster) {
        for (const ClusterPod *pod = cluster->pods; pod; pod = pod->following)
                mark(cluster, pod);
}

/* ---- what the server says ---- */

/* The grace is told each time that it is another: who deletes with force means now. */
static void end_life(Cluster *cluster, ClusterPod *pod, int64_t grace) {
        const char *slash = strchr(pod->key, '/');
        cleanup_free char *namespace = strndup(pod->key, (size_t) (slash - pod->key));

        if (!pod->local_uid || !pod->is_of_api ||
            (pod->told_grace >= 0 && pod->told_grace <= grace))
                return;
        pod->told_grace = grace;
        if (namespace)
                (void) supervisor_delete(cluster->config.supervisor, namespace, pod->local_name,
                                         grace, NULL);
}

static void forget_wanted(ClusterPod *pod) {
        pod->staging = staging_free(pod->staging);
        pod->wanted = pod_free(pod->wanted);
        pod->is_carried = false;
        free(pod->refusal);
        pod->refusal = NULL;
}

/* Why it cannot be, as a kubelet says it of a pod that it does not admit. */
static int refuse(ClusterPod *pod, const char *sentence) {
        free(pod->refusal);
        pod->refusal = kube_refused_pod(sentence);
        return pod->refusal ? 0 : -ENOMEM;
}

/* A pod that runs goes on as it was last good. */
static int take_refusal(Cluster *cluster, ClusterPod *pod, const char *sentence) {
        bool is_same = pod->wanted && streq(pod->wanted->metadata.uid, pod->remote.uid);

        log_error("Pod '%s' of the API server %s: %s", pod->key,
                  is_same ? "goes on as it was" : "cannot be", sentence);
        if (is_same)
                return 0;
        forget_wanted(pod);
        return refuse(pod, sentence);
}

/* 1 where it is another pod now, or another in some field. */
static int take_wish(ClusterPod *pod, Pod **wish) {
        cleanup_with(edit_plan_done) EditPlan plan = { 0 };
        bool is_same = pod->wanted && streq(pod->wanted->metadata.uid, (*wish)->metadata.uid);
        int r = is_same ? edit_plan(pod->wanted, *wish, &plan) : 0;

        if (r < 0 || (is_same && plan.effect == EDIT_NONE))
                return r;
        forget_wanted(pod);
        pod->wanted = *wish;
        *wish = NULL;
        return 1;
}

static int take_spec(Cluster *cluster, ClusterPod *pod, const char *json, size_t length) {
        cleanup_with(manifest_objects_done) ManifestObjects objects = { 0 };
        cleanup_error Error error = ERROR_NULL;
        int r = manifest_parse_api(pod->key, "Pod", json, length, cluster->config.node_name,
                                   &objects, &error);

        if (r >= 0 && objects.pods.n != 1)
                r = error_setf(&error, EINVAL, "is no pod");
        if (r == -ENOMEM)
                return r;
        return r < 0 ? take_refusal(cluster, pod, error_message(&error, r))
                     : take_wish(pod, &objects.pods.items[0]);
}

/* Takes the metadata. 'json' is the object. 1 where wishes are due. */
static int take_object(Cluster *cluster, ClusterPod *pod, KubeMetadata *metadata, const char *json,
                       size_t length) {
        bool was_deleting = pod->has_remote && pod->remote.is_deleting;
        bool is_another = !pod->has_remote || !streq(pod->remote.uid, metadata->uid);
        int r = 0;

        kube_metadata_done(&pod->remote);
        pod->remote = *metadata;
        *metadata = (KubeMetadata){ 0 };
        pod->has_remote = true;
        pod->generation = cluster->generation;
        if (is_another)
                pod->told_grace = -1;
        if (pod->remote.mirror_hash)
                return 0;
        if (pod->remote.is_deleting)
                end_life(cluster, pod, MAX(pod->remote.grace_seconds, 1));
        r = take_spec(cluster, pod, json, length);
        return r < 0 ? r : r || was_deleting != pod->remote.is_deleting || is_another;
}

/* 1 where wishes are due. */
static int take_end(ClusterPod *pod, const KubeMetadata *metadata) {
        bool was_wanted = pod->wanted && streq(pod->wanted->metadata.uid, metadata->uid);

        if (pod->has_remote && streq(pod->remote.uid, metadata->uid)) {
                kube_metadata_done(&pod->remote);
                pod->has_remote = false;
        }
        if (was_wanted)
                forget_wanted(pod);
        free(pod->deleted_uid);
        pod->deleted_uid = strdup(metadata->uid);
        return was_wanted;
}

static int check_names(const KubeMetadata *metadata, Error *reterr) {
        int r = check_dns_subdomain(metadata->name, reterr);

        if (r >= 0)
                r = check_dns_label(metadata->namespace, reterr);
        return r < 0 ? r : check_uid(metadata->uid, reterr);
}

static int take_news(Cluster *cluster, KubeChange change, const char *json, size_t length,
                     Error *reterr) {
        cleanup_with(kube_metadata_done) KubeMetadata metadata = { 0 };
        ClusterPod *pod;
        int r = kube_metadata_read(json, length, &metadata, reterr);

        if (r >= 0)
                r = check_names(&metadata, reterr);
        if (r < 0)
                return r;
        pod = cluster_get_pod(cluster, metadata.namespace, metadata.name);
        if (!pod)
                return -ENOMEM;
        pod->n_heard++;
        if (change == KUBE_LISTED) { /* a backup brings back what had gone */
                free(pod->deleted_uid);
                pod->deleted_uid = NULL;
        }
        if (change != KUBE_DELETED)
                r = take_object(cluster, pod, &metadata, json, length);
        else {
                end_life(cluster, pod, MAX(metadata.grace_seconds, 1));
                r = take_end(pod, &metadata);
        }
        mark(cluster, pod);
        return r;
}

static void on_object(KubeChange change, const char *json, size_t length, void *userdata) {
        Cluster *cluster = userdata;
        cleanup_error Error error = ERROR_NULL;
        int r = take_news(cluster, change, json, length, &error);

        if (r < 0)
                log_error("An object among the API server's pods is ignored: %s",
                          error_message(&error, r));
        if (r < 0 && change == KUBE_LISTED)
                cluster->is_unclear = true;
        else if (r < 0) /* what it was is told by a list */
                kube_reflector_relist(cluster->reflector, DOUBT_USEC);
        if (r > 0 && !cluster->is_listing)
                cluster_schedule_wishes(cluster);
        if (change == KUBE_DELETED)
                sweep(cluster);
}

/* ---- lists ---- */

static void on_list_begin(void *userdata) {
        Cluster *cluster = userdata;

        cluster->generation++;
        cluster->is_listing = true;
        cluster->is_unclear = false;
}

static bool is_missing(const Cluster *cluster, const ClusterPod *pod) {
        return pod->generation != cluster->generation;
}

/* More than half of what the server wanted is not in its list. */
static bool is_doubtful(const Cluster *cluster) {
        unsigned n = 0, n_missing = 0;

        for (const ClusterPod *pod = cluster->pods; pod; pod = pod->following) {
                n += pod->wanted != NULL;
                n_missing += pod->wanted && is_missing(cluster, pod);
        }
        return n_missing > n / 2;
}

static void forget_missing(Cluster *cluster) {
        for (ClusterPod *pod = cluster->pods; pod; pod = pod->following) {
                if (!is_missing(cluster, pod))
                        continue;
                if (pod->cover) /* its name is one that we may wish for again */
                        end_life(cluster, pod, -1);
                if (pod->has_remote)
                        kube_metadata_done(&pod->remote);
                pod->has_remote = false;
                forget_wanted(pod);
        }
}

static void on_list_end(bool is_complete, void *userdata) {
        Cluster *cluster = userdata;

        cluster->is_listing = false;
        if (is_complete && !cluster->is_unclear && !cluster->has_doubt && is_doubtful(cluster)) {
                log_warning("The API server lists few of the pods that it wanted here; asking "
                            "again before any is stopped");
                cluster->has_doubt = true;
                kube_reflector_relist(cluster->reflector, DOUBT_USEC);
        } else if (is_complete && !cluster->is_unclear) {
                cluster->has_doubt = false;
                forget_missing(cluster);
        }
        cluster_tell_all_pods(cluster);
        cluster_schedule_wishes(cluster);
        sweep(cluster);
}

static void on_pods_trouble(const char *error, unsigned status, void *userdata) {
        Cluster *cluster = userdata;
        bool is_away = cluster_is_away(cluster, error, status);

        cluster_note_refusal(cluster, CONCERN_PODS, error, status);
        if (streq_ptr(error, cluster->pods_trouble))
                return;
        if (error && !is_away)
                log_warning("The pods of this node cannot be had from the API server: %s", error);
        else if (!error && cluster->pods_trouble)
                log_info("The API server tells the pods of this node again");
        free(cluster->pods_trouble);
        cluster->pods_trouble = error ? strdup(error) : NULL;
        cluster->config.on_state(cluster->config.userdata);
}

int cluster_follow_pods(Cluster *cluster) {
        cleanup_free char *query = NULL;

        if (asprintf(&query, "fieldSelector=spec.nodeName%%3D%s", cluster->config.node_name) < 0) {
                query = NULL;
                return -ENOMEM;
        }
        return kube_reflector_new(cluster->config.event,
                                  &(KubeReflectorSpec){ .client = cluster->client,
                                                        .path = "/api/v1/pods",
                                                        .query = query,
                                                        .on_object = on_object,
                                                        .on_list_begin = on_list_begin,
                                                        .on_list_end = on_list_end,
                                                        .on_trouble = on_pods_trouble,
                                                        .userdata = cluster },
                                  &cluster->reflector);
}

/* ---- wishes ---- */

int cluster_seed(Cluster *cluster, const Pod *wish) {
        ClusterPod *pod;

        if (cover_uid(wish))
                return cluster_seed_cover(cluster, wish);
        pod = cluster_get_pod(cluster, wish->metadata.namespace, wish->metadata.name);
        if (!pod)
                return -ENOMEM;
        if (cluster_has_ended(cluster, wish->metadata.uid, &pod->last)) {
                pod->last_uid = strdup(wish->metadata.uid);
                pod->is_of_api = true;
                return pod->last_uid ? 0 : -ENOMEM;
        }
        pod->cover = pod_free(pod->cover); /* it was about to be gone */
        pod->wanted = pod_free(pod->wanted);
        return pod_copy(wish, &pod->wanted);
}

/* It has succeeded or failed, and nothing of it is here that would know. */
static bool is_over(const ClusterPod *pod) {
        const char *phase = pod->has_remote ? pod->remote.phase : NULL;

        return phase && (streq(phase, "Succeeded") || streq(phase, "Failed")) && !pod->local_uid;
}

static bool is_due(const ClusterPod *pod) {
        return pod->wanted && !(pod->has_remote && pod->remote.is_deleting) && !is_over(pod);
}

/* 0 or -ENOMEM. */
static int want(Cluster *cluster, ClusterPod *pod) {
        const ObjectMeta *metadata = &pod->wanted->metadata;
        cleanup_error Error error = ERROR_NULL;
        const Pod *wish;
        int r;

        if (supervisor_is_named(cluster->config.supervisor, metadata->namespace, metadata->name))
                return pod->refusal || !pod->has_remote
                               ? 0
                               : refuse(pod, "a file of this node has a pod of that name");
        r = cluster_meet(cluster, pod, &wish);
        if (r <= 0)
                return r;
        r = supervisor_want(cluster->config.supervisor, cluster_file, wish, &error);
        if (r < 0)
                log_error("Pod '%s' of the API server: %s", pod->key, error_message(&error, r));
        return r == -ENOMEM ? r : 0;
}

int cluster_want(Cluster *cluster) {
        int result = 0;

        cluster->awaits_ours = false;
        cluster_begin_references(cluster);
        for (ClusterPod *pod = cluster->pods; pod; pod = pod->following) {
                if (is_due(pod) && want(cluster, pod) < 0)
                        result = -ENOMEM;
                if (pod->wanted &&
                    cluster_note_references(cluster, pod->cover ? pod->cover : pod->wanted) < 0)
                        result = -ENOMEM;
        }
        if (result >= 0)
                cluster_end_references(cluster);
        return result;
}

/* ---- what is here ---- */

static int take_life(Cluster *cluster, ClusterPod *pod, const Pod *life) {
        if (streq_ptr(pod->local_uid, life->metadata.uid))
                return 0;
        cluster_forget_life(pod);
        pod->local_uid = strdup(life->metadata.uid);
        pod->local_name = strdup(life->metadata.name);
        pod->told_uid = strdup(cluster_told_uid(pod, life));
        if (!pod->local_uid || !pod->local_name || !pod->told_uid) {
                cluster_forget_life(pod);
                return -ENOMEM;
        }
        pod->is_of_api = pod_is_of_api(life);
        pod->told_grace = -1;
        pod->is_noted = false;
        return 0;
}

/* What it was at its end is told yet. */
static void take_last(Cluster *cluster, ClusterPod *pod, const Pod *life) {
        cleanup_with(pod_status_done) PodStatus status = { 0 };
        const Pod *same;

        free(pod->last);
        free(pod->last_uid);
        pod->last = NULL;
        pod->last_uid = strdup(cluster_told_uid(pod, life));
        if (supervisor_status(cluster->config.supervisor, life->metadata.uid, &same, &status) >= 0)
                pod->last = pod_to_json(same, &status);
        pod->is_of_api = pod_is_of_api(life);
        cluster_forget_life(pod);
}

/* By what its containers have done, not by somebody who ends it, nor by a machine that goes down.
 */
static bool has_ended(const ClusterPod *pod, const PodStatus *status) {
        bool is_wanted = pod->wanted && streq(pod->wanted->metadata.uid, pod->local_uid) &&
                         !(pod->has_remote && pod->remote.is_deleting);

        return is_wanted && !status->reason &&
               (status->phase == POD_SUCCEEDED || status->phase == POD_FAILED);
}

static void note_phase(Cluster *cluster, ClusterPod *pod) {
        cleanup_with(pod_status_done) PodStatus status = { 0 };
        cleanup_free char *json = NULL;
        const Pod *life;

        if (!pod->is_of_api || pod->is_noted ||
            supervisor_status(cluster->config.supervisor, pod->local_uid, &life, &status) < 0 ||
            !has_ended(pod, &status))
                return;
        json = pod_to_json(life, &status);
        if (json)
                cluster_note_ended(cluster, pod->local_uid, json);
        pod->is_noted = json;
}

/* It had ended before this boot, and of how it ended its remains know nothing. */
static bool is_remains(const ClusterPod *pod, const Pod *life) {
        return pod_is_of_api(life) && pod->is_of_api && !pod->local_uid &&
               streq_ptr(pod->last_uid, life->metadata.uid);
}

/* It is told as another's now: what was told of it under its own name goes, which is a mirror. */
static void forget_own_name(Cluster *cluster, const Pod *life) {
        for (ClusterPod *pod = cluster->pods; pod; pod = pod->following)
                if (streq_ptr(pod->local_uid, life->metadata.uid) &&
                    !streq(pod->told_uid, cover_uid(life))) {
                        cluster_forget_life(pod);
                        mark(cluster, pod);
                }
}

static ClusterPod *get_told(Cluster *cluster, const Pod *life) {
        ClusterPod *covered = cluster_find_covered(cluster, life);

        if (!covered)
                return cluster_get_pod(cluster, life->metadata.namespace, life->metadata.name);
        forget_own_name(cluster, life);
        return covered;
}

void cluster_on_pod(Cluster *cluster, const Pod *life, bool is_gone) {
        ClusterPod *pod = get_told(cluster, life);

        if (cluster->awaits_ours)
                cluster_schedule_wishes(cluster);
        if (pod && is_remains(pod, life))
                return;
        if (!pod || (!is_gone && take_life(cluster, pod, life) < 0)) {
                log_error("Out of memory, the API server is not told of pod '%s'",
                          life->metadata.name);
                return;
        }
        if (is_gone) {
                take_last(cluster, pod, life);
                cluster_forget_tokens(cluster, life->metadata.uid);
        } else
                note_phase(cluster, pod);
        if (!is_gone && pod->has_remote && pod->remote.is_deleting &&
            streq(pod->remote.uid, pod->told_uid))
                end_life(cluster, pod, MAX(pod->remote.grace_seconds, 1));
        mark(cluster, pod);
        sweep(cluster);
}
