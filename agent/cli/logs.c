/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cli/pods.h"

#include "agent/cli/client.h"
#include "agent/cli/words.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file.h"

/* logs: what a container wrote, as the agent gives it out. */

#define DEFAULT_CONTAINER "kubectl.kubernetes.io/default-container"

typedef struct Query {
        char *text; /* "?follow=true&…", or "" */
        size_t length;
} Query;

static void query_done(Query *query) {
        free(query->text);
}

/* Adds "name=value"; a NULL value adds nothing. */
static int query_add(Query *query, const char *name, const char *value) {
        cleanup_free char *escaped = NULL;
        char *text;
        int n;

        if (!value)
                return 0;
        escaped = client_escape(value);
        if (!escaped)
                return -ENOMEM;
        n = asprintf(&text, "%s%c%s=%s", strna(query->text), query->text ? '&' : '?', name,
                     escaped);
        if (n < 0)
                return -ENOMEM;
        free(query->text);
        query->text = text;
        return 0;
}

/* The agent counts in seconds; what is asked for is not cut short. */
static int query_add_since(Query *query, const char *since, Error *reterr) {
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
        return query_add(query, "sinceSeconds", seconds);
}

static int make_query(const Options *options, Query *query, Error *reterr) {
        const char *tail = options->tail && !streq(options->tail, "-1") ? options->tail : NULL;
        int r;

        r = query_add(query, "follow", options->follow ? "true" : NULL);
        if (r >= 0)
                r = query_add(query, "previous", options->previous ? "true" : NULL);
        if (r >= 0)
                r = query_add(query, "timestamps", options->timestamps ? "true" : NULL);
        if (r >= 0)
                r = query_add(query, "tailLines", tail);
        if (r >= 0)
                r = query_add(query, "sinceTime", options->since_time);
        if (r >= 0)
                r = query_add(query, "limitBytes", options->limit_bytes);
        if (r >= 0)
                r = query_add_since(query, options->since, reterr);
        return r;
}

static int on_data(const char *data, size_t length, void *userdata) {
        return write_all(STDOUT_FILENO, data, length);
}

static int print_log(const Options *options, const json_t *pod, const char *container,
                     const Query *query, Error *reterr) {
        cleanup_free char *path = NULL, *escaped = client_escape(container);

        if (!escaped ||
            asprintf(&path, "/containerLogs/%s/%s/%s%s",
                     strna(json_text(pod, "metadata", "namespace")),
                     strna(json_text(pod, "metadata", "name")), escaped, strna(query->text)) < 0) {
                path = NULL;
                return -ENOMEM;
        }
        return client_stream(options->socket, path, on_data, NULL, reterr);
}

static const char *container_name(const json_t *containers, size_t i) {
        return strna(json_text(json_array_get(containers, i), "name"));
}

/* "main, other, first (init)" */
static void print_names(const json_t *containers, const json_t *of_init, FILE *out) {
        size_t n = json_array_size(containers);

        for (size_t i = 0; i < n; i++)
                fprintf(out, "%s%s", i > 0 ? ", " : "", container_name(containers, i));
        for (size_t i = 0; i < json_array_size(of_init); i++)
                fprintf(out, ", %s (init)", container_name(of_init, i));
        fputc('\n', out);
}

/* The one that was named, or that the pod says is the one, or the first. */
static const char *choose_container(const Options *options, const json_t *pod) {
        const char *name = json_text(pod, "metadata", "annotations", DEFAULT_CONTAINER);
        const json_t *containers = json_at(pod, "spec", "containers");
        const json_t *of_init = json_at(pod, "spec", "initContainers");

        if (options->container)
                return options->container;
        if (options->n_words > 1)
                return options->words[1];
        if (name)
                return name;
        name = container_name(containers, 0);
        if (json_array_size(containers) + json_array_size(of_init) < 2)
                return name;
        fprintf(stderr, "Defaulted container \"%s\" out of: ", name);
        print_names(containers, of_init, stderr);
        return name;
}

static int print_all(const Options *options, const json_t *pod, const Query *query, Error *reterr) {
        const json_t *lists[] = { json_at(pod, "spec", "initContainers"),
                                  json_at(pod, "spec", "containers") };
        int r = 0;

        for (size_t l = 0; l < N_ELEMENTS(lists); l++)
                for (size_t i = 0; i < json_array_size(lists[l]) && r >= 0; i++)
                        r = print_log(options, pod, container_name(lists[l], i), query, reterr);
        return r;
}

static int find_pod(const Options *options, json_t **ret, Error *reterr) {
        cleanup_json json_t *pods = NULL;
        PodFilter filter;
        int r;

        r = pod_filter_init(&filter, options, options->words, 1, reterr);
        if (r < 0)
                return r;
        r = pods_fetch(options->socket, &filter, &pods, reterr);
        pod_filter_done(&filter);
        if (r < 0)
                return r;
        if (json_array_size(pods) == 0)
                return error_setf(reterr, ENOENT, "pods \"%s\" not found", options->words[0]);
        *ret = json_incref(json_array_get(pods, 0));
        return 0;
}

static int check_words(const Options *options) {
        if (options->n_words == 0)
                return fail_usage("say which pod's log: 'mainstay logs POD'");
        if (options->n_words > 2 || (options->n_words == 2 && options->container))
                return fail_usage("'%s' is one word too many: 'mainstay logs POD [CONTAINER]'",
                                  options->words[options->n_words - 1]);
        if (options->all_containers &&
            (options->follow || options->n_words == 2 || options->container))
                return fail_usage("--all-containers goes neither with --follow nor with the name "
                                  "of a container");
        return STATUS_OK;
}

int run_logs(const Options *options) {
        cleanup_error Error error = ERROR_NULL;
        cleanup_with(query_done) Query query = { 0 };
        cleanup_json json_t *pod = NULL;
        int status, r;

        status = check_words(options);
        if (status != STATUS_OK)
                return status;
        r = make_query(options, &query, &error);
        if (r < 0)
                return fail_usage("%s", error_message(&error, r));
        r = find_pod(options, &pod, &error);
        if (r < 0)
                return fail(r, &error);
        if (options->all_containers)
                r = print_all(options, pod, &query, &error);
        else
                r = print_log(options, pod, choose_container(options, pod), &query, &error);
        return r < 0 ? fail(r, &error) : STATUS_OK;
}
