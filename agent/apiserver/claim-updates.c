/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/apiserver/claim-updates.h"

#include "agent/kubeclient/request-back-off.h"
#include "agent/kubeclient/work-queue.h"
#include "agent/model/status-condition.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/json-text.h"
#include "common/list.h"
#include "common/log.h"
#include "common/strv.h"
#include "common/text.h"

#include <errno.h>

enum {
        CLAIM_WRITES_MAX = 4, /* at a time */
        REFUSALS_MAX = 20     /* before an update is dropped */
};

#define STATUSES "allocatedResourceStatuses"

typedef struct ClaimWrite {
        struct ClaimWrite *next;
        char *key; /* "<namespace>/<name>" */
        char *namespace;
        char *name;
        char *uid;
        bool is_set; /* the next three members are valid */
        ClaimUpdateKind kind;
        char *size;
        char *message;
        unsigned n_refusals;
        json_t *read; /* the claim as it was read for this write; NULL: it must be read */
} ClaimWrite;

struct ClaimUpdates {
        sd_event *event;
        void (*on_claim)(const ObjectKey *key, const char *json, size_t length, void *userdata);
        void *userdata;
        KubeWorkQueue *queue; /* NULL: there is no client yet */
        ClaimWrite *writes;
};

/* ---- patches ---- */

/* All conditions that concern a resize. */
static json_t *drop_resize_conditions(const json_t *claim) {
        static const char *const types[] = { "FileSystemResizePending", "Resizing",
                                             "ControllerResizeError", "NodeResizeError" };
        json_t *list = json_array();

        for (size_t i = 0; i < N_ELEMENTS(types); i++)
                if (find_status_condition(claim, types[i]))
                        (void) json_array_append_new(list, json_pack("{s:s, s:s}", "$patch",
                                                                     "delete", "type", types[i]));
        return list;
}

static json_t *write_resize_error(const char *message, uint64_t now) {
        char time[RFC3339_SIZE];

        return json_pack("[{s:s, s:s, s:n, s:s, s:o}]", "type", "NodeResizeError", "status", "True",
                         "lastProbeTime", "lastTransitionTime", format_rfc3339(time, now),
                         "message", json_sprintf("failed to expand pvc with %s", message));
}

static json_t *write_expanded(const json_t *claim, const char *size) {
        const json_t *statuses = json_at(claim, "status", STATUSES);
        json_t *status = json_pack("{s:{s:s}, s:o}", "capacity", "storage", size, "conditions",
                                   drop_resize_conditions(claim));

        if (json_object_size(statuses) == 1 && json_object_get(statuses, "storage"))
                (void) json_object_set_new(status, STATUSES, json_null());
        else if (statuses)
                (void) json_object_set_new(status, STATUSES, json_pack("{s:n}", "storage"));
        return status;
}

static json_t *write_stage(const char *stage) {
        return json_pack("{s:{s:s}}", STATUSES, "storage", stage);
}

static json_t *write_claim_status(const json_t *claim, const ClaimUpdate *update, uint64_t now) {
        const char *stage = json_text(json_at(claim, "status", STATUSES), "storage");
        json_t *status;

        if (update->kind == CLAIM_EXPANDED)
                return write_expanded(claim, strna(update->size));
        if (update->kind == CLAIM_EXPANDING)
                return streq_ptr(stage, "NodeResizePending") ? write_stage("NodeResizeInProgress")
                                                             : NULL;
        status = update->kind == CLAIM_EXPANSION_INFEASIBLE ? write_stage("NodeResizeInfeasible")
                                                            : json_object();
        /* Like the kubelet, does not change an existing condition and its message. */
        if (!find_status_condition(claim, "NodeResizeError"))
                (void) json_object_set_new(status, "conditions",
                                           write_resize_error(strna(update->message), now));
        if (json_object_size(status) > 0)
                return status;
        json_decref(status);
        return NULL;
}

