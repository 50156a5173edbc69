/* SPDX-License-Identifier: Apache-2.0 */
/* What is here of a pod is told to the server. Each time that it is a pod's turn, the request is
 * worked out from all that is known: see kube/pod-write.h. */

#include "agent/cluster-private.h"

#include "agent/kube/scan.h"
#include "agent/model/json.h"
#include "common/cleanup.h"
#include "common/log.h"

#include <stdio.h>

static const char patch_type[] = "application/strategic-merge-patch+json";

/* v1.Pod with its status, or NULL where nothing of it is here. */
static char *print_life(const Cluster *cluster, const char *uid) {
        cleanup_with(pod_status_done) PodStatus status = { 0 };
        const Pod *pod;

        if (supervisor_status(cluster->config.supervisor, uid, &pod, &status) < 0)
                return NULL;
        return pod_to_json(pod, &status);
}

static void look_here(const Cluster *cluster, const ClusterPod *pod, char **ret_json,
                      KubePodLocal *ret) {
        *ret = (KubePodLocal){ .is_of_api = pod->is_of_api };
        *ret_json = pod->local_uid ? print_life(cluster, pod->local_uid) : NULL;
        if (*ret_json) {
                ret->json = *ret_json;
                ret->uid = pod->told_uid;
        } else if (pod->refusal) {
                ret->json = pod->refusal;
                ret->uid = pod->remote.uid;
                ret->is_of_api = true;
                ret->is_over = true;
        } else if (pod->last) {
                ret->json = pod->last;
                ret->uid = pod->last_uid;
                ret->is_over = true;
        }
}

static const KubeMetadata *remote_of(const ClusterPod *pod) {
        if (!pod->has_remote || streq_ptr(pod->deleted_uid, pod->remote.uid))
                return NULL;
        return &pod->remote;
}

static int hash_status(const KubePodLocal *local, const KubeMetadata *remote,
                       char ret[SHA256_HEX_SIZE]) {
        cleanup_with(sha256_freep) Sha256 *hash = sha256_new();

        if (!hash)
                return -ENOMEM;
        sha256_update(hash, remote->uid, strlen(remote->uid));
        sha256_update(hash, strna(local->json), strlen(strna(local->json)));
        sha256_finish(hash, ret);
        return 0;
}

static int print_path(const ClusterPod *pod, KubePodWriteKind kind, char **ret) {
        const char *slash = strchr(pod->key, '/');
        int length = (int) (slash - pod->key), n;

        if (kind == KUBE_POD_CREATE)
                n = asprintf(ret, "/api/v1/namespaces/%.*s/pods", length, pod->key);
        else
                n = asprintf(ret, "/api/v1/namespaces/%.*s/pods/%s%s", length, pod->key, slash + 1,
                             kind == KUBE_POD_STATUS ? "/status" : "");
        return n < 0 ? -ENOMEM : 0;
}

/* What the server was told already, and has another opinion of since, is not told again. */
static int is_due(const Cluster *cluster, ClusterPod *pod, const KubePodLocal *local,
                  const KubePodWrite *write) {
        int r = 0;

        switch (write->kind) {
        case KUBE_POD_STATUS:
                if (cluster->is_leaving && pod->is_of_api)
                        return false;
                r = hash_status(local, remote_of(pod), pod->sent);
                return r < 0 ? r : !streq(pod->sent, pod->told);
        case KUBE_POD_DELETE:
                return cluster->is_synced;
        case KUBE_POD_CREATE:
                return true;
        case KUBE_POD_NOTHING:
        case N_KUBE_POD_WRITES:
                break;
        }
        return false;
}

static int fill_call(ClusterPod *pod, KubePodWrite *write, KubeCall *ret) {
        static const char *const methods[N_KUBE_POD_WRITES] = {
                [KUBE_POD_CREATE] = "POST",
                [KUBE_POD_STATUS] = "PATCH",
                [KUBE_POD_DELETE] = "DELETE",
        };
        char *path;
        int r = print_path(pod, write->kind, &path);

        if (r < 0)
                return r;
        *ret = (KubeCall){ .method = methods[write->kind],
                           .path = path,
                           .content_type = write->kind == KUBE_POD_STATUS ? patch_type : NULL,
                           .body = write->body,
                           .body_length = strlen(write->body) };
        write->body = NULL;
        pod->under_way = write->kind;
        pod->asked_at = pod->n_heard;
        return 1;
}

