/* SPDX-License-Identifier: Apache-2.0 */
/* Sends the requests that kubeclient/pod-api-request.c chooses for each pod, and acts on the
 * responses. */

#include "agent/apiserver/pod-status-writer.h"

#include "agent/kubeclient/work-queue.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/dump.h"
#include "common/log.h"
#include "common/text.h"

enum {
        POD_REQUESTS_MAX = 8,   /* requests in flight */
        REFUSED_PODS_MAX = 5,   /* number of pods that are printed */
        REPEATS_APART_SEC = 10, /* between repetitions of a status that other writers change; the
                                 * kubelet's value */
        CONFLICTS_MIN = 3,      /* conflicts after which the name is considered taken */
};

struct PodStatusWriter {
        PodStatusWriterSpec spec;
        KubeWorkQueue *queue; /* by key; NULL while there is no client */
        char *node_uid;       /* NULL while the Node does not exist */
        bool is_synced;
        bool is_shutting_down;
};

static const char pod_status_patch_type[] = "application/strategic-merge-patch+json";

static const struct {
        const char *method;
        const char *verb;   /* for messages */
        const char *suffix; /* of the object's path; NULL: the path of the collection */
        const char *content_type;
} pod_requests[N_KUBE_POD_REQUESTS] = {
        [KUBE_POD_CREATE_MIRROR] = { "POST", "create mirror pod", NULL, NULL },
        [KUBE_POD_PATCH_STATUS] = { "PATCH", "update status of pod", "/status",
                                    pod_status_patch_type },
        [KUBE_POD_DELETE] = { "DELETE", "delete pod", "", NULL },
        [KUBE_POD_RETIRE] = { "DELETE", "delete pod", "", NULL },
};

/* ---- the request ---- */

static void read_rejection(const ApiServerPod *pod, KubeLocalPod *ret) {
        ret->status = pod->bound.rejection;
        ret->uid = pod->remote.metadata.uid;
        ret->is_api_pod = true;
        ret->is_terminated = true;
}

static void read_final_status(const LocalPod *local, KubeLocalPod *ret) {
        ret->pod = local->final_pod;
        ret->status = local->final_status;
        ret->cached = local->final_json;
        ret->uid = local->final_uid;
        ret->is_terminated = true;
}

static bool has_final_status(const LocalPod *local) {
        return local->final_status || local->final_json;
}

/* Whether the server's pod, which is not a mirror pod, has the name of a pod of this node. */
static bool is_name_taken(const ApiServerPod *pod) {
        return pod->local.uid && !pod->local.is_api_pod && pod->remote.exists &&
               !pod->remote.metadata.mirror_hash;
}

/* It may have run earlier. */
static void read_squatter(const ApiServerPod *pod, KubeLocalPod *ret) {
        const LocalPod *local = &pod->local;

        ret->is_api_pod = true;
        if (has_final_status(local) && streq_ptr(local->final_uid, pod->remote.metadata.uid))
                read_final_status(local, ret);
        else if (pod->bound.rejection)
                read_rejection(pod, ret);
}

static void find_local_pod(const PodStatusWriter *writer, ApiServerPod *pod, KubeLocalPod *ret) {
        LocalPod *local = &pod->local;
        const PodStatus *status;

        *ret = (KubeLocalPod){ .is_api_pod = local->is_api_pod,
                               .is_outdated = pod->bound.is_outdated };
        if (is_name_taken(pod)) {
                read_squatter(pod, ret);
                return;
        }
        status = local_pod_status(local, writer->spec.pod_manager);
        if (status) {
                ret->pod = pod_manager_find_pod(writer->spec.pod_manager, local->uid);
                ret->status = status;
                ret->uid = local->reported_uid;
                ret->awaits_edit = pod_manager_awaits_edit(writer->spec.pod_manager, local->uid);
        } else if (pod->bound.rejection)
                read_rejection(pod, ret);
        else if (has_final_status(local))
                read_final_status(local, ret);
}

