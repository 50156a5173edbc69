/* SPDX-License-Identifier: Apache-2.0 */
/* What is here of a pod is told to the server. Each time that it is a pod's turn, the request is
 * worked out from all that is known: see kube/pod-write.h. */

#include "agent/apiserver/apiserver-private.h"

#include "agent/kubeclient/json-view.h"
#include "agent/model/json.h"
#include "common/cleanup.h"
#include "common/log.h"

#include <stdio.h>

static const char pod_status_patch_type[] = "application/strategic-merge-patch+json";

/* v1.Pod with its status, or NULL where nothing of it is here. */
static char *print_local_pod(const ApiServerSync *api, const char *uid) {
        cleanup_with(pod_status_done) PodStatus status = { 0 };
        const Pod *pod;

        if (pod_manager_pod_status(api->config.pod_manager, uid, &pod, &status) < 0)
                return NULL;
        return pod_to_json(pod, &status);
}

static void read_local_status(const ApiServerSync *api, const ApiServerPod *pod, char **ret_json,
                              KubeLocalPod *ret) {
        *ret = (KubeLocalPod){ .is_api_pod = pod->is_api_pod };
        *ret_json = pod->local_uid ? print_local_pod(api, pod->local_uid) : NULL;
        if (*ret_json) {
                ret->json = *ret_json;
                ret->uid = pod->reported_uid;
        } else if (pod->rejection) {
                ret->json = pod->rejection;
                ret->uid = pod->remote.uid;
                ret->is_api_pod = true;
                ret->is_terminated = true;
        } else if (pod->final_status) {
                ret->json = pod->final_status;
                ret->uid = pod->final_uid;
                ret->is_terminated = true;
        }
}

static const KubeObjectSummary *find_remote_metadata(const ApiServerPod *pod) {
        if (!pod->has_remote || streq_ptr(pod->deleted_uid, pod->remote.uid))
                return NULL;
        return &pod->remote;
}

static int hash_pod_status(const KubeLocalPod *local, const KubeObjectSummary *remote,
                           char ret[SHA256_HEX_SIZE]) {
        cleanup_with(sha256_freep) Sha256 *hash = sha256_new();

        if (!hash)
                return -ENOMEM;
        sha256_update(hash, remote->uid, strlen(remote->uid));
        sha256_update(hash, strna(local->json), strlen(strna(local->json)));
        sha256_finish(hash, ret);
        return 0;
}

static int format_pod_path(const ApiServerPod *pod, KubePodActionKind kind, char **ret) {
        const char *slash = strchr(pod->key, '/');
        int length = (int) (slash - pod->key), n;

        if (kind == KUBE_POD_CREATE_MIRROR)
                n = asprintf(ret, "/api/v1/namespaces/%.*s/pods", length, pod->key);
        else
                n = asprintf(ret, "/api/v1/namespaces/%.*s/pods/%s%s", length, pod->key, slash + 1,
                             kind == KUBE_POD_PATCH_STATUS ? "/status" : "");
        return n < 0 ? -ENOMEM : 0;
}

/* What the server was told already, and has another opinion of since, is not told again. */
static int is_pod_write_due(const ApiServerSync *api, ApiServerPod *pod, const KubeLocalPod *local,
                            const KubePodAction *write) {
        int r = 0;

        switch (write->kind) {
        case KUBE_POD_PATCH_STATUS:
                if (api->is_shutting_down && pod->is_api_pod)
                        return false;
                r = hash_pod_status(local, find_remote_metadata(pod), pod->sent_hash);
                return r < 0 ? r : !streq(pod->sent_hash, pod->reported_hash);
        case KUBE_POD_DELETE:
                return api->is_synced;
        case KUBE_POD_CREATE_MIRROR:
                return true;
        case KUBE_POD_NO_ACTION:
        case N_KUBE_POD_ACTIONS:
                break;
        }
        return false;
}

static int fill_pod_request(ApiServerPod *pod, KubePodAction *write, KubeRequestSpec *ret) {
        static const char *const methods[N_KUBE_POD_ACTIONS] = {
                [KUBE_POD_CREATE_MIRROR] = "POST",
                [KUBE_POD_PATCH_STATUS] = "PATCH",
                [KUBE_POD_DELETE] = "DELETE",
        };
        char *path;
        int r = format_pod_path(pod, write->kind, &path);

        if (r < 0)
                return r;
        *ret = (KubeRequestSpec){ .method = methods[write->kind],
                                  .path = path,
                                  .content_type = write->kind == KUBE_POD_PATCH_STATUS
                                                          ? pod_status_patch_type
                                                          : NULL,
                                  .body = write->body,
                                  .body_length = strlen(write->body) };
        write->body = NULL;
        pod->request_kind = write->kind;
        pod->watch_events_at_request = pod->watch_events;
        return 1;
}

