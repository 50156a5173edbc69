/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the next request for a pod: create its mirror pod, patch its status, or delete the pod or
 * mirror pod. */

#include "agent/kubeclient/pod-api-request.h"

#include "agent/kubeclient/mirror-pod.h"
#include "agent/kubeclient/pod-status-patch.h"
#include "agent/model/json-tree.h"
#include "common/cleanup.h"
#include "common/json-text.h"

#include <string.h>

void kube_pod_request_done(KubePodRequest *request) {
        free(request->body);
        *request = (KubePodRequest){ 0 };
}

static bool has_local_pod(const KubeLocalPod *local) {
        return local->status || local->cached;
}

static int set_pod_request(KubePodRequestKind kind, char *body, KubePodRequest *ret) {
        if (!body)
                return -ENOMEM;
        *ret = (KubePodRequest){ .kind = kind, .body = body };
        return 0;
}

static int set_delete_request(KubePodRequestKind kind, const KubeObjectSummary *remote,
                              KubePodRequest *ret) {
        cleanup_json json_t *options =
                json_pack("{s:s, s:s, s:{s:s}}", "kind", "DeleteOptions", "apiVersion", "v1",
                          "preconditions", "uid", remote->uid);

        if (options && kind == KUBE_POD_DELETE)
                (void) json_object_set_new(options, "gracePeriodSeconds", json_integer(0));
        return set_pod_request(kind, options ? json_to_text(options, JSON_COMPACT) : NULL, ret);
}

static int delete_pod_request(const KubeObjectSummary *remote, KubePodRequest *ret) {
        return set_delete_request(KUBE_POD_DELETE, remote, ret);
}

static json_t *make_status_tree(const KubeLocalPod *local) {
        cleanup_json json_t *cached = NULL;

        if (local->status) {
                json_t *status = pod_status_to_json_tree(local->pod, local->status);

                if (!local->is_api_pod) /* the server's spec does not have these containers */
                        (void) json_object_del(status, "ephemeralContainerStatuses");
                return status;
        }
        cached = json_loads(local->cached, 0, NULL);
        return json_incref(json_object_get(cached, "status"));
}

static int set_observed_generation(json_t *object, int64_t generation) {
        return json_object_set_new(object, "observedGeneration", json_integer(generation));
}

/* The generation of the spec to which the status and its conditions refer. */
static int add_observed_generation(json_t *status, int64_t generation) {
        size_t i;
        json_t *condition;

        if (generation <= 0)
                return 0;
        json_array_foreach(json_object_get(status, "conditions"), i, condition) {
                if (set_observed_generation(condition, generation) < 0)
                        return -ENOMEM;
        }
        return set_observed_generation(status, generation) < 0 ? -ENOMEM : 0;
}

static int patch_pod_status_request(const KubeLocalPod *local, const KubeObjectSummary *remote,
                                    KubePodRequest *ret) {
        cleanup_json json_t *status = NULL;
        char *patch = NULL;
        int r;

        if (local->is_reported)
                return 0;
        status = make_status_tree(local);
        if (!status || add_observed_generation(status, remote->generation) < 0)
                return -ENOMEM;
        r = kube_pod_status_patch(remote->uid, remote->status, status, &patch);
        if (r > 0)
                return set_pod_request(KUBE_POD_PATCH_STATUS, patch, ret);
        ret->is_reported = r == 0;
        return r == -ENOMEM ? r : 0;
}

static int choose_api_pod_request(const KubeLocalPod *local, const KubeObjectSummary *remote,
                                  KubePodRequest *ret) {
        bool is_here = has_local_pod(local);
        bool is_same = remote && streq_ptr(local->uid, remote->uid);
        int r;

        if (!remote || remote->mirror_hash)
                return 0;
        if (local->is_outdated && !remote->is_deleting)
                return set_delete_request(KUBE_POD_RETIRE, remote, ret);
        if (is_here && is_same) {
                r = patch_pod_status_request(local, remote, ret);
                if (r < 0 || ret->kind != KUBE_POD_NO_REQUEST)
                        return r;
        }
        /* The final status has been reported, and nothing of the pod is left on the node. */
        if (remote->is_deleting && (!is_here || !is_same || local->is_terminated))
                return delete_pod_request(remote, ret);
        return 0;
}

/* The hash of a static pod's manifest, or NULL. */
static const char *config_hash_of(const KubeLocalPod *local) {
        return local->pod
                       ? string_map_get(&local->pod->metadata.annotations, config_hash_annotation)
                       : NULL;
}

/* The mirror pod of a static pod. */
static int create_mirror_pod_request(const KubeLocalPod *local, const char *node_name,
                                     const char *node_uid, KubePodRequest *ret) {
        cleanup_json json_t *pod = NULL;
        const char *hash = config_hash_of(local);

        if (!node_uid)
                return 0;
        pod = pod_to_json_tree(local->pod, NULL);
        return set_pod_request(KUBE_POD_CREATE_MIRROR,
                               mirror_pod_build(pod, hash ? hash : local->uid, node_name, node_uid),
                               ret);
}

/* A mirror pod is immutable, so it is created again when the static pod has been edited in place
 * and runs with the edited spec; 'kubeadm upgrade' takes the new hash and the running pod as proof
 * that the component is up. Mirror pods of version 0.2 contain the UID instead of a hash. */
static bool is_mirror_current(const KubeLocalPod *local, const KubeObjectSummary *remote) {
        const char *hash = config_hash_of(local);

        if (!hash)
                return streq_ptr(remote->mirror_hash, local->uid);
        return streq_ptr(remote->config_hash, hash) &&
               (streq_ptr(remote->mirror_hash, hash) || streq_ptr(remote->mirror_hash, local->uid));
}

/* A mirror pod of another static pod, or of one that is gone, is deleted. */
static int choose_mirror_pod_request(const KubeLocalPod *local, const KubeObjectSummary *remote,
                                     const char *node_name, const char *node_uid,
                                     KubePodRequest *ret) {
        bool is_here = local->status && !local->is_terminated;

        if (!remote)
                return is_here ? create_mirror_pod_request(local, node_name, node_uid, ret) : 0;
        if (!is_here || remote->is_deleting ||
            (!local->awaits_edit && !is_mirror_current(local, remote)))
                return delete_pod_request(remote, ret);
        return patch_pod_status_request(local, remote, ret);
}

int kube_pod_next_request(const KubeLocalPod *local, const KubeObjectSummary *remote,
                          const char *node_name, const char *node_uid, KubePodRequest *ret) {
        bool is_static_pod = has_local_pod(local) && !local->is_api_pod;
        bool is_mirror = remote && remote->mirror_hash;
        cleanup_with(kube_pod_request_done) KubePodRequest request = { 0 };
        int r;

        *ret = (KubePodRequest){ 0 };
        if (remote && !is_mirror && is_static_pod) /* an API pod with the name of a static pod */
                return 0;
        r = is_mirror || is_static_pod
                    ? choose_mirror_pod_request(local, remote, node_name, node_uid, &request)
                    : choose_api_pod_request(local, remote, &request);
        if (r < 0)
                return r;
        *ret = request;
        request = (KubePodRequest){ 0 };
        return 0;
}
