/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cli/pod-selection.h"

#include "agent/cli/agent-client.h"
#include "agent/cli/columns.h"
#include "agent/cli/daemonset-requests.h"
#include "agent/cli/describe.h"
#include "agent/cli/nodes.h"
#include "agent/cli/output.h"
#include "agent/cli/resources.h"
#include "agent/cli/words.h"
#include "common/cleanup.h"
#include "common/json-text.h"
#include "common/text.h"

/* mainstay describe: requests the objects; describe-pod.c and its neighbours print them. */

/* The entry of /manifests for the file of the pod, or NULL. */
static const json_t *find_manifest_of_pod(const json_t *report, const json_t *pod) {
        size_t i, j;
        json_t *manifest, *name;
        cleanup_free char *label =
                text_format("%s/%s", strna(json_text(pod, "metadata", "namespace")),
                            strna(json_text(pod, "metadata", "name")));

        if (!label)
                return NULL;
        json_array_foreach(json_object_get(report, "items"), i, manifest)
                json_array_foreach(json_object_get(manifest, "pods"), j, name)
                        if (streq_ptr(json_string_value(name), label))
                                return manifest;
        return NULL;
}

static int print_described_pod(const json_t *pod, const json_t *report, const json_t *events) {
        char *text = NULL;
        size_t length;
        FILE *out = open_memstream(&text, &length);

        if (!out)
                return -ENOMEM;
        describe_pod(pod, find_manifest_of_pod(report, pod), out);
        describe_events(pod, events, out);
        return columns_print_description(out, &text);
}

static int print_described_pods(const json_t *pods, const json_t *report, const json_t *events) {
        size_t i;
        json_t *pod;

        json_array_foreach(pods, i, pod) {
                int r;

                if (i > 0)
                        printf("\n\n");
                r = print_described_pod(pod, report, events);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int describe_pods(const Options *options, const PodFilter *filter) {
        cleanup_error Error error = ERROR_NULL;
        cleanup_json json_t *pods = NULL, *report = NULL, *events = NULL;
        int r;

        r = pods_fetch(options->socket, filter, &pods, &error);
        if (r < 0)
                return fail_with_error(r, &error);
        r = client_get_json(options->socket, "/manifests", &report, &error);
        if (r < 0)
                return fail_with_error(r, &error);
        r = client_get_json(options->socket, "/events", &events, &error);
        if (r < 0)
                return fail_with_error(r, &error);
        r = print_described_pods(pods, report, events);
        if (r < 0)
                return fail_with_error(r, &error);
        return report_missing_pods(filter, pods);
}

int run_describe(const Options *options) {
        cleanup_error Error error = ERROR_NULL;
        cleanup_with(pod_filter_done) PodFilter filter = { 0 };
        char *const *names;
        ApiResource resource;
        size_t n_names;
        int status, r;

        status = parse_api_resource(options, "describe",
                                    API_RESOURCE_BIT(API_RESOURCE_PODS) |
                                            API_RESOURCE_BIT(API_RESOURCE_DAEMONSETS) |
                                            API_RESOURCE_BIT(API_RESOURCE_NODES),
                                    &resource, &names, &n_names);
        if (status != STATUS_OK)
                return status;
        if (resource == API_RESOURCE_DAEMONSETS)
                return describe_daemonsets(options, names, n_names);
        if (resource == API_RESOURCE_NODES)
                return describe_nodes(options, names, n_names);
        r = pod_filter_init(&filter, options, names, n_names, &error);
        if (r < 0)
                return fail_usage("%s", error_message(&error, r));
        return describe_pods(options, &filter);
}
