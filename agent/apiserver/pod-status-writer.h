/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Reports pods to the API server (kubelet: status manager and mirror client): creates and deletes
 * mirror pods, patches statuses, and deletes API pods that have terminated. A pod is only marked;
 * its next request is computed when it is sent, see kubeclient/pod-api-request.h. */

#include "agent/apiserver/pod-table.h"
#include "agent/kubeclient/kube-client.h"

#include <stdio.h>

typedef struct PodStatusWriter PodStatusWriter;

/* Borrowed. */
typedef struct PodStatusWriterSpec {
        sd_event *event;
        const char *node_name;
        PodManager *pod_manager;
        PodTable *pods;
} PodStatusWriterSpec;

int pod_status_writer_new(const PodStatusWriterSpec *spec, PodStatusWriter **ret);
PodStatusWriter *pod_status_writer_free(PodStatusWriter *writer);
int pod_status_writer_start(PodStatusWriter *writer, KubeClient *client); /* 0 or -errno */

/* The pod may have a status to report. */
void pod_status_writer_mark(PodStatusWriter *writer, const ApiServerPod *pod);
void pod_status_writer_mark_all(PodStatusWriter *writer);

/* The entry is about to be removed. */
void pod_status_writer_forget(PodStatusWriter *writer, const ApiServerPod *pod);

/* Sets the UID of the Node, which owns mirror pods; NULL: the Node does not exist. */
void pod_status_writer_set_node_uid(PodStatusWriter *writer, const char *uid);

/* All pods of an earlier agent are known: from now on mirror pods of unknown pods are deleted. */
void pod_status_writer_set_synced(PodStatusWriter *writer);

/* While the machine shuts down, API pods are not reported as failed: they start at the next boot.
 */
void pod_status_writer_set_shutting_down(PodStatusWriter *writer, bool is_shutting_down);

/* "update status of pod default/web: 403 Forbidden: …; …" for at most five pods, or NULL; the
 * caller frees it. */
char *pod_status_writer_print_refused(const PodStatusWriter *writer);

/* Prints unreported state for `mainstay debug dump`. */
void pod_status_writer_dump(const PodStatusWriter *writer, FILE *out);
