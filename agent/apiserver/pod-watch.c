/* SPDX-License-Identifier: Apache-2.0 */
/* Lists and watches the pods of this node. An invalid pod is rejected; one that runs keeps its last
 * valid spec. */

#include "agent/apiserver/pod-watch.h"

#include "agent/kubeclient/reflector.h"
#include "agent/kubeclient/request-back-off.h"
#include "agent/manifest/manifest.h"
#include "agent/model/names.h"
#include "agent/model/object-identity.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/dump.h"
#include "common/log.h"

enum {
        RELIST_DELAY_SEC = 10,
};

struct RemotePodWatch {
        RemotePodWatchSpec spec;
        KubeReflector *reflector;
        unsigned generation; /* of the list that is being read, or was last read */
        bool is_listing;
        bool has_unreadable;   /* the list contains an object that cannot be identified */
        bool is_list_doubtful; /* many pods were missing from the last list, and the next list is
                                * accepted */
};

/* ---- objects ---- */

static void unbind_watched_pod(const RemotePodWatch *watch, ApiServerPod *pod) {
        if (pod->bound.desired)
                watch->spec.on_unbound(pod->bound.desired, watch->spec.userdata);
        bound_pod_clear(&pod->bound);
}

static int handle_invalid_pod(const RemotePodWatch *watch, ApiServerPod *pod, const char *error) {
        const Pod *desired = pod->bound.desired;
        bool is_same = desired && object_has_uid(&desired->metadata, pod->remote.metadata.uid);

        if (is_same) {
                log_error("Cannot apply the new spec of pod '%s' of the API server: %s; the last "
                          "valid spec stays in use",
                          pod->key, error);
                return 0;
        }
        log_error("Rejecting pod '%s' of the API server: %s; it is reported as failed", pod->key,
                  error);
        unbind_watched_pod(watch, pod);
        return bound_pod_reject(&pod->bound, "UnexpectedAdmissionError", error);
}

static int parse_watched_pod(const RemotePodWatch *watch, ApiServerPod *pod, const char *json,
                             size_t length) {
        cleanup_with(manifest_objects_done) ManifestObjects objects = { 0 };
        cleanup_error Error error = ERROR_NULL;
        int r = manifest_parse_api(pod->key, "Pod", json, length, watch->spec.node_name, &objects,
                                   &error);

        if (r >= 0 && objects.pods.n != 1)
                r = error_setf(&error, EINVAL, "is not a Pod");
        if (r == -ENOMEM)
                return r;
        if (r < 0)
                return handle_invalid_pod(watch, pod, error_message(&error, r));
        if (pod->bound.desired &&
            !objects_share_uid(&pod->bound.desired->metadata, &objects.pods.items[0]->metadata))
                unbind_watched_pod(watch, pod);
        return bound_pod_update_take(&pod->bound, &objects.pods.items[0]);
}

static void delete_watched_pod(const RemotePodWatch *watch, ApiServerPod *pod,
                               int64_t grace_seconds) {
        local_pod_delete(&pod->local, pod->namespace, MAX(grace_seconds, 1),
                         watch->spec.pod_manager);
}

/* Takes the metadata, unless it is older than the known metadata; a list is authoritative even if
 * its version is older. 1 if a recomputation is due. */
static int update_watched_pod(const RemotePodWatch *watch, KubeWatchEvent change, ApiServerPod *pod,
                              KubeObjectSummary *metadata, const char *json, size_t length) {
        bool was_deleting = remote_pod_is_deleting(&pod->remote);
        bool is_new = !pod->remote.exists || !streq(pod->remote.metadata.uid, metadata->uid);
        const KubeObjectSummary *remote = &pod->remote.metadata;
        int r;

        if (change == KUBE_LISTED || !remote_pod_is_event_outdated(&pod->remote, metadata))
                remote_pod_update_take(&pod->remote, metadata);
        pod->remote.generation = watch->generation;
        if (is_new)
                pod->local.deletion_grace = -1;
        if (pod->local.uid)
                local_pod_set_conditions(&pod->local, remote, watch->spec.pod_manager);
        if (remote->mirror_hash)
                return 0;
        if (remote->is_deleting)
                delete_watched_pod(watch, pod, remote->grace_seconds);
        r = parse_watched_pod(watch, pod, json, length);
        if (remote->is_deleting && !was_deleting && pod->bound.desired)
                watch->spec.on_unbound(pod->bound.desired, watch->spec.userdata);
        return r != 0 ? r : is_new || was_deleting != remote->is_deleting;
}

