/* SPDX-License-Identifier: Apache-2.0 */
/* `mainstay get events`. */

#include "agent/cli/agent-client.h"
#include "agent/cli/get-output.h"
#include "agent/cli/watch.h"
#include "common/cleanup.h"
#include "common/json-text.h"

/* get events: a table with the latest last, or the objects. */

static const GetKind event_kind = { .word = "event", .table = &event_table_kind };

static bool is_requested_event(const GetRequest *request, const json_t *event) {
        return (!request->namespace ||
                streq_ptr(json_text(event, "metadata", "namespace"), request->namespace)) &&
               object_is_named(event, request->names, request->n_names);
}

static int on_listed_event(const char *type, json_t *event, void *userdata) {
        GetOutput *output = userdata;

        return is_requested_event(output->request, event) ? get_output_event(output, type, event)
                                                          : 0;
}

static int fetch_events(const GetRequest *request, json_t **ret, Error *reterr) {
        cleanup_json json_t *list = NULL, *wanted = json_array();
        size_t i;
        json_t *event;
        int r = client_get_json(request->options->socket, "/events", &list, reterr);

        if (r < 0)
                return r;
        json_array_foreach(json_object_get(list, "items"), i, event)
                if (is_requested_event(request, event))
                        (void) json_array_append(wanted, event);
        *ret = json_incref(wanted);
        return 0;
}

static int check_event_names(const GetRequest *request, const json_t *events, Error *reterr) {
        const char *missing = find_missing_object_name(events, request->names, request->n_names);

        return missing ? error_setf(reterr, ENOENT, "events \"%s\" not found", missing) : 0;
}

int get_events(const GetRequest *request) {
        cleanup_with(get_output_done) GetOutput output = { .request = request,
                                                           .kind = &event_kind,
                                                           .columns = COLUMNS_TABLE };
        cleanup_error Error error = ERROR_NULL;
        cleanup_json json_t *events = NULL;
        int r;

        if (request->options->watch)
                return fail_with_error(watch_objects(request->options->socket, "/events?watch=1",
                                                     on_listed_event, &output, &error),
                                       &error);
        r = fetch_events(request, &events, &error);
        if (r < 0)
                return fail_with_error(r, &error);
        r = get_output_list(&output, events);
        if (r < 0)
                return fail_with_error(r, &error);
        r = check_event_names(request, events, &error);
        if (r < 0)
                return fail_with_error(r, &error);
        if (json_array_size(events) == 0 && format_is_table(request->format))
                report_nothing_found(request->namespace);
        return STATUS_OK;
}
