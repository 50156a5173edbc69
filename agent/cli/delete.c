/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cli/pods.h"

#include "agent/cli/client.h"
#include "agent/cli/daemonsets.h"
#include "agent/cli/output.h"
#include "agent/cli/resources.h"
#include "agent/cli/watch.h"
#include "agent/cli/words.h"
#include "common/cleanup.h"

#include <stdio.h>

/* delete pod: the pod ends at once and, as its manifest is there, begins anew. */

typedef struct Delete {
        const Options *options;
        const char *grace; /* seconds, or NULL: the pod's own */
        json_t *pods;      /* that are meant */
        size_t n_asked, n_gone;
        Error *reterr;
} Delete;

static int ignore(const char *data, size_t length, void *userdata) {
        return 0;
}

static int delete_one(const Delete *delete, const json_t *pod, Error *reterr) {
        const char *namespace = strna(json_text(pod, "metadata", "namespace"));
        const char *name = strna(json_text(pod, "metadata", "name"));
        cleanup_free char *path = NULL;
        int r;

        if (asprintf(&path, "/api/v1/namespaces/%s/pods/%s%s%s", namespace, name,
                     delete->grace ? "?gracePeriodSeconds=" : "", strna(delete->grace)) < 0) {
                path = NULL;
                return -ENOMEM;
        }
        r = client_request(delete->options->socket, "DELETE", path, ignore, NULL, reterr);
        if (r < 0)
                return r;
        printf("pod \"%s\" deleted from %s namespace\n", name, namespace);
        fflush(stdout);
        return 0;
}

static bool is_meant(const Delete *delete, const json_t *pod) {
        size_t i;
        json_t *meant;

        json_array_foreach(delete->pods, i, meant)
                if (streq_ptr(json_text(meant, "metadata", "uid"),
                              json_text(pod, "metadata", "uid")))
                        return true;
        return false;
}

/* Each is deleted when the watch has told of it, so that its end cannot be missed. */
static int on_pod(const char *type, json_t *pod, void *userdata) {
        Delete *delete = userdata;
        size_t n = json_array_size(delete->pods);

        if (!is_meant(delete, pod))
                return 0;
        if (streq(type, "ADDED") && delete->n_asked < n) {
                int r = delete_one(delete, pod, delete->reterr);

                if (r < 0)
                        return r;
                delete->n_asked++;
        }
        delete->n_gone += streq(type, "DELETED");
        return delete->n_gone == n;
}

static int delete_each(const Delete *delete, Error *reterr) {
        size_t i;
        json_t *pod;
        int r = 0;

        json_array_foreach(delete->pods, i, pod) {
                r = delete_one(delete, pod, reterr);
                if (r < 0)
                        break;
        }
        return r;
}

static int delete_all(Delete *delete, Error *reterr) {
        int r;

        if (!delete->options->wait || json_array_size(delete->pods) == 0)
                return delete_each(delete, reterr);
        delete->reterr = reterr;
        r = watch_objects(delete->options->socket, "/pods?watch=1", on_pod, delete, reterr);
        delete->reterr = NULL;
        return r;
}

/* STATUS_OK with the seconds to ask for, or NULL. */
static int choose_grace(const Options *options, const char **ret) {
        const char *grace = options->grace_period;

        if (options->now && grace)
                return fail_usage("--now and --grace-period say the same thing");
        if (grace && (!*grace || strspn(grace, "0123456789") != strlen(grace) || strlen(grace) > 9))
                return fail_usage("--grace-period must be a number of seconds, not '%s'", grace);
        *ret = options->now ? "1" : grace;
        return STATUS_OK;
}

static int delete_matching(Delete *delete, const PodFilter *filter) {
        cleanup_error Error error = ERROR_NULL;
        cleanup_json json_t *pods = NULL;
        int r;

        r = pods_fetch(delete->options->socket, filter, &pods, &error);
        delete->pods = pods;
        if (r >= 0)
                r = delete_all(delete, &error);
        if (r < 0)
                return fail(r, &error);
        return pods_say_missing(filter, pods);
}

int run_delete(const Options *options) {
        Delete delete = { .options = options };
        cleanup_error Error error = ERROR_NULL;
        cleanup_with(pod_filter_done) PodFilter filter = { 0 };
        char *const *names;
        Resource resource;
        size_t n_names;
        int status, r;

        status = parse_resource(options, "delete",
                                RESOURCE_BIT(RESOURCE_PODS) | RESOURCE_BIT(RESOURCE_DAEMONSETS),
                                &resource, &names, &n_names);
        if (status == STATUS_OK && resource == RESOURCE_DAEMONSETS)
                return delete_daemonsets(options, names, n_names);
        if (status == STATUS_OK)
                status = choose_grace(options, &delete.grace);
        if (status != STATUS_OK)
                return status;
        if (n_names == 0 && !options->selector && !options->all)
                return fail_usage("say which: 'mainstay delete pod NAME', or -l, or --all");
        r = pod_filter_init(&filter, options, names, n_names, &error);
        if (r < 0)
                return fail_usage("%s", error_message(&error, r));
        return delete_matching(&delete, &filter);
}
