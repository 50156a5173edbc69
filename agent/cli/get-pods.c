/* SPDX-License-Identifier: Apache-2.0 */
/* `mainstay get pods`. */

#include "agent/cli/command-get.h"

#include "agent/cli/agent-client.h"
#include "agent/cli/pod-selection.h"
#include "agent/cli/watch.h"
#include "agent/model/pod-summary.h"
#include "common/cleanup.h"
#include "common/clock.h"

/* get pods: a table, or the objects; once, or as a watch. */

typedef struct GetPods {
        const GetRequest *request;
        PodFilter filter;
        Columns columns;
        bool has_headings; /* already printed */
        json_t *listed;    /* objects that a watch does not repeat; NULL: none was printed */
} GetPods;

static void write_pod_row(const json_t *pod, FILE *out, void *userdata) {
        const GetPods *get = userdata;
        PodSummary row;

        pod_summarize(pod, now_realtime_usec(), &row);
        if (get->request->options->all_namespaces)
                fprintf(out, "%s\t", row.namespace);
        fprintf(out, "%s\t%s\t%s\t%s\t%s", row.name, row.ready, row.status, row.restarts, row.age);
        if (get->request->format == FORMAT_WIDE)
                fprintf(out, "\t%s\t%s\t%s\t%s\t%s", row.ip, row.node, row.nominated_node,
                        row.readiness_gates, row.source);
        end_row(get->request, pod, out);
}

static int print_pods_table(GetPods *get, const json_t *pods) {
        const GetRequest *request = get->request;
        char headings[128] = "";

        if (!get->has_headings && !request->options->no_headers)
                (void) snprintf(headings, sizeof(headings),
                                "%sNAME\tREADY\tSTATUS\tRESTARTS\t"
                                "AGE%s%s",
                                request->options->all_namespaces ? "NAMESPACE\t" : "",
                                request->format == FORMAT_WIDE
                                        ? "\tIP\tNODE\tNOMINATED NODE\tREADINESS GATES\tSOURCE"
                                        : "",
                                end_of_headings(request));
        get->has_headings = true;
        return print_rows(&get->columns, headings, pods, write_pod_row, get);
}

static int print_pods_in_format(GetPods *get, json_t *pods) {
        switch (get->request->format) {
        case FORMAT_JSON:
        case FORMAT_YAML:
                return print_list(get->request->format, get->filter.n_names == 1, pods);
        case FORMAT_NAME:
                return print_object_names("pod", pods);
        default:
                return json_array_size(pods) > 0 ? print_pods_table(get, pods) : 0;
        }
}

static bool is_pods_table(const GetPods *get) {
        return format_is_table(get->request->format);
}

/* Reports a name that was not found; where it exists in a different namespace, that is mentioned.
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
        r = print_pods_in_format(get, pods);
        if (r < 0)
                return fail_with_error(r, &error);

        missing = pods_missing_name(&get->filter, pods);
        if (missing)
                status = fail_missing_pod(get, missing);
        else if (json_array_size(pods) == 0 && is_pods_table(get) && !get->request->options->watch)
                report_nothing_found(get->filter.namespace);
        if (is_pods_table(get))
                print_manifest_errors(get->request->options->socket);
        get->listed = json_incref(pods);
        return status;
}

/* The watch starts with all pods; those that the table shows already are not repeated. */
static bool was_pod_listed(const GetPods *get, const json_t *pod) {
        size_t i;
        json_t *listed;

        json_array_foreach(get->listed, i, listed)
                if (json_equal(listed, pod))
                        return true;
        return false;
}

static int print_pod_watch_event(GetPods *get, const char *type, json_t *pod) {
        cleanup_json json_t *one = NULL;

        if (streq(type, "ADDED") && was_pod_listed(get, pod))
                return 0;
        if (get->request->format == FORMAT_JSON || get->request->format == FORMAT_YAML)
                return print_object(get->request->format, get->request->options->watch, pod);
        one = json_pack("[O]", pod);
        if (!one)
                return -ENOMEM;
        return get->request->format == FORMAT_NAME ? print_object_names("pod", one)
                                                   : print_pods_table(get, one);
}

static int on_listed_pod_event(const char *type, json_t *pod, void *userdata) {
        GetPods *get = userdata;

        if (!pod_filter_matches(&get->filter, pod))
                return 0;
        (void) json_object_set_new(pod, "apiVersion", json_string("v1"));
        (void) json_object_set_new(pod, "kind", json_string("Pod"));
        return print_pod_watch_event(get, type, pod);
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
        json_decref(get->listed);
}

int get_pods(const GetRequest *request) {
        cleanup_with(get_pods_done) GetPods get = { .request = request, .columns = COLUMNS_TABLE };
        cleanup_error Error error = ERROR_NULL;
        int r = pod_filter_init(&get.filter, request->options, request->names, request->n_names,
                                &error);

        if (r < 0)
                return fail_usage("%s", error_message(&error, r));
        return request->options->watch ? get_pods_watch(&get) : get_pods_once(&get);
}