static void hash_server_status(const KubeObjectSummary *object, char ret[SHA256_HEX_SIZE]) {
        const char *status = strna(object->status);

        sha256_hex(status, strlen(status), ret);
}

/* Whether the server has accepted this status for this object, regardless of later changes. */
static bool was_status_reported(const ApiServerPod *pod, const KubeLocalPod *local) {
        const SentPodStatus *reported = &pod->report.reported;

        return streq_ptr(reported->uid, pod->remote.metadata.uid) &&
               reported->status == local->status &&
               reported->generation == pod->remote.metadata.generation;
}

static bool has_server_status_changed(const ApiServerPod *pod) {
        char hash[SHA256_HEX_SIZE];

        hash_server_status(&pod->remote.metadata, hash);
        return !streq(hash, pod->report.answer_hash);
}

static void read_local_pod(const PodStatusWriter *writer, ApiServerPod *pod, KubeLocalPod *ret) {
        find_local_pod(writer, pod, ret);
        ret->is_reported = pod->remote.exists && was_status_reported(pod, ret) &&
                           !has_server_status_changed(pod);
}

static int set_sent_status(const ApiServerPod *pod, const KubeLocalPod *local, SentPodStatus *ret) {
        char *uid = strdup(strna(pod->remote.metadata.uid));

        if (!uid)
                return -ENOMEM;
        sent_pod_status_done(ret);
        *ret = (SentPodStatus){ .status = pod_status_ref(local->status),
                                .uid = uid,
                                .generation = pod->remote.metadata.generation };
        return 0;
}

static char *format_pod_path(const ApiServerPod *pod, KubePodRequestKind kind) {
        const char *suffix = pod_requests[kind].suffix;

        return suffix ? text_format("/api/v1/namespaces/%s/pods/%s%s", pod->namespace, pod->name,
                                    suffix)
                      : text_format("/api/v1/namespaces/%s/pods", pod->namespace);
}

/* A status that the server has accepted is sent again only if other writers have changed it
 * afterwards: the node controller marks all pods of a node as unready if the node has not reported
 * for a while. Changes that the server itself makes, for example through a webhook, are kept. 1, 0,
 * or -EAGAIN: it was sent too recently. */
static int is_status_to_be_sent(ApiServerPod *pod, const KubeLocalPod *local) {
        PodReport *report = &pod->report;
        uint64_t now = now_boottime_usec();

        if (!was_status_reported(pod, local))
                return 1;
        if (report->repeated_at > 0 && now < report->repeated_at + REPEATS_APART_SEC * USEC_PER_SEC)
                return -EAGAIN;
        report->repeated_at = now;
        return 1;
}

/* 1, 0, or -errno. */
static int is_pod_request_allowed(const PodStatusWriter *writer, ApiServerPod *pod,
                                  const KubeLocalPod *local, KubePodRequestKind kind) {
        switch (kind) {
        case KUBE_POD_PATCH_STATUS:
                if (writer->is_shutting_down && pod->local.is_api_pod)
                        return 0;
                return is_status_to_be_sent(pod, local);
        case KUBE_POD_DELETE:
        case KUBE_POD_RETIRE:
                return writer->is_synced;
        case KUBE_POD_CREATE_MIRROR:
                return true;
        case KUBE_POD_NO_REQUEST:
        case N_KUBE_POD_REQUESTS:
                break;
        }
        return 0;
}

static int fill_pod_request(ApiServerPod *pod, const KubeLocalPod *local, KubePodRequest *request,
                            KubeRequestSpec *ret) {
        cleanup_free char *path = format_pod_path(pod, request->kind);
        int r = path ? set_sent_status(pod, local, &pod->report.sent) : -ENOMEM;

        if (r < 0)
                return r;
        *ret = (KubeRequestSpec){ .method = pod_requests[request->kind].method,
                                  .path = TAKE_PTR(path),
                                  .content_type = pod_requests[request->kind].content_type,
                                  .body = request->body,
                                  .body_length = strlen(request->body) };
        request->body = NULL;
        pod->report.request_kind = request->kind;
        pod->report.watch_events = pod->remote.watch_events;
        return 1;
}

