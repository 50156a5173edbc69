/* SPDX-License-Identifier: Apache-2.0 */
/* `mainstay rollout`: history, status, undo and restart of a DaemonSet; status of a pod. */

#include "agent/cli/agent-client.h"
#include "agent/cli/cli.h"
#include "agent/cli/columns.h"
#include "agent/cli/daemonset-requests.h"
#include "agent/cli/describe-template.h"
#include "agent/cli/pod-selection.h"
#include "agent/cli/resources.h"
#include "agent/cli/watch.h"
#include "agent/cli/words.h"
#include "agent/model/json.h"
#include "agent/model/own-keys.h"
#include "agent/model/status-condition.h"
#include "common/cleanup.h"
#include "common/error.h"
#include "common/json-text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

/* `mainstay rollout status pod/NAME`: shows whether the revision of a pod in its manifest is ready,
 * or was rolled back. */

typedef struct PodRolloutWait {
        const char *namespace;
        const char *name;
        bool is_announced;
        Error *reterr;
} PodRolloutWait;

static int on_rollout_pod(const char *type, json_t *pod, void *userdata) {
        PodRolloutWait *wait = userdata;
        const char *reason = own_pod_json_value(pod, OWN_KEY_ROLLED_BACK);

        if (streq(type, "DELETED") || !pod_is_called(pod, wait->name) ||
            !streq_ptr(json_text(pod, "metadata", "namespace"), wait->namespace))
                return 0;
        if (reason)
                return error_setf(wait->reterr, ETIME,
                                  "pod \"%s\" exceeded its progress deadline: %s", wait->name,
                                  reason);
        if (pod_json_is_ready_or_done(pod)) {
                print_line(stdout, "pod \"%s\" successfully rolled out", wait->name);
                return 1;
        }
        if (!wait->is_announced)
                print_line(stdout, "Waiting for pod \"%s\" to be ready...", wait->name);
        wait->is_announced = true;
        fflush(stdout);
        return 0;
}

/* Waits until the pod is ready. 0; -ETIME if it was rolled back, -ENOENT, or another -errno, with a
 * message. */
static int show_pod_rollout_status(const Options *options, const char *namespace, const char *name,
                                   Error *reterr) {
        PodRolloutWait wait = { .namespace = namespace, .name = name, .reterr = reterr };
        char *const names[] = { strdupa(name) };
        cleanup_json json_t *pods = NULL;
        int r = pods_fetch(options->socket,
                           &(PodFilter){ .namespace = namespace, .names = names, .n_names = 1 },
                           &pods, reterr);

        if (r < 0)
                return r;
        if (json_array_size(pods) == 0)
                return error_setf(reterr, ENOENT, "pods \"%s\" not found", name);
        return watch_objects(options->socket, "/pods?watch=1", on_rollout_pod, &wait, reterr);
}

/* mainstay rollout: history, status, undo and restart of a DaemonSet, with kubectl's wording. */

/* The parsed arguments. */
typedef struct RolloutTarget {
        const Options *options;
        const char *namespace;
        const char *name;
} RolloutTarget;

static bool is_number(const char *text) {
        return *text && strspn(text, "0123456789") == strlen(text) && strlen(text) < 18;
}

/* ---- history ---- */

static bool is_revision_of(const RolloutTarget *target, const json_t *revision) {
        return streq_ptr(json_text(revision, "metadata", "namespace"), target->namespace) &&
               is_owned_by_daemonset(revision, target->name);
}

static int print_revision(const RolloutTarget *target, const json_t *revision) {
        char *text = NULL;
        size_t length;
        FILE *out = open_memstream(&text, &length);

        if (!out)
                return -ENOMEM;
        fprintf(out, "daemonset.apps/%s with revision #%s\n", target->name,
                target->options->revision);
        describe_template(json_at(revision, "data", "spec", "template"), out);
        return columns_print_description(out, &text);
}

