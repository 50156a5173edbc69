/* SPDX-License-Identifier: Apache-2.0 */
/* One file for each set: "<namespace>_<UID of the set>", which is unique across namespaces.
 * Templates are compared in daemonset-admission.c. */

#include "agent/apiserver/admitted-pods.h"

#include "agent/daemonset/rules/rules.h"
#include "agent/manifest/manifest.h"
#include "agent/model/json.h"
#include "agent/model/names.h"
#include "agent/model/schema.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "common/strv.h"
#include "common/text.h"

enum {
        ADMITTED_PODS_MAX = 256,
        ADMITTED_POD_MAX_BYTES = 4 * 1024 * 1024,
};

static const char admitted_pods_directory[] = "admitted";

struct AdmittedPods {
        ApiServerCache *cache;
        char **names; /* file names: those of earlier agents, then those added by this agent, oldest
                       * first */
};

int admitted_pods_new(ApiServerCache *cache, AdmittedPods **ret) {
        AdmittedPods *pods = calloc(1, sizeof(*pods));
        int r;

        if (!pods)
                return -ENOMEM;
        pods->cache = cache;
        r = apiserver_cache_list(cache, admitted_pods_directory, &pods->names);
        if (r == -ENOMEM) {
                admitted_pods_free(pods);
                return r;
        }
        if (r < 0)
                (void) log_error_errno(r, "Cannot list the pods that the API server has admitted; "
                                          "DaemonSets wait for their controller");
        *ret = pods;
        return 0;
}

AdmittedPods *admitted_pods_free(AdmittedPods *pods) {
        if (!pods)
                return NULL;
        strv_free(pods->names);
        free(pods);
        return NULL;
}

void admitted_pods_forget(AdmittedPods *pods) {
        pods->names = strv_free(pods->names);
        apiserver_cache_empty(pods->cache, admitted_pods_directory);
}

/* ---- the limit ---- */

static size_t namespace_length(const char *name) {
        return strcspn(name, "_");
}

static bool is_of_same_namespace(const char *a, const char *b) {
        size_t length = namespace_length(a);

        return length == namespace_length(b) && strncmp(a, b, length) == 0;
}

static size_t count_of_namespace(const AdmittedPods *pods, const char *name) {
        size_t n = 0;

        strv_foreach(other, pods->names)
                n += is_of_same_namespace(*other, name);
        return n;
}

static void forget_name_at(AdmittedPods *pods, size_t i) {
        size_t n = strv_length(pods->names);

        free(pods->names[i]);
        memmove(&pods->names[i], &pods->names[i + 1], (n - i) * sizeof(*pods->names));
}

/* Drops the oldest pod of the namespace with the most pods. */
static void drop_one_if_full(AdmittedPods *pods) {
        size_t best = 0, most = 0;

        if (strv_length(pods->names) < ADMITTED_PODS_MAX)
                return;
        for (size_t i = 0; pods->names[i]; i++) {
                size_t n = count_of_namespace(pods, pods->names[i]);

                if (n > most) {
                        most = n;
                        best = i;
                }
        }
        apiserver_cache_write(pods->cache, admitted_pods_directory, pods->names[best], NULL);
        forget_name_at(pods, best);
}

static void forget_name(AdmittedPods *pods, const char *name) {
        for (size_t i = 0; pods->names && pods->names[i]; i++)
                if (streq(pods->names[i], name)) {
                        forget_name_at(pods, i);
                        return;
                }
}

/* ---- the pods ---- */

static char *format_name(const char *namespace, const char *uid) {
        if (!is_dns_label(strna(namespace)) || check_uid(strna(uid), NULL) < 0)
                return NULL;
        return text_format("%s_%s", namespace, uid);
}

/* Ephemeral containers are added to a pod that was admitted without them. */
static char *print_admitted_pod(const Pod *pod) {
        cleanup_with(pod_freep) Pod *copy = NULL;

        if (pod_copy(pod, &copy) < 0)
                return NULL;
        for (size_t i = 0; i < copy->spec.ephemeral_containers.n; i++)
                schema_done(&ephemeral_container_schema, &copy->spec.ephemeral_containers.items[i]);
        copy->spec.ephemeral_containers.n = 0;
        return pod_to_json(copy, NULL);
}

void admitted_pods_add(AdmittedPods *pods, const Pod *pod) {
        const OwnerReference *owner = object_controller(&pod->metadata);
        cleanup_free char *name = NULL, *json = NULL;

        if (!pod_is_of_api(pod) || !object_controlling_daemonset(&pod->metadata))
                return;
        name = format_name(pod->metadata.namespace, owner->uid);
        json = print_admitted_pod(pod);
        if (!name || !json)
                return;
        forget_name(pods, name);
        drop_one_if_full(pods);
        if (strv_append(&pods->names, name) >= 0)
                apiserver_cache_write(pods->cache, admitted_pods_directory, name, json);
}

int admitted_pods_find(const AdmittedPods *pods, const DaemonSet *set, Pod **ret) {
        cleanup_free char *name = format_name(set->metadata.namespace, set->metadata.uid),
                          *json = NULL;
        cleanup_with(pod_freep) Pod *pod = NULL;
        int r;

        if (!name || !strv_contains(pods->names, name))
                return 0;
        r = apiserver_cache_read(pods->cache, admitted_pods_directory, name, ADMITTED_POD_MAX_BYTES,
                                 &json);
        if (r >= 0)
                r = manifest_parse_record(json, strlen(json), &pod, NULL);
        if (r < 0)
                return r == -ENOMEM ? r : 0;
        pod->metadata.source = OBJECT_SOURCE_APISERVER;
        if (!daemonset_controls_pod(set, pod))
                return 0;
        *ret = TAKE_PTR(pod);
        return 1;
}

void admitted_pods_retain(AdmittedPods *pods, bool (*is_needed)(const char *uid, void *userdata),
                          void *userdata) {
        for (size_t i = strv_length(pods->names); i-- > 0;) {
                const char *name = pods->names[i];
                const char *uid = name + namespace_length(name);

                if (uid[0] && is_needed(uid + 1, userdata))
                        continue;
                apiserver_cache_write(pods->cache, admitted_pods_directory, name, NULL);
                forget_name_at(pods, i);
        }
}