/* 1 if a recomputation is due. */
static int remove_watched_pod(const RemotePodWatch *watch, ApiServerPod *pod,
                              const KubeObjectSummary *metadata) {
        const Pod *desired = pod->bound.desired;
        bool was_desired = desired && object_has_uid(&desired->metadata, metadata->uid);

        delete_watched_pod(watch, pod, metadata->grace_seconds);
        remote_pod_remove(&pod->remote, metadata->uid);
        if (was_desired)
                unbind_watched_pod(watch, pod);
        return was_desired;
}

static int check_remote_pod_names(const KubeObjectSummary *metadata, Error *reterr) {
        int r = check_dns_subdomain(metadata->name, reterr);

        if (r < 0)
                return r;
        r = check_dns_label(metadata->namespace, reterr);
        return r < 0 ? r : check_uid(metadata->uid, reterr);
}

static int handle_pod_event(const RemotePodWatch *watch, KubeWatchEvent change, const char *json,
                            size_t length, Error *reterr) {
        cleanup_with(kube_object_summary_done) KubeObjectSummary metadata = { 0 };
        ApiServerPod *pod;
        int r = kube_object_summary_parse(json, length, &metadata, reterr);

        if (r < 0)
                return r;
        r = check_remote_pod_names(&metadata, reterr);
        if (r < 0)
                return r;
        pod = pod_table_get(watch->spec.pods, metadata.namespace, metadata.name);
        if (!pod)
                return -ENOMEM;
        pod->remote.watch_events++;
        if (change == KUBE_LISTED)
                remote_pod_clear_deleted(&pod->remote);
        r = change == KUBE_DELETED
                    ? remove_watched_pod(watch, pod, &metadata)
                    : update_watched_pod(watch, change, pod, &metadata, json, length);
        watch->spec.on_changed(pod, watch->spec.userdata);
        return r;
}

static void on_watched_pod(KubeWatchEvent change, const char *json, size_t length, void *userdata) {
        RemotePodWatch *watch = userdata;
        cleanup_error Error error = ERROR_NULL;
        int r = handle_pod_event(watch, change, json, length, &error);

        if (r < 0)
                log_error("Ignoring an invalid pod of the API server: %s; %s",
                          error_message(&error, r),
                          change == KUBE_LISTED ? "no pod is stopped because of this list"
                                                : "listing the pods again");
        if (r < 0 && change == KUBE_LISTED)
                watch->has_unreadable = true;
        else if (r < 0) /* only a list shows which pod it was */
                kube_reflector_relist(watch->reflector, RELIST_DELAY_SEC * USEC_PER_SEC);
        if (r > 0 && !watch->is_listing)
                watch->spec.on_recompute_due(watch->spec.userdata);
        if (change == KUBE_DELETED)
                watch->spec.on_removed(watch->spec.userdata);
}

/* ---- lists ---- */

static void on_pod_list_begin(void *userdata) {
        RemotePodWatch *watch = userdata;

        watch->generation++;
        watch->is_listing = true;
        watch->has_unreadable = false;
}

static bool is_missing_in_list(const RemotePodWatch *watch, const ApiServerPod *pod) {
        return pod->remote.generation != watch->generation;
}

static bool lacks_many_bound_pods(const RemotePodWatch *watch) {
        unsigned n = 0, n_missing = 0;

        for (const ApiServerPod *pod = watch->spec.pods->first; pod; pod = pod->next) {
                n += pod->bound.desired != NULL;
                n_missing += pod->bound.desired && is_missing_in_list(watch, pod);
        }
        return pod_list_is_doubtful(n, n_missing);
}

