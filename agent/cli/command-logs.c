/* SPDX-License-Identifier: Apache-2.0 */
/* `mainstay logs`: prints and follows the log of a container. */

#include "agent/cli/target.h"

#include "agent/cli/agent-client.h"
#include "agent/cli/words.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/json-text.h"
#include "common/text.h"
#include "common/url-escape.h"

typedef struct LogQuery {
        char *text; /* "?follow=true&…", or "" */
        size_t length;
} LogQuery;

static void log_query_done(LogQuery *query) {
        free(query->text);
}

/* Appends "name=value", unless value is NULL. */
static int log_query_add(LogQuery *query, const char *name, const char *value) {
        cleanup_free char *escaped = NULL;

        if (!value)
                return 0;
        escaped = url_escape(value);
        if (!escaped)
                return -ENOMEM;
        return text_appendf(&query->text, "%c%s=%s", query->text ? '&' : '?', name, escaped);
}

/* The agent takes whole seconds; the duration is rounded up. */
static int log_query_add_since(LogQuery *query, const char *since, Error *reterr) {
        char seconds[32];
        uint64_t usec;

        if (!since)
                return 0;
        if (parse_duration(since, &usec) < 0 || usec == 0)
                return error_setf(reterr, EINVAL,
                                  "--since must be a duration such as 5s, 2m or 1h30m, not '%s'",
                                  since);
        (void) snprintf(seconds, sizeof(seconds), "%llu",
                        (unsigned long long) ((usec + USEC_PER_SEC - 1) / USEC_PER_SEC));
        return log_query_add(query, "sinceSeconds", seconds);
}

static int make_log_query(const Options *options, LogQuery *query, Error *reterr) {
        const char *tail = options->tail && !streq(options->tail, "-1") ? options->tail : NULL;
        int r;

        r = log_query_add(query, "follow", options->follow ? "true" : NULL);
        if (r < 0)
                return r;
        r = log_query_add(query, "previous", options->previous ? "true" : NULL);
        if (r < 0)
                return r;
        r = log_query_add(query, "timestamps", options->timestamps ? "true" : NULL);
        if (r < 0)
                return r;
        r = log_query_add(query, "tailLines", tail);
        if (r < 0)
                return r;
        r = log_query_add(query, "sinceTime", options->since_time);
        if (r < 0)
                return r;
        r = log_query_add(query, "limitBytes", options->limit_bytes);
        if (r < 0)
                return r;
        return log_query_add_since(query, options->since, reterr);
}

static int on_log_data(const char *data, size_t length, void *userdata) {
        return write_all(STDOUT_FILENO, data, length);
}

static int print_log(const Options *options, const json_t *pod, const char *container,
                     const LogQuery *query, Error *reterr) {
        cleanup_free char *path = NULL, *escaped = url_escape(container);

        path = escaped ? text_format("/containerLogs/%s/%s/%s%s",
                                     strna(json_text(pod, "metadata", "namespace")),
                                     strna(json_text(pod, "metadata", "name")), escaped,
                                     strna(query->text))
                       : NULL;
        if (!path)
                return -ENOMEM;
        return client_stream(options->socket, path, on_log_data, NULL, reterr);
}

static int print_all_logs(const Options *options, const json_t *pod, const LogQuery *query,
                          Error *reterr) {
        const json_t *lists[] = { json_at(pod, "spec", "initContainers"),
                                  json_at(pod, "spec", "containers"),
                                  json_at(pod, "spec", "ephemeralContainers") };
        int r = 0;

        for (size_t l = 0; l < N_ELEMENTS(lists); l++)
                for (size_t i = 0; i < json_array_size(lists[l]) && r >= 0; i++)
                        r = print_log(options, pod, container_name(lists[l], i), query, reterr);
        return r;
}

static int check_logs_arguments(const Options *options) {
        if (options->n_words == 0)
                return fail_usage("a pod is required: 'mainstay logs POD'");
        if (options->n_words > 2 || (options->n_words == 2 && options->container))
                return fail_usage("unexpected argument '%s': 'mainstay logs POD [CONTAINER]'",
                                  options->words[options->n_words - 1]);
        if (options->all_containers &&
            (options->follow || options->n_words == 2 || options->container))
                return fail_usage(
                        "--all-containers cannot be combined with --follow or with the name "
                        "of a container");
        return STATUS_OK;
}

int run_logs(const Options *options) {
        cleanup_error Error error = ERROR_NULL;
        cleanup_with(log_query_done) LogQuery query = { 0 };
        cleanup_json json_t *pod = NULL;
        int status, r;

        status = check_logs_arguments(options);
        if (status != STATUS_OK)
                return status;
        r = make_log_query(options, &query, &error);
        if (r < 0)
                return fail_usage("%s", error_message(&error, r));
        r = find_pod(options, options->words[0], &pod, &error);
        if (r < 0)
                return fail_with_error(r, &error);
        if (options->all_containers)
                r = print_all_logs(options, pod, &query, &error);
        else
                r = print_log(options, pod,
                              choose_container(pod, options->container ? options->container
                                                                       : options->words[1]),
                              &query, &error);
        return r < 0 ? fail_with_error(r, &error) : STATUS_OK;
}
