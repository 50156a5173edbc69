/* SPDX-License-Identifier: Apache-2.0 */
/* The CSINode is read before it is written: entries of drivers that have not registered again since
 * the agent started are kept, so that a restart does not remove volume limits from the scheduler's
 * view. */

#include "agent/apiserver/csi-node.h"

#include "agent/kubeclient/request-back-off.h"
#include "agent/kubeclient/work-queue.h"
#include "common/cleanup.h"
#include "common/json-text.h"
#include "common/log.h"
#include "common/strv.h"
#include "common/text.h"

#include <errno.h>

#define PATH "/apis/storage.k8s.io/v1/csinodes"

#define KEY_CSI_NODE "csinode"
#define KEY_NODE     "node"

/* The in-tree volume plugins that CSI drivers have replaced, in the form that the scheduler
 * expects. */
#define MIGRATED                                                                   \
        "kubernetes.io/aws-ebs,kubernetes.io/azure-disk,kubernetes.io/azure-file," \
        "kubernetes.io/cinder,kubernetes.io/gce-pd,kubernetes.io/portworx-volume," \
        "kubernetes.io/vsphere-volume"

struct CsiNodeWriter {
        sd_event *event;
        char *node_name;
        const CsiNodeDriverList *drivers;
        KubeWorkQueue *queue; /* NULL: there is no client yet */
        char *node_uid;       /* NULL: the Node does not exist, or is not known yet */
        char **seen;          /* names of drivers that have registered since the agent started */
        json_t *known;        /* the server's CSINode; NULL: it must be read first */
        bool is_absent;       /* it does not exist */
        char *error;          /* as last logged; or NULL */
};

/* ---- objects ---- */

static json_t *write_driver(const CsiNodeDriver *driver) {
        json_t *keys = json_array();
        json_t *json = json_pack("{s:s, s:s}", "name", driver->name, "nodeID", driver->node_id);

        for (size_t i = 0; i < driver->segments.n; i++)
                (void) json_array_append_new(keys, json_string(driver->segments.items[i].key));
        (void) json_object_set_new(json, "topologyKeys",
                                   json_array_size(keys) > 0 ? json_incref(keys) : json_null());
        json_decref(keys);
        if (driver->max_volumes > 0)
                (void) json_object_set_new(
                        json, "allocatable",
                        json_pack("{s:I}", "count", (json_int_t) driver->max_volumes));
        return json;
}

/* The registered drivers, and earlier ones that have not registered again yet. */
static json_t *write_drivers(const CsiNodeWriter *writer) {
        json_t *list = json_array(), *old;
        size_t at;

        json_array_foreach(json_at(writer->known, "spec", "drivers"), at, old) {
                const char *name = json_text(old, "name");

                if (name && !strv_contains(writer->seen, name))
                        (void) json_array_append(list, old);
        }
        for (size_t i = 0; i < writer->drivers->n; i++)
                (void) json_array_append_new(list, write_driver(&writer->drivers->items[i]));
        return list;
}

static json_t *write_csi_node(const CsiNodeWriter *writer) {
        json_t *metadata = writer->known ? json_copy(json_object_get(writer->known, "metadata"))
                                         : json_object();

        (void) json_object_set_new(metadata, "name", json_string(writer->node_name));
        (void) json_object_set_new(metadata, "ownerReferences",
                                   json_pack("[{s:s, s:s, s:s, s:s}]", "apiVersion", "v1", "kind",
                                             "Node", "name", writer->node_name, "uid",
                                             writer->node_uid));
        if (!json_object_get(metadata, "annotations"))
                (void) json_object_set_new(metadata, "annotations",
                                           json_pack("{s:s}",
                                                     "storage.alpha.kubernetes.io/migrated-plugins",
                                                     MIGRATED));
        return json_pack("{s:s, s:s, s:o, s:{s:o}}", "apiVersion", "storage.k8s.io/v1", "kind",
                         "CSINode", "metadata", metadata, "spec", "drivers", write_drivers(writer));
}

/* Whether the CSINode belongs to an earlier Node with this name. */
static bool is_foreign(const CsiNodeWriter *writer) {
        const json_t *owner =
                json_array_get(json_at(writer->known, "metadata", "ownerReferences"), 0);
        const char *uid = json_text(owner, "uid");

        return uid && !streq(uid, writer->node_uid);
}

