/* SPDX-License-Identifier: Apache-2.0 */
/* `mainstay get daemonsets`. */

#include "agent/cli/daemonset-requests.h"
#include "agent/cli/get-output.h"
#include "agent/cli/pod-selection.h"
#include "agent/cli/words.h"
#include "agent/model/json.h"
#include "agent/model/own-keys.h"
#include "agent/model/status-condition.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/json-text.h"

/* get daemonsets: kubectl's columns; once, or as a watch. */

static const char *source_of_daemonset(const json_t *set) {
        return own_json_value(set, OWN_KEY_SOURCE);
}

static const GetKind daemonset_kind = { .word = "daemonset.apps",
                                        .table = &daemonset_table_kind,
                                        .extra_heading = "source",
                                        .extra_cell = source_of_daemonset };

/* The warning is needed because kubectl's columns show only that a set has no pod. */
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

static int get_daemonsets_once(GetOutput *output) {
        const GetRequest *request = output->request;
        bool is_table = format_is_table(request->format);
        cleanup_error Error error = ERROR_NULL;
        cleanup_json json_t *sets = NULL;
        int r = daemonsets_fetch(request->options, request->namespace, request->names,
                                 request->n_names, &sets, &error);

        if (r < 0)
                return fail_with_error(r, &error);
        r = get_output_list(output, sets);
        if (r < 0)
                return fail_with_error(r, &error);
        if (json_array_size(sets) == 0 && is_table && !request->options->watch)
                report_nothing_found(request->namespace);
        if (is_table)
                warn_refused_daemonsets(sets);
        if (is_table)
                print_manifest_errors(request->options->socket);
        return STATUS_OK;
}

static int on_listed_daemonset_event(const char *type, json_t *set, void *userdata) {
        return get_output_event(userdata, type, set);
}

static int get_daemonsets_watch(GetOutput *output) {
        const GetRequest *request = output->request;
        cleanup_error Error error = ERROR_NULL;
        int status = format_is_table(request->format) ? get_daemonsets_once(output) : STATUS_OK, r;

        if (status != STATUS_OK)
                return status;
        r = daemonsets_watch(request->options, request->namespace, request->names, request->n_names,
                             on_listed_daemonset_event, output, &error);
        return fail_with_error(r, &error);
}

int get_daemonsets(const GetRequest *request) {
        cleanup_with(get_output_done) GetOutput output = { .request = request,
                                                           .kind = &daemonset_kind,
                                                           .columns = COLUMNS_TABLE };

        return request->options->watch ? get_daemonsets_watch(&output)
                                       : get_daemonsets_once(&output);
}