static int make(const char *key, KubeCall *ret, void *userdata) {
        Cluster *cluster = userdata;
        ClusterPod *pod = cluster_find_pod(cluster, key);
        cleanup_with(kube_pod_write_done) KubePodWrite write = { 0 };
        cleanup_free char *json = NULL;
        KubePodLocal local;
        int r;

        if (!pod)
                return 0;
        look_here(cluster, pod, &json, &local);
        r = kube_pod_write(&local, remote_of(pod), cluster->config.node_name, cluster->node_uid,
                           &write);
        if (r >= 0)
                r = is_due(cluster, pod, &local, &write);
        return r <= 0 ? r : fill_call(pod, &write, ret);
}

static void free_const(const char *text) {
        char *p;

        memcpy(&p, &text, sizeof(p));
        free(p);
}

void cluster_unmake_call(KubeCall *call, void *userdata) {
        free_const(call->path);
        free_const(call->body);
}

/* What the watch told meanwhile of that object is newer, or something newer is on its way there. */
static bool is_outdated(const ClusterPod *pod, const KubeMetadata *metadata) {
        bool is_same = pod->has_remote && streq(pod->remote.uid, metadata->uid);

        return streq_ptr(pod->deleted_uid, metadata->uid) ||
               (is_same && pod->asked_at != pod->n_heard);
}

/* The object as it is now, if it came back. */
static void take_answer(ClusterPod *pod, const KubeAnswer *answer) {
        KubeMetadata metadata;

        if (kube_metadata_read(answer->body, answer->length, &metadata, NULL) < 0)
                return;
        if (is_outdated(pod, &metadata)) {
                kube_metadata_done(&metadata);
                return;
        }
        kube_metadata_done(&pod->remote);
        pod->remote = metadata;
        pod->has_remote = true;
}

/* It is not there, or about to go: for us that is one. */
static KubeVerdict note_deleted(ClusterPod *pod) {
        if (pod->has_remote) {
                free(pod->deleted_uid);
                pod->deleted_uid = strdup(pod->remote.uid);
                if (!pod->deleted_uid)
                        return KUBE_LATER;
        }
        return KUBE_AGAIN; /* a mirror is made anew */
}

/* Said once, for as long as it is the same: it is tried again and again, for what is refused today
 * may be taken tomorrow. */
static KubeVerdict on_refusal(ClusterPod *pod, const KubeAnswer *answer) {
        JsonText body = { answer->body, answer->length };
        cleanup_free char *why = json_text_sentence(json_text_member(body, "message"));
        cleanup_free char *sentence = NULL;

        if (asprintf(&sentence, "%u, %s", answer->status, why ? why : "without a reason") < 0)
                sentence = NULL;
        if (sentence && !streq_ptr(sentence, pod->refused)) {
                log_warning("The API server does not take what is told of pod '%s': %s", pod->key,
                            sentence);
                free(pod->refused);
                pod->refused = TAKE_PTR(sentence);
        }
        return KUBE_LATER;
}

static KubeVerdict on_answer(const char *key, const KubeAnswer *answer, void *userdata) {
        Cluster *cluster = userdata;
        ClusterPod *pod = cluster_find_pod(cluster, key);

        if (!pod || answer->error)
                return pod ? KUBE_LATER : KUBE_WRITTEN;
        if (pod->under_way == KUBE_POD_DELETE && (answer->status == 200 || answer->status == 404))
                return note_deleted(pod);
        if (answer->status == 409)
                return KUBE_LATER; /* the watch is about to tell what is there */
        if (answer->status == 404 && pod->under_way == KUBE_POD_STATUS)
                return note_deleted(pod);
        if (answer->status < 200 || answer->status > 299)
                return on_refusal(pod, answer);
        if (pod->under_way == KUBE_POD_STATUS)
                memcpy(pod->told, pod->sent, sizeof(pod->told));
        take_answer(pod, answer);
        free(pod->refused);
        pod->refused = NULL;
        return KUBE_AGAIN; /* what is next: a status for a new mirror, the end of an old pod */
}

const KubeWriterSpec cluster_pod_writer = {
        .parallel = 8,
        .make = make,
        .unmake = cluster_unmake_call,
        .on_answer = on_answer,
};
