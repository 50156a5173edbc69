/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the API server's object under the name of a pod. */

#include "agent/apiserver/remote-pod.h"

#include "agent/kubeclient/resource-version.h"
#include "common/cleanup.h"

void remote_pod_done(RemotePod *remote) {
        kube_object_summary_done(&remote->metadata);
        free(remote->deleted_uid);
        *remote = (RemotePod){ 0 };
}

bool remote_pod_is_event_outdated(const RemotePod *remote, const KubeObjectSummary *metadata) {
        const KubeObjectSummary *known = &remote->metadata;

        return remote->exists && streq(known->uid, metadata->uid) &&
               resource_version_compare(metadata->resource_version, known->resource_version) < 0;
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
               (is_same && watch_events != remote->watch_events &&
                resource_version_compare(metadata->resource_version,
                                         remote->metadata.resource_version) <= 0);
}

void remote_pod_apply_response_take(RemotePod *remote, unsigned watch_events,
                                    KubeObjectSummary *metadata) {
        if (is_pod_response_outdated(remote, watch_events, metadata))
                kube_object_summary_done(metadata);
        else
                remote_pod_update_take(remote, metadata);
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
