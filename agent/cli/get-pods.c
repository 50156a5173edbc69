/* SPDX-License-Identifier: Apache-2.0 */
/* `mainstay get pods`. */

#include "agent/cli/agent-client.h"
#include "agent/cli/get-output.h"
#include "agent/cli/pod-selection.h"
#include "agent/cli/watch.h"
#include "agent/model/pod-summary.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/json-text.h"

/* get pods: a table, or the objects; once, or as a watch. */

typedef struct GetPods {
        const GetRequest *request;
        PodFilter filter;
        GetOutput output;
} GetPods;

static const char *source_of_pod(const json_t *pod) {
        PodSummary row;

        pod_summarize(pod, now_realtime_usec(), &row);
        return row.source;
}

static const GetKind pod_kind = { .word = "pod",
                                  .table = &pod_table_kind,
                                  .extra_heading = "source",
                                  .extra_cell = source_of_pod };

static bool is_pods_table(const GetPods *get) {
        return format_is_table(get->request->format);
}

/* Reports a name that was not found; if it exists in a different namespace, that is mentioned.
 */
static int fail_missing_pod(const GetPods *get, const char *name) {
        cleanup_json json_t *elsewhere = NULL;
        char *const names[] = { strdup(name), NULL };
        PodFilter everywhere = { .names = names, .n_names = 1 };
        const char *where = NULL;

        if (!names[0])
                return STATUS_FAILED;
        if (get->filter.namespace &&
            pods_fetch(get->request->options->socket, &everywhere, &elsewhere, NULL) >= 0)
                where = json_text(json_array_get(elsewhere, 0), "metadata", "namespace");
        fflush(stdout);
        if (where)
                fprintf(stderr, "error: pods \"%s\" not found in namespace %s, but in %s\n", name,
                        get->filter.namespace, where);
        else
                fprintf(stderr, "error: pods \"%s\" not found\n", name);
        free(names[0]);
        return STATUS_FAILED;
}

static int get_pods_once(GetPods *get) {
        cleanup_error Error error = ERROR_NULL;
        cleanup_json json_t *pods = NULL;
        const char *missing;
        int status = STATUS_OK, r;

        r = pods_fetch(get->request->options->socket, &get->filter, &pods, &error);
        if (r < 0)
                return fail_with_error(r, &error);
        r = get_output_list(&get->output, pods);
        if (r < 0)
                return fail_with_error(r, &error);

        missing = pods_missing_name(&get->filter, pods);
        if (missing)
                status = fail_missing_pod(get, missing);
        else if (json_array_size(pods) == 0 && is_pods_table(get) && !get->request->options->watch)
                report_nothing_found(get->filter.namespace);
        if (is_pods_table(get))
                print_manifest_errors(get->request->options->socket);
        return status;
}

static int on_listed_pod_event(const char *type, json_t *pod, void *userdata) {
        GetPods *get = userdata;

        if (!pod_filter_matches(&get->filter, pod))
                return 0;
        (void) json_object_set_new(pod, "apiVersion", json_string("v1"));
        (void) json_object_set_new(pod, "kind", json_string("Pod"));
        return get_output_event(&get->output, type, pod);
}

static int get_pods_watch(GetPods *get) {
        cleanup_error Error error = ERROR_NULL;
        int status = is_pods_table(get) ? get_pods_once(get) : STATUS_OK, r;

        if (status != STATUS_OK)
                return status;
        r = watch_objects(get->request->options->socket, "/pods?watch=1", on_listed_pod_event, get,
                          &error);
        return fail_with_error(r, &error);
}

static void get_pods_done(GetPods *get) {
        pod_filter_done(&get->filter);
        get_output_done(&get->output);
}

int get_pods(const GetRequest *request) {
        cleanup_with(get_pods_done) GetPods get = {
                .request = request,
                .output = { .request = request, .kind = &pod_kind, .columns = COLUMNS_TABLE },
        };
        cleanup_error Error error = ERROR_NULL;
        int r = pod_filter_init(&get.filter, request->options, request->names, request->n_names,
                                &error);

        if (r < 0)
                return fail_usage("%s", error_message(&error, r));
        return request->options->watch ? get_pods_watch(&get) : get_pods_once(&get);
}