static int build_pod_request(const char *key, KubeRequestSpec *ret, void *userdata) {
        PodStatusWriter *writer = userdata;
        ApiServerPod *pod = pod_table_find(writer->spec.pods, key);
        cleanup_with(kube_pod_request_done) KubePodRequest request = { 0 };
        KubeLocalPod local;
        int r;

        if (!pod)
                return 0;
        read_local_pod(writer, pod, &local);
        r = kube_pod_next_request(&local, remote_pod_object(&pod->remote), writer->spec.node_name,
                                  writer->node_uid, &request);
        if (r < 0)
                return r;
        if (request.is_reported) {
                hash_server_status(&pod->remote.metadata, pod->report.answer_hash);
                return set_sent_status(pod, &local, &pod->report.reported);
        }
        r = is_pod_request_allowed(writer, pod, &local, request.kind);
        if (r <= 0)
                return r;
        return fill_pod_request(pod, &local, &request, ret);
}

/* ---- the response ---- */

/* Another step may be due, because a deleted mirror pod is created again. */
static KubeWorkResult on_remote_pod_deleted(ApiServerPod *pod) {
        return remote_pod_mark_deleted(&pod->remote) < 0 ? KUBE_WORK_RETRY_LATER
                                                         : KUBE_WORK_RETRY_NOW;
}

/* The refusal is logged once for each reason, and retried, because the permission may be granted
 * later. */
static KubeWorkResult on_pod_request_refused(ApiServerPod *pod, const KubeResponse *response) {
        cleanup_free char *error = kube_response_describe_error(response);

        if (error && !streq_ptr(error, pod->report.refused)) {
                log_warning("Cannot %s %s: %s; retrying within a minute",
                            pod_requests[pod->report.request_kind].verb, pod->key, error);
                free(pod->report.refused);
                pod->report.refused = TAKE_PTR(error);
        }
        return KUBE_WORK_RETRY_LATER;
}

/* The watch does not show pods that are not bound to this node, or whose deletion a finalizer
 * delays. */
static bool is_name_held(ApiServerPod *pod, const KubeResponse *response) {
        PodReport *report = &pod->report;
        bool is_conflict = report->request_kind == KUBE_POD_CREATE_MIRROR && !response->error &&
                           response->status == 409;

        report->n_conflicts = is_conflict ? report->n_conflicts + 1 : 0;
        return report->n_conflicts >= CONFLICTS_MIN;
}

static void record_response_object(ApiServerPod *pod, const KubeResponse *response) {
        PodReport *report = &pod->report;
        cleanup_with(kube_object_summary_done) KubeObjectSummary object = { 0 };
        int r = kube_object_summary_parse(response->body, response->length, &object, NULL);

        if (report->request_kind == KUBE_POD_PATCH_STATUS) {
                sent_pod_status_done(&report->reported);
                report->reported = report->sent;
                report->sent = (SentPodStatus){ 0 };
                hash_server_status(&object, report->answer_hash);
        }
        if (r >= 0)
                remote_pod_apply_response_take(&pod->remote, report->watch_events, &object);
}

static KubeWorkResult on_pod_response(const char *key, const KubeResponse *response,
                                      void *userdata) {
        PodStatusWriter *writer = userdata;
        ApiServerPod *pod = pod_table_find(writer->spec.pods, key);
        KubePodRequestKind kind = pod ? pod->report.request_kind : KUBE_POD_NO_REQUEST;

        if (!pod)
                return KUBE_WORK_DONE;
        if (is_name_held(pod, response))
                return on_pod_request_refused(pod, response);
        if (response->error || response->status == 409) /* 409: the watch will show the current
                                                         * object */
                return KUBE_WORK_RETRY_LATER;
        if (kind == KUBE_POD_DELETE && (response->status == 200 || response->status == 404))
                return on_remote_pod_deleted(pod);
        if ((kind == KUBE_POD_PATCH_STATUS || kind == KUBE_POD_RETIRE) && response->status == 404)
                return on_remote_pod_deleted(pod);
        if (response->status < 200 || response->status > 299)
                return on_pod_request_refused(pod, response);
        record_response_object(pod, response);
        free(pod->report.refused);
        pod->report.refused = NULL;
        return KUBE_WORK_RETRY_NOW; /* the status of a new mirror pod, or a deletion, comes next */
}

