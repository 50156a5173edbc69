/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kubeclient/pod-action.h"

#include "agent/kubeclient/mirror-pod.h"
#include "agent/kubeclient/pod-status-patch.h"
#include "common/cleanup.h"

#include <jansson.h>
#include <string.h>

void kube_pod_action_done(KubePodAction *action) {
        free(action->body);
        *action = (KubePodAction){ 0 };
}

char *kube_rejected_pod_to_json(const char *sentence) {
        cleanup_with(json_decrefp) json_t *pod =
                json_pack("{s:{s:s, s:s, s:s}}", "status", "phase", "Failed", "reason",
                          "UnexpectedAdmissionError", "message", sentence);

        return pod ? json_dumps(pod, JSON_COMPACT) : NULL;
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

/* The status, if it is another there. */
static int build_status_action(const KubeLocalPod *local, const KubeObjectSummary *remote,
                               KubePodAction *ret) {
        cleanup_with(json_decrefp) json_t *pod = json_loads(local->json, 0, NULL);
        cleanup_free char *status = NULL;
        char *patch = NULL;
        int r;

        status = pod ? json_dumps(json_object_get(pod, "status"), JSON_COMPACT) : NULL;
        if (!status)
                return -ENOMEM;
        r = kube_pod_status_patch(remote->uid, remote->status, status, &patch);
        if (r > 0)
                return set_pod_action(KUBE_POD_PATCH_STATUS, patch, ret);
        return r == -ENOMEM ? r : 0;
}

static int choose_api_pod_action(const KubeLocalPod *local, const KubeObjectSummary *remote,
                                 KubePodAction *ret) {
        bool is_same = remote && streq_ptr(local->uid, remote->uid);
        int r = 0;

        if (!remote || remote->mirror_hash)
                return 0;
        if (local->json && is_same)
                r = build_status_action(local, remote, ret);
        if (r < 0 || ret->kind != KUBE_POD_NO_ACTION)
                return r;
        /* Nothing of it is left here. */
        if (remote->is_deleting && (!local->json || !is_same || local->is_terminated))
                return build_delete_action(remote, ret);
        return 0;
}

static int build_create_action(const KubeLocalPod *local, const char *node_name,
                               const char *node_uid, KubePodAction *ret) {
        if (!node_uid)
                return 0;
        return set_pod_action(KUBE_POD_CREATE_MIRROR,
                              mirror_pod_build(local->json, local->uid, node_name, node_uid), ret);
}

static int choose_mirror_action(const KubeLocalPod *local, const KubeObjectSummary *remote,
                                const char *node_name, const char *node_uid, KubePodAction *ret) {
        bool is_here = local->json && !local->is_terminated;

        if (!remote)
                return is_here ? build_create_action(local, node_name, node_uid, ret) : 0;
        if (!is_here || remote->is_deleting || !streq_ptr(remote->mirror_hash, local->uid))
                return build_delete_action(remote, ret);
        return build_status_action(local, remote, ret);
}

int kube_pod_next_action(const KubeLocalPod *local, const KubeObjectSummary *remote,
                         const char *node_name, const char *node_uid, KubePodAction *ret) {
        KubePodAction action = { 0 };
        int r;

        /* Another pod of the server's has the name of one of ours: it is not ours to show. */
        if (remote && !remote->mirror_hash && local->json && !local->is_api_pod)
                r = 0;
        else if ((remote && remote->mirror_hash) || (local->json && !local->is_api_pod))
                r = choose_mirror_action(local, remote, node_name, node_uid, &action);
        else
                r = choose_api_pod_action(local, remote, &action);
        if (r >= 0)
                *ret = action;
        return r;
}