json_t *claim_update_patch(const json_t *claim, const ClaimUpdate *update, uint64_t now) {
        json_t *status = write_claim_status(claim, update, now);
        const json_t *metadata = json_object_get(claim, "metadata");

        return status ? json_pack("{s:{s:s*, s:s*}, s:o}", "metadata", "uid",
                                  json_text(metadata, "uid"), "resourceVersion",
                                  json_text(metadata, "resourceVersion"), "status", status)
                      : NULL;
}

/* ---- writes ---- */

static void claim_write_free(ClaimWrite *write) {
        free(write->key);
        free(write->namespace);
        free(write->name);
        free(write->uid);
        free(write->size);
        free(write->message);
        json_decref(write->read);
        free(write);
}

static ClaimWrite *find_claim_write(const ClaimUpdates *updates, const char *key) {
        list_foreach(write, updates->writes)
                if (streq(write->key, key))
                        return write;
        return NULL;
}

static void forget_claim_write(ClaimUpdates *updates, ClaimWrite *write) {
        LIST_REMOVE(updates->writes, write);
        claim_write_free(write);
}

static json_t *build_write_patch(const ClaimWrite *write) {
        return claim_update_patch(write->read,
                                  &(ClaimUpdate){ write->kind, write->size, write->message },
                                  now_realtime_usec());
}

static int build_claim_request(const char *key, KubeRequestSpec *ret, void *userdata) {
        const ClaimWrite *write = find_claim_write(userdata, key);
        cleanup_json json_t *patch = write && write->read ? build_write_patch(write) : NULL;
        char *path, *body = NULL;

        if (!write)
                return 0;
        path = text_format("/api/v1/namespaces/%s/persistentvolumeclaims/%s%s", write->namespace,
                           write->name, patch ? "/status" : "");
        if (patch)
                body = json_to_text(patch, JSON_COMPACT);
        if (!path || (patch && !body)) {
                free(path);
                free(body);
                return -ENOMEM;
        }
        *ret = (KubeRequestSpec){ .method = patch ? "PATCH" : "GET",
                                  .path = path,
                                  .content_type =
                                          patch ? "application/strategic-merge-patch+json" : NULL,
                                  .body = body,
                                  .body_length = body ? strlen(body) : 0 };
        return 1;
}

/* ---- responses ---- */

static void pass_claim_on(const ClaimUpdates *updates, const ClaimWrite *write,
                          const KubeResponse *response) {
        updates->on_claim(&(ObjectKey){ OBJECT_SOURCE_APISERVER, OBJECT_VOLUME_CLAIM,
                                        write->namespace, write->name },
                          response->body, response->length, updates->userdata);
}

/* Takes the claim as it was read. Returns whether its status must be written. */
static bool take_read_claim(ClaimWrite *write, json_t *claim) {
        cleanup_json json_t *patch = NULL;

        write->read = claim;
        if (!streq_ptr(json_text(json_object_get(claim, "metadata"), "uid"), write->uid))
                return false;
        patch = build_write_patch(write);
        return patch;
}

static KubeWorkResult take_claim_response(ClaimUpdates *updates, ClaimWrite *write,
                                          const KubeResponse *response) {
        bool was_written = write->read;
        json_t *claim = was_written ? NULL : json_loadb(response->body, response->length, 0, NULL);

        if (!was_written && take_read_claim(write, claim))
                return KUBE_WORK_RETRY_NOW;
        pass_claim_on(updates, write, response);
        forget_claim_write(updates, write);
        return KUBE_WORK_DONE;
}

/* The claim is read again before it is written again. */
static KubeWorkResult on_claim_response(const char *key, const KubeResponse *response,
                                        void *userdata) {
        ClaimUpdates *updates = userdata;
        ClaimWrite *write = find_claim_write(updates, key);
        cleanup_free char *error = NULL;

        if (!write)
                return KUBE_WORK_DONE;
        if (response->status == 200)
                return take_claim_response(updates, write, response);
        json_decref(write->read);
        write->read = NULL;
        if (response->error || response->status == 409)
                return KUBE_WORK_RETRY_LATER;
        if (response->status != 404) {
                error = kube_response_describe_error(response);
                if (write->n_refusals++ == 0)
                        log_warning("Cannot report the expansion of the volume of claim %s: %s; %s",
                                    key, strna(error), kube_back_off_retry_hint(0));
                if (write->n_refusals < REFUSALS_MAX)
                        return KUBE_WORK_RETRY_LATER;
        }
        forget_claim_write(updates, write);
        return KUBE_WORK_DONE;
}

