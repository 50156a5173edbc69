/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps what the API server has under the name of a pod. */

#include "agent/apiserver/remote-pod.h"

#include "common/cleanup.h"

void remote_pod_done(RemotePod *remote) {
        kube_object_summary_done(&remote->metadata);
        free(remote->deleted_uid);
        *remote = (RemotePod){ 0 };
}

void remote_pod_update_take(RemotePod *remote, KubeObjectSummary *metadata) {
        kube_object_summary_done(&remote->metadata);
        remote->metadata = *metadata;
        *metadata = (KubeObjectSummary){ 0 };
        remote->exists = true;
}

void remote_pod_forget(RemotePod *remote) {
        kube_object_summary_done(&remote->metadata);
        remote->exists = false;
}

void remote_pod_remove(RemotePod *remote, const char *uid) {
        if (remote->exists && streq(remote->metadata.uid, uid))
                remote_pod_forget(remote);
        free(remote->deleted_uid);
        remote->deleted_uid = strdup(uid);
}

int remote_pod_mark_deleted(RemotePod *remote) {
        if (!remote->exists)
                return 0;
        free(remote->deleted_uid);
        remote->deleted_uid = strdup(remote->metadata.uid);
        return remote->deleted_uid ? 0 : -ENOMEM;
}

void remote_pod_clear_deleted(RemotePod *remote) {
        free(remote->deleted_uid);
        remote->deleted_uid = NULL;
}

static bool is_pod_response_outdated(const RemotePod *remote, unsigned watch_events,
                                     const KubeObjectSummary *metadata) {
        bool is_same = remote->exists && streq(remote->metadata.uid, metadata->uid);

        return streq_ptr(remote->deleted_uid, metadata->uid) ||
               (is_same && watch_events != remote->watch_events);
}

void remote_pod_apply_response(RemotePod *remote, unsigned watch_events, const char *json,
                               size_t length) {
        cleanup_with(kube_object_summary_done) KubeObjectSummary metadata = { 0 };

        if (kube_object_summary_parse(json, length, &metadata, NULL) >= 0 &&
            !is_pod_response_outdated(remote, watch_events, &metadata))
                remote_pod_update_take(remote, &metadata);
}

const KubeObjectSummary *remote_pod_object(const RemotePod *remote) {
        if (!remote->exists || streq_ptr(remote->deleted_uid, remote->metadata.uid))
                return NULL;
        return &remote->metadata;
}

bool remote_pod_has_terminated(const RemotePod *remote) {
        const char *phase = remote->exists ? remote->metadata.phase : NULL;

        return phase && (streq(phase, "Succeeded") || streq(phase, "Failed"));
}

bool remote_pod_is_deleting(const RemotePod *remote) {
        return remote->exists && remote->metadata.is_deleting;
}

bool pod_list_is_doubtful(unsigned n_bound, unsigned n_missing) {
        return n_missing > n_bound / 2;
}