static int make_pod_request(const char *key, KubeRequestSpec *ret, void *userdata) {
        ApiServerSync *api = userdata;
        ApiServerPod *pod = apiserver_find_pod(api, key);
        cleanup_with(kube_pod_action_done) KubePodAction write = { 0 };
        cleanup_free char *json = NULL;
        KubeLocalPod local;
        int r;

        if (!pod)
                return 0;
        read_local_status(api, pod, &json, &local);
        r = kube_pod_next_action(&local, find_remote_metadata(pod), api->config.node_name,
                                 api->node_uid, &write);
        if (r >= 0)
                r = is_pod_write_due(api, pod, &local, &write);
        return r <= 0 ? r : fill_pod_request(pod, &write, ret);
}

static void free_const_text(const char *text) {
        char *p;

        memcpy(&p, &text, sizeof(p));
        free(p);
}

void apiserver_free_call(KubeRequestSpec *call, void *userdata) {
        free_const_text(call->path);
        free_const_text(call->body);
}

/* What the watch told meanwhile of that object is newer, or something newer is on its way there. */
static bool is_answer_outdated(const ApiServerPod *pod, const KubeObjectSummary *metadata) {
        bool is_same = pod->has_remote && streq(pod->remote.uid, metadata->uid);

        return streq_ptr(pod->deleted_uid, metadata->uid) ||
               (is_same && pod->watch_events_at_request != pod->watch_events);
}

/* The object as it is now, if it came back. */
static void update_remote_from_answer(ApiServerPod *pod, const KubeResponse *answer) {
        KubeObjectSummary metadata;

        if (kube_object_summary_parse(answer->body, answer->length, &metadata, NULL) < 0)
                return;
        if (is_answer_outdated(pod, &metadata)) {
                kube_object_summary_done(&metadata);
                return;
        }
        kube_object_summary_done(&pod->remote);
        pod->remote = metadata;
        pod->has_remote = true;
}

/* It is not there, or about to go: for us that is one. */
static KubeWorkResult note_remote_deleted(ApiServerPod *pod) {
        if (pod->has_remote) {
                free(pod->deleted_uid);
                pod->deleted_uid = strdup(pod->remote.uid);
                if (!pod->deleted_uid)
                        return KUBE_WORK_RETRY_LATER;
        }
        return KUBE_WORK_RETRY_NOW; /* a mirror is made anew */
}

/* Said once, for as long as it is the same: it is tried again and again, for what is refused today
 * may be taken tomorrow. */
static KubeWorkResult on_pod_write_refused(ApiServerPod *pod, const KubeResponse *answer) {
        JsonView body = { answer->body, answer->length };
        cleanup_free char *why = json_view_message(json_view_member(body, "message"));
        cleanup_free char *sentence = NULL;

        if (asprintf(&sentence, "%u, %s", answer->status, why ? why : "without a reason") < 0)
                sentence = NULL;
        if (sentence && !streq_ptr(sentence, pod->refused)) {
                log_warning("The API server does not take what is told of pod '%s': %s", pod->key,
                            sentence);
                free(pod->refused);
                pod->refused = TAKE_PTR(sentence);
        }
        return KUBE_WORK_RETRY_LATER;
}

static KubeWorkResult on_pod_write_answer(const char *key, const KubeResponse *answer,
                                          void *userdata) {
        ApiServerSync *api = userdata;
        ApiServerPod *pod = apiserver_find_pod(api, key);

        if (!pod || answer->error)
                return pod ? KUBE_WORK_RETRY_LATER : KUBE_WORK_DONE;
        if (pod->request_kind == KUBE_POD_DELETE &&
            (answer->status == 200 || answer->status == 404))
                return note_remote_deleted(pod);
        if (answer->status == 409)
                return KUBE_WORK_RETRY_LATER; /* the watch is about to tell what is there */
        if (answer->status == 404 && pod->request_kind == KUBE_POD_PATCH_STATUS)
                return note_remote_deleted(pod);
        if (answer->status < 200 || answer->status > 299)
                return on_pod_write_refused(pod, answer);
        if (pod->request_kind == KUBE_POD_PATCH_STATUS)
                memcpy(pod->reported_hash, pod->sent_hash, sizeof(pod->reported_hash));
        update_remote_from_answer(pod, answer);
        free(pod->refused);
        pod->refused = NULL;
        return KUBE_WORK_RETRY_NOW; /* what is next: a status for a new mirror, the end of an old
                                       pod */
}

const KubeWorkQueueSpec apiserver_pod_writer = {
        .max_parallel = 8,
        .build_request = make_pod_request,
        .free_request = apiserver_free_call,
        .on_response = on_pod_write_answer,
};