/* ---- the interface ---- */

int claim_updates_new(sd_event *event,
                      void (*on_claim)(const ObjectKey *key, const char *json, size_t length,
                                       void *userdata),
                      void *userdata, ClaimUpdates **ret) {
        ClaimUpdates *updates = calloc(1, sizeof(*updates));

        if (!updates)
                return -ENOMEM;
        *updates = (ClaimUpdates){ .event = event, .on_claim = on_claim, .userdata = userdata };
        *ret = updates;
        return 0;
}

ClaimUpdates *claim_updates_free(ClaimUpdates *updates) {
        if (!updates)
                return NULL;
        kube_work_queue_free(updates->queue);
        while (updates->writes)
                forget_claim_write(updates, updates->writes);
        free(updates);
        return NULL;
}

int claim_updates_start(ClaimUpdates *updates, KubeClient *client) {
        int r = kube_work_queue_new(updates->event,
                                    &(KubeWorkQueueSpec){ .client = client,
                                                          .max_parallel = CLAIM_WRITES_MAX,
                                                          .build_request = build_claim_request,
                                                          .free_request = kube_request_spec_free,
                                                          .on_response = on_claim_response,
                                                          .userdata = updates },
                                    &updates->queue);

        list_foreach(write, updates->writes)
                if (r >= 0)
                        r = kube_work_queue_add(updates->queue, write->key);
        return r;
}

static ClaimWrite *claim_write_new(const ObjectMeta *claim) {
        ClaimWrite *write = calloc(1, sizeof(*write));

        if (!write)
                return NULL;
        write->key = text_format("%s/%s", claim->namespace, claim->name);
        write->namespace = strdup(claim->namespace);
        write->name = strdup(claim->name);
        write->uid = strdup(strna(claim->uid));
        if (write->key && write->namespace && write->name && write->uid)
                return write;
        claim_write_free(write);
        return NULL;
}

static ClaimWrite *get_claim_write(ClaimUpdates *updates, const ObjectMeta *claim) {
        cleanup_free char *key = text_format("%s/%s", claim->namespace, claim->name);
        ClaimWrite *write = key ? find_claim_write(updates, key) : NULL;

        if (!key || write)
                return write;
        write = claim_write_new(claim);
        if (write)
                LIST_PREPEND(updates->writes, write);
        return write;
}

void claim_updates_add(ClaimUpdates *updates, const DataObject *claim, const ClaimUpdate *update) {
        ClaimWrite *write = get_claim_write(updates, &claim->metadata);
        int r = write ? 0 : -ENOMEM;

        if (write && write->is_set && write->kind == update->kind &&
            streq_ptr(write->size, update->size) && streq_ptr(write->message, update->message))
                return;
        if (r >= 0)
                r = text_replace(&write->size, update->size);
        if (r >= 0)
                r = text_replace(&write->message, update->message);
        if (r >= 0) {
                write->kind = update->kind;
                write->is_set = true;
                json_decref(write->read);
                write->read = NULL;
        }
        if (r >= 0 && updates->queue)
                r = kube_work_queue_add(updates->queue, write->key);
        if (r < 0)
                log_error("Cannot report the expansion of the volume of claim %s/%s: %s",
                          claim->metadata.namespace, claim->metadata.name, strerror(-r));
}

void claim_updates_dump(const ClaimUpdates *updates, FILE *out) {
        if (updates->queue)
                kube_work_queue_dump(updates->queue, "claims whose volumes are expanded", out);
}
