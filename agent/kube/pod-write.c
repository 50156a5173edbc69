/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kube/pod-write.h"

#include "agent/kube/mirror.h"
#include "agent/kube/status-patch.h"
#include "common/cleanup.h"

#include <jansson.h>
#include <string.h>

void kube_pod_write_done(KubePodWrite *write) {
        free(write->body);
        *write = (KubePodWrite){ 0 };
}

char *kube_refused_pod(const char *sentence) {
        cleanup_with(json_decrefp) json_t *pod =
                json_pack("{s:{s:s, s:s, s:s}}", "status", "phase", "Failed", "reason",
                          "UnexpectedAdmissionError", "message", sentence);

        return pod ? json_dumps(pod, JSON_COMPACT) : NULL;
}

static int take_body(KubePodWriteKind kind, char *body, KubePodWrite *ret) {
        if (!body)
                return -ENOMEM;
        *ret = (KubePodWrite){ .kind = kind, .body = body };
        return 0;
}

static int delete (const KubeMetadata *remote, KubePodWrite *ret) {
        cleanup_with(json_decrefp) json_t *options =
                json_pack("{s:s, s:s, s:i, s:{s:s}}", "kind", "DeleteOptions", "apiVersion", "v1",
                          "gracePeriodSeconds", 0, "preconditions", "uid", remote->uid);

        return take_body(KUBE_POD_DELETE, options ? json_dumps(options, JSON_COMPACT) : NULL, ret);
}

/* The status, if it is another there. */
static int write_status(const KubePodLocal *local, const KubeMetadata *remote, KubePodWrite *ret) {
        cleanup_with(json_decrefp) json_t *pod = json_loads(local->json, 0, NULL);
        cleanup_free char *status = NULL;
        char *patch = NULL;
        int r;

        status = pod ? json_dumps(json_object_get(pod, "status"), JSON_COMPACT) : NULL;
        if (!status)
                return -ENOMEM;
        r = kube_status_patch(remote->uid, remote->status, status, &patch);
        if (r > 0)
                return take_body(KUBE_POD_STATUS, patch, ret);
        return r == -ENOMEM ? r : 0;
}

static int write_own(const KubePodLocal *local, const KubeMetadata *remote, KubePodWrite *ret) {
        bool is_same = remote && streq_ptr(local->uid, remote->uid);
        int r = 0;

        if (!remote || remote->mirror_hash)
                return 0;
        if (local->json && is_same)
                r = write_status(local, remote, ret);
        if (r < 0 || ret->kind != KUBE_POD_NOTHING)
                return r;
        /* Nothing of it is left here. */
        if (remote->is_deleting && (!local->json || !is_same || local->is_over))
                return delete (remote, ret);
        return 0;
}

static int create(const KubePodLocal *local, const char *node_name, const char *node_uid,
                  KubePodWrite *ret) {
        if (!node_uid)
                return 0;
        return take_body(KUBE_POD_CREATE,
                         kube_mirror_pod(local->json, local->uid, node_name, node_uid), ret);
}

static int write_mirror(const KubePodLocal *local, const KubeMetadata *remote,
                        const char *node_name, const char *node_uid, KubePodWrite *ret) {
        bool is_here = local->json && !local->is_over;

        if (!remote)
                return is_here ? create(local, node_name, node_uid, ret) : 0;
        if (!is_here || remote->is_deleting || !streq_ptr(remote->mirror_hash, local->uid))
                return delete (remote, ret);
        return write_status(local, remote, ret);
}

int kube_pod_write(const KubePodLocal *local, const KubeMetadata *remote, const char *node_name,
                   const char *node_uid, KubePodWrite *ret) {
        KubePodWrite write = { 0 };
        int r;

        /* Another pod of the server's has the name of one of ours: it is not ours to show. */
        if (remote && !remote->mirror_hash && local->json && !local->is_of_api)
                r = 0;
        else if ((remote && remote->mirror_hash) || (local->json && !local->is_of_api))
                r = write_mirror(local, remote, node_name, node_uid, &write);
        else
                r = write_own(local, remote, &write);
        if (r >= 0)
                *ret = write;
        return r;
}