static void forget_unlisted_pods(const RemotePodWatch *watch) {
        for (ApiServerPod *pod = watch->spec.pods->first; pod; pod = pod->next) {
                if (!is_missing_in_list(watch, pod))
                        continue;
                if (pod->bound.adopted) /* this node's DaemonSet may use the same name again */
                        local_pod_delete(&pod->local, pod->namespace, /* grace= */ -1,
                                         watch->spec.pod_manager);
                remote_pod_forget(&pod->remote);
                unbind_watched_pod(watch, pod);
        }
}

static void on_pod_list_end(bool is_complete, void *userdata) {
        RemotePodWatch *watch = userdata;
        bool is_usable = is_complete && !watch->has_unreadable;

        watch->is_listing = false;
        if (is_usable && !watch->is_list_doubtful && lacks_many_bound_pods(watch)) {
                log_warning("The API server's list omits more than half of the pods that are "
                            "bound to this node; listing again in %d s before any is stopped",
                            RELIST_DELAY_SEC);
                watch->is_list_doubtful = true;
                kube_reflector_relist(watch->reflector, RELIST_DELAY_SEC * USEC_PER_SEC);
        } else if (is_usable) {
                watch->is_list_doubtful = false;
                forget_unlisted_pods(watch);
        }
        watch->spec.on_list_end(watch->spec.userdata);
        watch->spec.on_recompute_due(watch->spec.userdata);
        watch->spec.on_removed(watch->spec.userdata);
        if (is_complete)
                watch->spec.on_answered(watch->spec.userdata);
}

/* ---- errors and construction ---- */

static void on_pod_watch_error(const char *error, unsigned status, void *userdata) {
        RemotePodWatch *watch = userdata;
        ConnectionStatus *connection = watch->spec.connection;
        bool is_unreachable = connection_status_is_unreachable(connection, error, status);
        bool had_error = connection_status_error(connection, CONNECTION_POD_WATCH_ERROR);

        connection_status_set_permission(connection, PERMISSION_PODS, error, status);
        if (error && !is_unreachable)
                watch->spec.on_answered(watch->spec.userdata);
        if (!connection_status_set_error(connection, CONNECTION_POD_WATCH_ERROR, error))
                return;
        if (error && !is_unreachable)
                log_warning("Cannot list or watch the pods of this node: %s; pods keep running, %s",
                            error, kube_back_off_retry_hint(status));
        else if (!error && had_error)
                log_info("Watching the pods of this node at the API server again");
}

int pod_watch_new(const RemotePodWatchSpec *spec, RemotePodWatch **ret) {
        RemotePodWatch *watch = calloc(1, sizeof(*watch));

        if (!watch)
                return -ENOMEM;
        watch->spec = *spec;
        *ret = watch;
        return 0;
}

RemotePodWatch *pod_watch_free(RemotePodWatch *watch) {
        if (!watch)
                return NULL;
        kube_reflector_free(watch->reflector);
        free(watch);
        return NULL;
}

int pod_watch_start(RemotePodWatch *watch, KubeClient *client) {
        return kube_reflector_new(
                watch->spec.event,
                &(KubeReflectorSpec){ .client = client,
                                      .path = "/api/v1/pods",
                                      .field_selector = { "spec.nodeName", watch->spec.node_name },
                                      .on_object = on_watched_pod,
                                      .on_list_begin = on_pod_list_begin,
                                      .on_list_end = on_pod_list_end,
                                      .on_error = on_pod_watch_error,
                                      .userdata = watch },
                &watch->reflector);
}

bool pod_watch_is_synced(const RemotePodWatch *watch) {
        return watch->reflector && !watch->is_list_doubtful &&
               kube_reflector_is_synced(watch->reflector);
}

void pod_watch_dump(const RemotePodWatch *watch, FILE *out) {
        if (watch->reflector)
                kube_reflector_dump(watch->reflector, out);
        if (watch->is_list_doubtful)
                dump_line(out, 2,
                          "the last list did not contain many pods; the next one is accepted");
        if (watch->has_unreadable)
                dump_line(out, 2, "the list has an object that cannot be identified");
}
