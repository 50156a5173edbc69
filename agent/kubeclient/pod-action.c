/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the next request for a pod: mirror pod, status patch or deletion. */

#include "agent/kubeclient/pod-action.h"

#include "agent/kubeclient/mirror-pod.h"
#include "agent/kubeclient/pod-status-patch.h"
#include "agent/model/json-tree.h"
#include "common/cleanup.h"

#include <string.h>

void kube_pod_action_done(KubePodAction *action) {
        free(action->body);
        *action = (KubePodAction){ 0 };
}

static bool has_local_pod(const KubeLocalPod *local) {
        return local->status || local->cached;
}

static int set_pod_action(KubePodActionKind kind, char *body, KubePodAction *ret) {
        if (!body)
                return -ENOMEM;
        *ret = (KubePodAction){ .kind = kind, .body = body };
        return 0;
}

static int build_delete_action(const KubeObjectSummary *remote, KubePodAction *ret) {
        cleanup_with(json_decrefp) json_t *options =
                json_pack("{s:s, s:s, s:i, s:{s:s}}", "kind", "DeleteOptions", "apiVersion", "v1",
                          "gracePeriodSeconds", 0, "preconditions", "uid", remote->uid);

        return set_pod_action(KUBE_POD_DELETE, options ? json_dumps(options, JSON_COMPACT) : NULL,
                              ret);
}

static json_t *make_status_tree(const KubeLocalPod *local) {
        cleanup_with(json_decrefp) json_t *cached = NULL;

        if (local->status)
                return pod_status_to_json_tree(local->pod, local->status);
        cached = json_loads(local->cached, 0, NULL);
        return json_incref(json_object_get(cached, "status"));
}

static int hash_json_chunk(const char *data, size_t length, void *userdata) {
        sha256_update(userdata, data, length);
        return 0;
}

static int hash_reported_status(const char *uid, const json_t *status, char ret[SHA256_HEX_SIZE]) {
        cleanup_with(sha256_freep) Sha256 *hash = sha256_new();

        if (!hash)
                return -ENOMEM;
        sha256_update(hash, uid, strlen(uid) + 1);
        if (json_dump_callback(status, hash_json_chunk, hash, JSON_COMPACT) < 0)
                return -ENOMEM;
        sha256_finish(hash, ret);
        return 0;
}

static int build_status_action(const KubeLocalPod *local, const KubeObjectSummary *remote,
                               KubePodAction *ret) {
        cleanup_with(json_decrefp) json_t *status = make_status_tree(local);
        char *patch = NULL;
        int r;

        if (!status)
                return -ENOMEM;
        r = kube_pod_status_patch(remote->uid, remote->status, status, &patch);
        if (r <= 0)
                return r == -ENOMEM ? r : 0;
        r = set_pod_action(KUBE_POD_PATCH_STATUS, patch, ret);
        return r < 0 ? r : hash_reported_status(remote->uid, status, ret->status_hash);
}

static int choose_api_pod_action(const KubeLocalPod *local, const KubeObjectSummary *remote,
                                 KubePodAction *ret) {
        bool is_here = has_local_pod(local);
        bool is_same = remote && streq_ptr(local->uid, remote->uid);
        int r;

        if (!remote || remote->mirror_hash)
                return 0;
        if (is_here && is_same) {
                r = build_status_action(local, remote, ret);
                if (r < 0 || ret->kind != KUBE_POD_NO_ACTION)
                        return r;
        }
        /* The final status is there, and nothing of the pod is left on the node. */
        if (remote->is_deleting && (!is_here || !is_same || local->is_terminated))
                return build_delete_action(remote, ret);
        return 0;
}

static int build_create_action(const KubeLocalPod *local, const char *node_name,
                               const char *node_uid, KubePodAction *ret) {
        cleanup_with(json_decrefp) json_t *pod = NULL;

        if (!node_uid)
                return 0;
        pod = pod_to_json_tree(local->pod, NULL);
        return set_pod_action(KUBE_POD_CREATE_MIRROR,
                              mirror_pod_build(pod, local->uid, node_name, node_uid), ret);
}

static int choose_mirror_action(const KubeLocalPod *local, const KubeObjectSummary *remote,
                                const char *node_name, const char *node_uid, KubePodAction *ret) {
        bool is_here = local->status && !local->is_terminated;

        if (!remote)
                return is_here ? build_create_action(local, node_name, node_uid, ret) : 0;
        if (!is_here || remote->is_deleting || !streq_ptr(remote->mirror_hash, local->uid))
                return build_delete_action(remote, ret);
        return build_status_action(local, remote, ret);
}

int kube_pod_next_action(const KubeLocalPod *local, const KubeObjectSummary *remote,
                         const char *node_name, const char *node_uid, KubePodAction *ret) {
        bool is_static_pod = has_local_pod(local) && !local->is_api_pod;
        bool is_mirror = remote && remote->mirror_hash;
        cleanup_with(kube_pod_action_done) KubePodAction action = { 0 };
        int r;

        *ret = (KubePodAction){ 0 };
        if (remote && !is_mirror && is_static_pod) /* an API pod with a static pod's name */
                return 0;
        r = is_mirror || is_static_pod
                    ? choose_mirror_action(local, remote, node_name, node_uid, &action)
                    : choose_api_pod_action(local, remote, &action);
        if (r < 0)
                return r;
        *ret = action;
        action = (KubePodAction){ 0 };
        return 0;
}