static int print_requested_revision(const RolloutTarget *target, const json_t *revisions,
                                    Error *reterr) {
        size_t i;
        json_t *revision;

        json_array_foreach(revisions, i, revision)
                if (is_revision_of(target, revision) &&
                    json_integer_value(json_object_get(revision, "revision")) ==
                            strtoll(target->options->revision, NULL, 10))
                        return print_revision(target, revision);
        return error_setf(reterr, ENOENT, "unable to find the specified revision");
}

static int print_revision_table(const RolloutTarget *target, const json_t *revisions) {
        Columns columns = { .min_width = 0, .padding = 2 };
        cleanup_free char *text = NULL;
        size_t length, i;
        json_t *revision;
        FILE *out = open_memstream(&text, &length);

        if (!out)
                return -ENOMEM;
        fputs("REVISION\tCHANGE-CAUSE\n", out);
        json_array_foreach(revisions, i, revision) {
                const char *cause = json_text(revision, "metadata", "annotations",
                                              "kubernetes.io/change-cause");

                if (is_revision_of(target, revision))
                        fprintf(out, "%lld\t%s\n",
                                (long long) json_integer_value(
                                        json_object_get(revision, "revision")),
                                cause ? cause : "<none>");
        }
        if (fclose(out) != 0)
                return -ENOMEM;
        printf("daemonset.apps/%s \n", target->name);
        return columns_write(&columns, text, stdout);
}

static int show_rollout_history(const RolloutTarget *target, Error *reterr) {
        cleanup_json json_t *list = NULL;
        const json_t *revisions;
        int r = client_get_json(target->options->socket, "/revisions", &list, reterr);

        if (r < 0)
                return r;
        revisions = json_object_get(list, "items");
        return target->options->revision ? print_requested_revision(target, revisions, reterr)
                                         : print_revision_table(target, revisions);
}

/* ---- status ---- */

typedef struct RolloutProgress {
        const RolloutTarget *target;
        char last[256]; /* the last line, which is not repeated */
        Error *reterr;
} RolloutProgress;

static void print_progress_line(RolloutProgress *progress, const char *format, ...)
        printf_like(2, 3);

static void print_progress_line(RolloutProgress *progress, const char *format, ...) {
        char line[sizeof(progress->last)];
        va_list ap;

        va_start(ap, format);
        (void) vsnprintf(line, sizeof(line), format, ap);
        va_end(ap);
        if (streq(line, progress->last))
                return;
        print_line(stdout, "%s", line);
        fflush(stdout);
        memcpy(progress->last, line, sizeof(line));
}

/* 1 if it is complete. */
static int report_rollout_progress(RolloutProgress *progress, const json_t *set) {
        const char *name = progress->target->name;
        const json_t *condition = find_status_condition(set, "Progressing");
        long long desired = daemonset_count(set, "desiredNumberScheduled");
        long long updated = daemonset_count(set, "updatedNumberScheduled");
        long long available = daemonset_count(set, "numberAvailable");

        if (condition && streq_ptr(json_text(condition, "reason"), "ProgressDeadlineExceeded"))
                return error_setf(progress->reterr, ETIME,
                                  "daemon set \"%s\" exceeded its progress deadline: %s", name,
                                  strna(json_text(condition, "message")));
        if (updated < desired)
                print_progress_line(progress,
                                    "Waiting for daemon set \"%s\" rollout to finish: %lld out of "
                                    "%lld new pods "
                                    "have been updated...",
                                    name, updated, desired);
        else if (available < desired)
                print_progress_line(progress,
                                    "Waiting for daemon set \"%s\" rollout to finish: %lld of %lld "
                                    "updated pods "
                                    "are available...",
                                    name, available, desired);
        else
                print_progress_line(progress, "daemon set \"%s\" successfully rolled out", name);
        return updated >= desired && available >= desired;
}

static int on_rollout_status_event(const char *type, json_t *set, void *userdata) {
        RolloutProgress *progress = userdata;

        if (streq(type, "DELETED"))
                return error_setf(progress->reterr, ENOENT, "object has been deleted");
        if (!streq_ptr(json_text(set, "spec", "updateStrategy", "type"), "RollingUpdate"))
                return error_setf(progress->reterr, EINVAL,
                                  "rollout status is only available for RollingUpdate strategy "
                                  "type");
        return report_rollout_progress(progress, set);
}