static bool is_up_to_date(const CsiNodeWriter *writer, const json_t *wanted) {
        return writer->known && json_equal(json_at(writer->known, "spec", "drivers"),
                                           json_at(wanted, "spec", "drivers"));
}

/* ---- requests ---- */

static int fill_csi_node_request(const CsiNodeWriter *writer, const char *method, bool has_body,
                                 KubeRequestSpec *ret) {
        bool is_new = streq(method, "POST");
        cleanup_json json_t *wanted = has_body ? write_csi_node(writer) : NULL;
        char *body = has_body ? json_to_text(wanted, JSON_COMPACT) : NULL;
        char *path =
                text_format("%s%s%s", PATH, is_new ? "" : "/", is_new ? "" : writer->node_name);

        if (!path || (has_body && !body)) {
                free(path);
                free(body);
                return -ENOMEM;
        }
        *ret = (KubeRequestSpec){
                .method = method, .path = path, .body = body, .body_length = body ? strlen(body) : 0
        };
        return 1;
}

static int build_csi_node_request(const CsiNodeWriter *writer, KubeRequestSpec *ret) {
        cleanup_json json_t *wanted = NULL;

        if (!writer->known && !writer->is_absent)
                return fill_csi_node_request(writer, "GET", false, ret);
        if (writer->is_absent)
                return fill_csi_node_request(writer, "POST", true, ret);
        if (is_foreign(writer))
                return fill_csi_node_request(writer, "DELETE", false, ret);
        wanted = write_csi_node(writer);
        return wanted && is_up_to_date(writer, wanted)
                       ? 0
                       : fill_csi_node_request(writer, "PUT", true, ret);
}

/* The labels of a driver that has deregistered stay, as in the kubelet. */
static int build_csi_annotation_request(const CsiNodeWriter *writer, KubeRequestSpec *ret) {
        cleanup_json json_t *ids = json_object(), *labels = json_object(), *patch = NULL;
        cleanup_free char *id_text = NULL;
        json_t *annotation;
        char *body, *path;

        for (size_t i = 0; i < writer->drivers->n; i++) {
                const CsiNodeDriver *driver = &writer->drivers->items[i];

                (void) json_object_set_new(ids, driver->name, json_string(driver->node_id));
                for (size_t j = 0; j < driver->segments.n; j++)
                        (void) json_object_set_new(labels, driver->segments.items[j].key,
                                                   json_string(driver->segments.items[j].value));
        }
        id_text = json_to_text(ids, JSON_COMPACT | JSON_SORT_KEYS);
        annotation = json_object_size(ids) > 0 && id_text ? json_string(id_text) : json_null();
        patch = json_pack("{s:{s:{s:o, s:s}, s:O}}", "metadata", "annotations",
                          "csi.volume.kubernetes.io/nodeid", annotation,
                          "volumes.kubernetes.io/controller-managed-attach-detach", "true",
                          "labels", labels);
        body = id_text && patch ? json_to_text(patch, JSON_COMPACT) : NULL;
        path = text_format("/api/v1/nodes/%s/status", writer->node_name);
        if (!body || !path) {
                free(body);
                free(path);
                return -ENOMEM;
        }
        *ret = (KubeRequestSpec){ .method = "PATCH",
                                  .path = path,
                                  .content_type = "application/merge-patch+json",
                                  .body = body,
                                  .body_length = strlen(body) };
        return 1;
}

static int build_request(const char *key, KubeRequestSpec *ret, void *userdata) {
        const CsiNodeWriter *writer = userdata;

        if (!writer->node_uid)
                return 0;
        return streq(key, KEY_NODE) ? build_csi_annotation_request(writer, ret)
                                    : build_csi_node_request(writer, ret);
}

/* ---- responses ---- */

static void forget_csi_node(CsiNodeWriter *writer, bool is_absent) {
        json_decref(writer->known);
        writer->known = NULL;
        writer->is_absent = is_absent;
}

static void report_error(CsiNodeWriter *writer, const char *key, const KubeResponse *response) {
        cleanup_free char *error = response ? kube_response_describe_error(response) : NULL;

        if (error && !streq_ptr(error, writer->error))
                log_warning("Cannot report the CSI drivers of this node in its %s: %s; %s", key,
                            error, kube_back_off_retry_hint(0));
        free(writer->error);
        writer->error = TAKE_PTR(error);
}

