/* SPDX-License-Identifier: Apache-2.0 */
/* The sorted table of pods by name. */

#include "agent/apiserver/pod-table.h"

#include "agent/model/object-identity.h"
#include "common/cleanup.h"
#include "common/text.h"

void sent_pod_status_done(SentPodStatus *sent) {
        pod_status_unref(sent->status);
        free(sent->uid);
        *sent = (SentPodStatus){ 0 };
}

static void apiserver_pod_free(ApiServerPod *pod) {
        remote_pod_done(&pod->remote);
        bound_pod_done(&pod->bound);
        local_pod_done(&pod->local);
        sent_pod_status_done(&pod->report.reported);
        sent_pod_status_done(&pod->report.sent);
        free(pod->report.refused);
        free(pod->namespace);
        free(pod->key);
        free(pod);
}

static ApiServerPod *apiserver_pod_new(const char *namespace, const char *name) {
        ApiServerPod *pod = calloc(1, sizeof(*pod));

        if (!pod)
                return NULL;
        local_pod_init(&pod->local);
        pod->namespace = strdup(namespace);
        pod->key = text_format("%s/%s", namespace, name);
        if (!pod->key || !pod->namespace) {
                apiserver_pod_free(pod);
                return NULL;
        }
        pod->name = pod->key + strlen(namespace) + 1;
        return pod;
}

void pod_table_done(PodTable *table) {
        while (table->first)
                pod_table_remove(&table->first);
}

ApiServerPod *pod_table_find(const PodTable *table, const char *key) {
        for (ApiServerPod *pod = table->first; pod; pod = pod->next)
                if (streq(pod->key, key))
                        return pod;
        return NULL;
}

ApiServerPod *pod_table_get(PodTable *table, const char *namespace, const char *name) {
        ApiServerPod **link = &table->first, *pod;
        cleanup_free char *key = NULL;

        key = text_format("%s/%s", namespace, name);
        if (!key)
                return NULL;
        while (*link && strcmp((*link)->key, key) < 0)
                link = &(*link)->next;
        if (*link && streq((*link)->key, key))
                return *link;
        pod = apiserver_pod_new(namespace, name);
        if (!pod)
                return NULL;
        pod->next = *link;
        *link = pod;
        return pod;
}

void pod_table_remove(ApiServerPod **link) {
        ApiServerPod *pod = *link;

        *link = pod->next;
        apiserver_pod_free(pod);
}

ApiServerPod *pod_table_find_adopted(const PodTable *table, const Pod *local_pod,
                                     const ApiServerPod *except) {
        for (ApiServerPod *pod = table->first; pod; pod = pod->next)
                if (pod != except && pod->bound.adopted &&
                    objects_are_same(&pod->bound.adopted->metadata, &local_pod->metadata))
                        return pod;
        return NULL;
}
