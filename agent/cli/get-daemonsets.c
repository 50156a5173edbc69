/* SPDX-License-Identifier: Apache-2.0 */
/* `mainstay get daemonsets`. */

#include "agent/cli/command-get.h"

#include "agent/cli/agent-client.h"
#include "agent/cli/daemonset-requests.h"
#include "agent/cli/pod-selection.h"
#include "agent/cli/words.h"
#include "agent/model/json.h"
#include "agent/model/own-keys.h"
#include "common/cleanup.h"
#include "common/clock.h"

/* get daemonsets: kubectl's columns; once, or as a watch. */

typedef struct GetDaemonSets {
        const GetRequest *request;
        Columns columns;
        bool has_headings; /* already printed */
        json_t *listed;    /* objects that a watch does not repeat; NULL: none was printed */
} GetDaemonSets;

static void write_template_containers(const json_t *set, const char *key, FILE *out) {
        size_t i;
        json_t *container;

        fputc('\t', out);
        json_array_foreach(json_at(set, "spec", "template", "spec", "containers"), i, container)
                fprintf(out, "%s%s", i > 0 ? "," : "", strna(json_text(container, key)));
}

static void write_daemonset_row(const json_t *set, FILE *out, void *userdata) {
        const GetRequest *request = ((const GetDaemonSets *) userdata)->request;
        cleanup_free char *node_selector =
                format_pairs(json_at(set, "spec", "template", "spec", "nodeSelector"));
        cleanup_free char *selector = format_label_selector(json_at(set, "spec", "selector"));
        char age[DURATION_SIZE];

        if (request->options->all_namespaces)
                fprintf(out, "%s\t", strna(json_text(set, "metadata", "namespace")));
        fprintf(out, "%s\t%lld\t%lld\t%lld\t%lld\t%lld\t%s\t%s",
                strna(json_text(set, "metadata", "name")),
                daemonset_count(set, "desiredNumberScheduled"),
                daemonset_count(set, "currentNumberScheduled"), daemonset_count(set, "numberReady"),
                daemonset_count(set, "updatedNumberScheduled"),
                daemonset_count(set, "numberAvailable"), strna(node_selector),
                format_age(age, json_text(set, "metadata", "creationTimestamp"),
                           now_realtime_usec()));
        if (request->format == FORMAT_WIDE) {
                write_template_containers(set, "name", out);
                write_template_containers(set, "image", out);
                fprintf(out, "\t%s\t%s", strna(selector),
                        strna(own_json_value(set, OWN_KEY_SOURCE)));
        }
        end_row(request, set, out);
}

static int print_daemonsets_table(GetDaemonSets *get, const json_t *sets) {
        const Options *options = get->request->options;
        char headings[192] = "";

        if (!get->has_headings && !options->no_headers)
                (void) snprintf(headings, sizeof(headings),
                                "%sNAME\tDESIRED\tCURRENT\tREADY\tUP-TO-DATE\tAVAILABLE\tNODE "
                                "SELECTOR\t"
                                "AGE%s%s",
                                options->all_namespaces ? "NAMESPACE\t" : "",
                                get->request->format == FORMAT_WIDE
                                        ? "\tCONTAINERS\tIMAGES\tSELECTOR\tSOURCE"
                                        : "",
                                end_of_headings(get->request));
        get->has_headings = true;
        return print_rows(&get->columns, headings, sets, write_daemonset_row, get);
}

static int print_daemonsets_in_format(GetDaemonSets *get, json_t *sets) {
        const GetRequest *request = get->request;

        switch (request->format) {
        case FORMAT_JSON:
        case FORMAT_YAML:
                return print_list(request->format, request->n_names == 1, sets);
        case FORMAT_NAME:
                return print_object_names("daemonset.apps", sets);
        default:
                return json_array_size(sets) > 0 ? print_daemonsets_table(get, sets) : 0;
        }
}

/* The columns are kubectl's, which show only that a set has no pod. */
static void warn_refused_daemonsets(const json_t *sets) {
        size_t i;
        json_t *set;

        fflush(stdout);
        json_array_foreach(sets, i, set) {
                const json_t *admitted = find_status_condition(set, "Admitted");

                if (admitted && !streq_ptr(json_text(admitted, "status"), "True"))
                        print_line(stderr, "warning: daemonset %s/%s: %s",
                                   strna(json_text(set, "metadata", "namespace")),
                                   strna(json_text(set, "metadata", "name")),
                                   strna(json_text(admitted, "message")));
        }
}

static int get_daemonsets_once(GetDaemonSets *get) {
        const GetRequest *request = get->request;
        bool is_table = format_is_table(request->format);
        cleanup_error Error error = ERROR_NULL;
        cleanup_json json_t *sets = NULL;
        int r = daemonsets_fetch(request->options, request->namespace, request->names,
                                 request->n_names, &sets, &error);

        if (r < 0)
                return fail_with_error(r, &error);
        r = print_daemonsets_in_format(get, sets);
        if (r < 0)
                return fail_with_error(r, &error);
        if (json_array_size(sets) == 0 && is_table && !request->options->watch)
                report_nothing_found(request->namespace);
        if (is_table)
                warn_refused_daemonsets(sets);
        if (is_table)
                print_manifest_errors(request->options->socket);
        get->listed = json_incref(sets);
        return STATUS_OK;
}

/* The watch starts with all objects; those that the table shows already are not repeated. */
static bool was_daemonset_listed(const GetDaemonSets *get, const json_t *set) {
        size_t i;
        json_t *listed;

        json_array_foreach(get->listed, i, listed)
                if (json_equal(listed, set))
                        return true;
        return false;
}

static int on_listed_daemonset_event(const char *type, json_t *set, void *userdata) {
        GetDaemonSets *get = userdata;
        cleanup_json json_t *one = NULL;

        if (streq(type, "ADDED") && was_daemonset_listed(get, set))
                return 0;
        if (get->request->format == FORMAT_JSON || get->request->format == FORMAT_YAML)
                return print_object(get->request->format, /* is_in_stream= */ true, set);
        one = json_pack("[O]", set);
        return one ? print_daemonsets_in_format(get, one) : -ENOMEM;
}

static int get_daemonsets_watch(GetDaemonSets *get) {
        const GetRequest *request = get->request;
        cleanup_error Error error = ERROR_NULL;
        int status = format_is_table(request->format) ? get_daemonsets_once(get) : STATUS_OK, r;

        if (status != STATUS_OK)
                return status;
        r = daemonsets_watch(request->options, request->namespace, request->names, request->n_names,
                             on_listed_daemonset_event, get, &error);
        return fail_with_error(r, &error);
}

static void get_daemonsets_done(GetDaemonSets *get) {
        json_decref(get->listed);
}

int get_daemonsets(const GetRequest *request) {
        cleanup_with(get_daemonsets_done)
                GetDaemonSets get = { .request = request, .columns = COLUMNS_TABLE };

        return request->options->watch ? get_daemonsets_watch(&get) : get_daemonsets_once(&get);
}