static int show_rollout_status(const RolloutTarget *target, Error *reterr) {
        RolloutProgress progress = { .target = target, .reterr = reterr };
        char *const names[] = { strdupa(target->name) };
        cleanup_json json_t *sets = NULL;
        int r = daemonsets_fetch(target->options, target->namespace, names, 1, &sets, reterr);

        return r < 0 ? r
                     : daemonsets_watch(target->options, target->namespace, names, 1,
                                        on_rollout_status_event, &progress, reterr);
}

/* ---- undo, restart ---- */

static int undo_rollout(const RolloutTarget *target, Error *reterr) {
        const char *revision = target->options->to_revision;
        int r = request_daemonset_action(target->options, target->namespace, target->name, "undo",
                                         revision, reterr);

        if (r > 0)
                printf("daemonset.apps/%s skipped rollback (current template already matches "
                       "revision %s)\n",
                       target->name, revision ? revision : "0");
        else if (r == 0)
                printf("daemonset.apps/%s rolled back\n", target->name);
        return MIN(r, 0);
}

static int restart_rollout(const RolloutTarget *target, Error *reterr) {
        int r = request_daemonset_action(target->options, target->namespace, target->name,
                                         "restart", NULL, reterr);

        if (r >= 0)
                printf("daemonset.apps/%s restarted\n", target->name);
        return MIN(r, 0);
}

static const struct {
        const char *word;
        int (*run)(const RolloutTarget *target, Error *reterr);
} verbs[] = {
        { "history", show_rollout_history },
        { "status", show_rollout_status },
        { "undo", undo_rollout },
        { "restart", restart_rollout },
};

static int find_rollout_verb(const char *word, size_t *ret) {
        const char *candidates[N_ELEMENTS(verbs)];

        for (size_t i = 0; i < N_ELEMENTS(verbs); i++) {
                candidates[i] = verbs[i].word;
                if (streq(verbs[i].word, word)) {
                        *ret = i;
                        return STATUS_OK;
                }
        }
        return fail_unknown("rollout", word, candidates, N_ELEMENTS(verbs));
}

static int check_revision_options(const Options *options) {
        if (options->revision && !is_number(options->revision))
                return fail_usage("--revision must be a number, not '%s'", options->revision);
        if (options->to_revision && !is_number(options->to_revision))
                return fail_usage("--to-revision must be a number, not '%s'", options->to_revision);
        return STATUS_OK;
}

int run_rollout(const Options *options) {
        Options rest = *options;
        RolloutTarget target = { .options = options,
                                 .namespace = options->namespace ? options->namespace : "default" };
        cleanup_error Error error = ERROR_NULL;
        char *const *names = NULL;
        ApiResource resource = API_RESOURCE_DAEMONSETS;
        size_t n_names = 0, verb;
        int status, r;

        if (options->n_words == 0)
                return fail_usage(
                        "a subcommand is required: 'mainstay rollout history daemonset/NAME'");
        status = find_rollout_verb(options->words[0], &verb);
        rest.words++;
        rest.n_words--;
        if (status == STATUS_OK)
                status = parse_api_resource(&rest, "rollout",
                                            API_RESOURCE_BIT(API_RESOURCE_DAEMONSETS) |
                                                    API_RESOURCE_BIT(API_RESOURCE_PODS),
                                            &resource, &names, &n_names);
        if (status == STATUS_OK)
                status = check_revision_options(options);
        if (status != STATUS_OK)
                return status;
        if (n_names != 1)
                return fail_usage("a name is required: 'mainstay rollout %s daemonset/NAME'",
                                  verbs[verb].word);
        target.name = strip_resource_prefix(names[0]);
        if (resource == API_RESOURCE_PODS && verbs[verb].run != show_rollout_status)
                return fail_usage("for a pod, only 'mainstay rollout status pod/NAME' exists");
        r = resource == API_RESOURCE_PODS
                    ? show_pod_rollout_status(options, target.namespace, target.name, &error)
                    : verbs[verb].run(&target, &error);
        return r < 0 ? fail_with_error(r, &error) : STATUS_OK;
}
