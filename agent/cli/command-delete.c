/* SPDX-License-Identifier: Apache-2.0 */
/* `mainstay delete`: stops pods, removes DaemonSets. */

#include "agent/cli/pod-selection.h"

#include "agent/cli/agent-client.h"
#include "agent/cli/daemonset-requests.h"
#include "agent/cli/output.h"
#include "agent/cli/resources.h"
#include "agent/cli/watch.h"
#include "agent/cli/words.h"
#include "common/cleanup.h"
#include "common/json-text.h"
#include "common/text.h"

#include <stdio.h>

/* mainstay delete pod: the pod is stopped and, because its manifest still exists, started again. */

typedef struct PodDeletion {
        const Options *options;
        const char *grace; /* seconds, or NULL: the pod's own */
        json_t *pods;      /* the selected pods */
        size_t n_gone;
        Error *reterr;
} PodDeletion;

static int ignore_delete_response(const char *data, size_t length, void *userdata) {
        return 0;
}

static int request_pod_deletion(const PodDeletion *deletion, const json_t *pod, Error *reterr) {
        const char *namespace = strna(json_text(pod, "metadata", "namespace"));
        const char *name = strna(json_text(pod, "metadata", "name"));
        int r;
        cleanup_free char *path =
                text_format("/api/v1/namespaces/%s/pods/%s%s%s", namespace, name,
                            deletion->grace ? "?gracePeriodSeconds=" : "", strna(deletion->grace));

        if (!path)
                return -ENOMEM;
        r = client_request(deletion->options->socket, "DELETE", path, ignore_delete_response, NULL,
                           reterr);
        if (r < 0)
                return r;
        printf("pod \"%s\" deleted from %s namespace\n", name, namespace);
        fflush(stdout);
        return 0;
}

/* A pod is deleted only after the watch has reported it, so that its end cannot be missed. */
static int on_deleted_pod_event(const char *type, json_t *pod, void *userdata) {
        PodDeletion *deletion = userdata;
        int r = streq(type, "ADDED") ? request_pod_deletion(deletion, pod, deletion->reterr) : 0;

        if (r < 0)
                return r;
        deletion->n_gone += streq(type, "DELETED");
        return deletion->n_gone == json_array_size(deletion->pods);
}

static int delete_each_pod(const PodDeletion *deletion, Error *reterr) {
        size_t i;
        json_t *pod;
        int r = 0;

        json_array_foreach(deletion->pods, i, pod) {
                r = request_pod_deletion(deletion, pod, reterr);
                if (r < 0)
                        break;
        }
        return r;
}

static int delete_pods_and_wait(PodDeletion *deletion, Error *reterr) {
        int r;

        if (!deletion->options->wait || json_array_size(deletion->pods) == 0)
                return delete_each_pod(deletion, reterr);
        deletion->reterr = reterr;
        r = watch_pods(deletion->options->socket, deletion->pods, on_deleted_pod_event, deletion,
                       reterr);
        deletion->reterr = NULL;
        return r;
}

/* STATUS_OK with the number of seconds, or NULL. */
static int parse_grace_period(const Options *options, const char **ret) {
        const char *grace = options->grace_period;

        if (options->now && grace)
                return fail_usage("--now and --grace-period cannot be combined");
        if (grace && (!*grace || strspn(grace, "0123456789") != strlen(grace) || strlen(grace) > 9))
                return fail_usage("--grace-period must be a number of seconds, not '%s'", grace);
        *ret = options->now ? "1" : grace;
        return STATUS_OK;
}

static int delete_matching_pods(PodDeletion *deletion, const PodFilter *filter) {
        cleanup_error Error error = ERROR_NULL;
        cleanup_json json_t *pods = NULL;
        int r;

        r = pods_fetch(deletion->options->socket, filter, &pods, &error);
        if (r < 0)
                return fail_with_error(r, &error);
        deletion->pods = pods;
        r = delete_pods_and_wait(deletion, &error);
        if (r < 0)
                return fail_with_error(r, &error);
        return report_missing_pods(filter, pods);
}

int run_delete(const Options *options) {
        PodDeletion deletion = { .options = options };
        cleanup_error Error error = ERROR_NULL;
        cleanup_with(pod_filter_done) PodFilter filter = { 0 };
        char *const *names;
        ApiResource resource;
        size_t n_names;
        int status, r;

        status = parse_api_resource(options, "delete",
                                    API_RESOURCE_BIT(API_RESOURCE_PODS) |
                                            API_RESOURCE_BIT(API_RESOURCE_DAEMONSETS),
                                    &resource, &names, &n_names);
        if (status == STATUS_OK && resource == API_RESOURCE_DAEMONSETS)
                return delete_daemonsets(options, names, n_names);
        if (status == STATUS_OK)
                status = parse_grace_period(options, &deletion.grace);
        if (status != STATUS_OK)
                return status;
        if (n_names == 0 && !options->selector && !options->all)
                return fail_usage("a name, -l or --all is required: 'mainstay delete pod NAME'");
        r = pod_filter_init(&filter, options, names, n_names, &error);
        if (r < 0)
                return fail_usage("%s", error_message(&error, r));
        return delete_matching_pods(&deletion, &filter);
}
