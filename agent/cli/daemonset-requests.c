/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cli/daemonset-requests.h"

#include "agent/cli/agent-client.h"
#include "agent/cli/pod-selection.h"
#include "agent/cli/resources.h"
#include "agent/cli/words.h"
#include "common/cleanup.h"
#include "common/json-text.h"
#include "common/text.h"
#include "common/url-escape.h"

#include <stdio.h>

const char *daemonsets_namespace(const Options *options) {
        if (options->all_namespaces)
                return NULL;
        return options->namespace ? options->namespace : "default";
}

/* The DaemonSets that a command line selects. */
typedef struct DaemonSetFilter {
        const char *namespace;
        char *const *names;
        size_t n_names;
        Selector selector;
        watch_object_t on_daemonset; /* for a watch: */
        void *userdata;
} DaemonSetFilter;

static void daemonset_filter_done(DaemonSetFilter *filter) {
        selector_done(&filter->selector);
}

static bool daemonset_filter_matches(const DaemonSetFilter *filter, const json_t *set) {
        return (!filter->namespace ||
                streq_ptr(json_text(set, "metadata", "namespace"), filter->namespace)) &&
               object_is_named(set, filter->names, filter->n_names) &&
               selector_matches(&filter->selector, json_at(set, "metadata", "labels"));
}

int daemonsets_fetch(const Options *options, const char *namespace, char *const *names,
                     size_t n_names, json_t **ret, Error *reterr) {
        cleanup_with(daemonset_filter_done) DaemonSetFilter filter = { .namespace = namespace,
                                                                       .names = names,
                                                                       .n_names = n_names };
        cleanup_json json_t *list = NULL, *matching = json_array();
        const char *missing;
        size_t i;
        json_t *set;
        int r = selector_parse(options->selector, &filter.selector, reterr);

        if (r < 0)
                return r;
        r = client_get_json(options->socket, "/daemonsets", &list, reterr);
        if (r < 0)
                return r;
        json_array_foreach(json_object_get(list, "items"), i, set)
                if (daemonset_filter_matches(&filter, set))
                        (void) json_array_append(matching, set);
        missing = find_missing_object_name(matching, names, n_names);
        if (missing)
                return error_setf(reterr, ENOENT, "daemonsets.apps \"%s\" not found", missing);
        *ret = json_incref(matching);
        return 0;
}

static int on_filtered_daemonset(const char *type, json_t *set, void *userdata) {
        const DaemonSetFilter *filter = userdata;

        return daemonset_filter_matches(filter, set)
                       ? filter->on_daemonset(type, set, filter->userdata)
                       : 0;
}

int daemonsets_watch(const Options *options, const char *namespace, char *const *names,
                     size_t n_names, watch_object_t each, void *userdata, Error *reterr) {
        cleanup_with(daemonset_filter_done) DaemonSetFilter filter = { .namespace = namespace,
                                                                       .names = names,
                                                                       .n_names = n_names,
                                                                       .on_daemonset = each,
                                                                       .userdata = userdata };
        int r = selector_parse(options->selector, &filter.selector, reterr);

        if (r < 0)
                return r;
        return watch_objects(options->socket, "/daemonsets?watch=1", on_filtered_daemonset, &filter,
                             reterr);
}

long long daemonset_count(const json_t *set, const char *key) {
        return json_integer_value(json_at(set, "status", key));
}

static int parse_order_response(const char *data, size_t length, void *userdata) {
        *(bool *) userdata = length > 0 && data[0] == 'u'; /* "unchanged" */
        return 0;
}

int request_daemonset_action(const Options *options, const char *namespace, const char *name,
                             const char *verb, const char *revision, Error *reterr) {
        cleanup_free char *path = NULL, *space = url_escape(namespace), *escaped = url_escape(name);
        bool is_unchanged = false;
        int r;

        path = space && escaped ? text_format("/daemonsets/%s/%s/%s%s%s", space, escaped, verb,
                                              revision ? "?revision=" : "", strna(revision))
                                : NULL;
        if (!path)
                return -ENOMEM;
        r = client_request(options->socket, "POST", path, parse_order_response, &is_unchanged,
                           reterr);
        return r < 0 ? r : is_unchanged;
}

/* The value of --cascade, also in the syntax before Kubernetes 1.20; NULL: unknown. */
static const char *choose_delete_verb(const Options *options) {
        const char *cascade = options->cascade ? options->cascade : "background";

        if (streq(cascade, "orphan") || streq(cascade, "false"))
                return "orphan";
        if (streq(cascade, "background") || streq(cascade, "foreground") || streq(cascade, "true"))
                return "delete";
        return NULL;
}

int delete_daemonsets(const Options *options, char *const *names, size_t n_names) {
        const char *namespace = options->namespace ? options->namespace : "default";
        const char *verb = choose_delete_verb(options);

        if (!verb)
                return fail_usage("--cascade must be background, foreground or orphan, not '%s'",
                                  options->cascade);
        if (n_names == 0)
                return fail_usage("a name is required: 'mainstay delete daemonset NAME'");
        for (size_t i = 0; i < n_names; i++) {
                cleanup_error Error error = ERROR_NULL;
                const char *name = strip_resource_prefix(names[i]);
                int r = request_daemonset_action(options, namespace, name, verb, NULL, &error);

                if (r < 0)
                        return fail_with_error(r, &error);
                printf("daemonset.apps \"%s\" deleted from %s namespace\n", name, namespace);
        }
        return STATUS_OK;
}