/* ---- construction ---- */

int pod_status_writer_new(const PodStatusWriterSpec *spec, PodStatusWriter **ret) {
        PodStatusWriter *writer = calloc(1, sizeof(*writer));

        if (!writer)
                return -ENOMEM;
        writer->spec = *spec;
        *ret = writer;
        return 0;
}

PodStatusWriter *pod_status_writer_free(PodStatusWriter *writer) {
        if (!writer)
                return NULL;
        kube_work_queue_free(writer->queue);
        free(writer->node_uid);
        free(writer);
        return NULL;
}

int pod_status_writer_start(PodStatusWriter *writer, KubeClient *client) {
        return kube_work_queue_new(writer->spec.event,
                                   &(KubeWorkQueueSpec){ .client = client,
                                                         .max_parallel = POD_REQUESTS_MAX,
                                                         .build_request = build_pod_request,
                                                         .free_request = kube_request_spec_free,
                                                         .on_response = on_pod_response,
                                                         .userdata = writer },
                                   &writer->queue);
}

/* ---- possible changes ---- */

void pod_status_writer_mark(PodStatusWriter *writer, const ApiServerPod *pod) {
        if (writer->queue && kube_work_queue_add(writer->queue, pod->key) < 0)
                log_error("Cannot update status of pod %s: out of memory; it is reported at the "
                          "pod's next change",
                          pod->key);
}

void pod_status_writer_mark_all(PodStatusWriter *writer) {
        for (const ApiServerPod *pod = writer->spec.pods->first; pod; pod = pod->next)
                pod_status_writer_mark(writer, pod);
}

void pod_status_writer_forget(PodStatusWriter *writer, const ApiServerPod *pod) {
        if (writer->queue)
                kube_work_queue_forget(writer->queue, pod->key);
}

void pod_status_writer_set_node_uid(PodStatusWriter *writer, const char *uid) {
        free(writer->node_uid);
        writer->node_uid = uid ? strdup(uid) : NULL;
        pod_status_writer_mark_all(writer);
}

void pod_status_writer_set_synced(PodStatusWriter *writer) {
        writer->is_synced = true;
        pod_status_writer_mark_all(writer);
}

void pod_status_writer_set_shutting_down(PodStatusWriter *writer, bool is_shutting_down) {
        writer->is_shutting_down = is_shutting_down;
        pod_status_writer_mark_all(writer);
}

char *pod_status_writer_print_refused(const PodStatusWriter *writer) {
        const char *separator = "";
        cleanup_free char *text = NULL;
        size_t length;
        unsigned n = 0;
        FILE *out = open_memstream(&text, &length);

        if (!out)
                return NULL;
        for (const ApiServerPod *pod = writer->spec.pods->first; pod; pod = pod->next) {
                if (!pod->report.refused || n++ >= REFUSED_PODS_MAX)
                        continue;
                fprintf(out, "%s%s %s: %s", separator, pod_requests[pod->report.request_kind].verb,
                        pod->key, pod->report.refused);
                separator = "; ";
        }
        if (n > REFUSED_PODS_MAX)
                fprintf(out, "; and %u other pods", n - REFUSED_PODS_MAX);
        if (fclose(out) != 0 || !text[0])
                return NULL;
        return TAKE_PTR(text);
}

void pod_status_writer_dump(const PodStatusWriter *writer, FILE *out) {
        for (const ApiServerPod *pod = writer->spec.pods->first; pod; pod = pod->next)
                if (pod->report.refused)
                        dump_line(out, 1, "refused: pod %s: %s", pod->key, pod->report.refused);
        if (writer->queue)
                kube_work_queue_dump(writer->queue, "pod status", out);
}