static KubeWorkResult take_csi_node(CsiNodeWriter *writer, const KubeResponse *response) {
        json_t *object = json_loadb(response->body, response->length, 0, NULL);
        const char *kind = json_text(object, "kind");

        if (streq_ptr(kind, "CSINode")) {
                bool was_deleted = writer->known && is_foreign(writer);

                forget_csi_node(writer, was_deleted);
                if (!was_deleted)
                        writer->known = json_incref(object);
        } else
                forget_csi_node(writer, true); /* the Status of a DELETE */
        json_decref(object);
        return KUBE_WORK_RETRY_NOW; /* until nothing is due */
}

static KubeWorkResult on_csi_node_response(const char *key, const KubeResponse *response,
                                           void *userdata) {
        CsiNodeWriter *writer = userdata;
        bool is_node = streq(key, KEY_NODE);

        if (response->status == 200 || response->status == 201) {
                report_error(writer, key, NULL);
                return is_node ? KUBE_WORK_DONE : take_csi_node(writer, response);
        }
        if (!is_node && response->status == 404) {
                bool was_read = !writer->known;

                forget_csi_node(writer, was_read);
                return KUBE_WORK_RETRY_NOW;
        }
        if (!is_node && response->status == 409) {
                forget_csi_node(writer, false);
                return KUBE_WORK_RETRY_LATER;
        }
        report_error(writer, key, response);
        return KUBE_WORK_RETRY_LATER;
}

/* ---- the writer ---- */

int csi_node_writer_new(sd_event *event, const char *node_name, const CsiNodeDriverList *drivers,
                        CsiNodeWriter **ret) {
        CsiNodeWriter *writer = calloc(1, sizeof(*writer));

        if (!writer)
                return -ENOMEM;
        writer->event = event;
        writer->drivers = drivers;
        writer->node_name = strdup(node_name);
        if (!writer->node_name) {
                csi_node_writer_free(writer);
                return -ENOMEM;
        }
        *ret = writer;
        return 0;
}

CsiNodeWriter *csi_node_writer_free(CsiNodeWriter *writer) {
        if (!writer)
                return NULL;
        kube_work_queue_free(writer->queue);
        json_decref(writer->known);
        strv_free(writer->seen);
        free(writer->node_name);
        free(writer->node_uid);
        free(writer->error);
        free(writer);
        return NULL;
}

int csi_node_writer_start(CsiNodeWriter *writer, KubeClient *client) {
        int r = kube_work_queue_new(writer->event,
                                    &(KubeWorkQueueSpec){ .client = client,
                                                          .max_parallel = 2,
                                                          .build_request = build_request,
                                                          .free_request = kube_request_spec_free,
                                                          .on_response = on_csi_node_response,
                                                          .userdata = writer },
                                    &writer->queue);

        if (r >= 0)
                csi_node_writer_update(writer);
        return r;
}

void csi_node_writer_set_node_uid(CsiNodeWriter *writer, const char *uid) {
        if (streq_ptr(writer->node_uid, uid))
                return;
        if (text_replace(&writer->node_uid, uid) < 0)
                return;
        forget_csi_node(writer, false);
        csi_node_writer_update(writer);
}

void csi_node_writer_update(CsiNodeWriter *writer) {
        int r = 0;

        for (size_t i = 0; i < writer->drivers->n && r >= 0; i++)
                if (!strv_contains(writer->seen, writer->drivers->items[i].name))
                        r = strv_append(&writer->seen, writer->drivers->items[i].name);
        if (!writer->queue || !writer->seen)
                return;
        if (r >= 0)
                r = kube_work_queue_add(writer->queue, KEY_CSI_NODE);
        if (r >= 0)
                r = kube_work_queue_add(writer->queue, KEY_NODE);
        if (r < 0)
                log_error("Cannot report the CSI drivers of this node: %s", strerror(-r));
}

void csi_node_writer_dump(const CsiNodeWriter *writer, FILE *out) {
        if (writer->queue)
                kube_work_queue_dump(writer->queue, "CSI drivers of the node", out);
}
