/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cli/cli.h"

#include "agent/cli/client.h"
#include "agent/cli/columns.h"
#include "agent/cli/daemonsets.h"
#include "agent/cli/describe-template.h"
#include "agent/cli/resources.h"
#include "agent/cli/words.h"
#include "common/cleanup.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

/* rollout history, status, undo, restart of a daemonset, in kubectl's words. */

/* What the words of a command line ask for. */
typedef struct Rollout {
        const Options *options;
        const char *namespace;
        const char *name;
} Rollout;

static bool is_number(const char *text) {
        return *text && strspn(text, "0123456789") == strlen(text) && strlen(text) < 18;
}

/* ---- history ---- */

static bool is_of(const Rollout *rollout, const json_t *revision) {
        const json_t *owner = json_array_get(json_at(revision, "metadata", "ownerReferences"), 0);

        return streq_ptr(json_text(revision, "metadata", "namespace"), rollout->namespace) &&
               owner && streq_ptr(json_text(owner, "name"), rollout->name);
}

static int print_revision(const Rollout *rollout, const json_t *revision) {
        char *text = NULL;
        size_t length;
        FILE *out = open_memstream(&text, &length);

        if (!out)
                return -ENOMEM;
        fprintf(out, "daemonset.apps/%s with revision #%s\n", rollout->name,
                rollout->options->revision);
        describe_template(json_at(revision, "data", "spec", "template"), out);
        return columns_print_description(out, &text);
}

static int print_one(const Rollout *rollout, const json_t *revisions, Error *reterr) {
        size_t i;
        json_t *revision;

        json_array_foreach(revisions, i, revision)
                if (is_of(rollout, revision) &&
                    json_integer_value(json_object_get(revision, "revision")) ==
                            strtoll(rollout->options->revision, NULL, 10))
                        return print_revision(rollout, revision);
        return error_setf(reterr, ENOENT, "unable to find the specified revision");
}

static int print_all(const Rollout *rollout, const json_t *revisions) {
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

                if (is_of(rollout, revision))
                        fprintf(out, "%lld\t%s\n",
                                (long long) json_integer_value(
                                        json_object_get(revision, "revision")),
                                cause ? cause : "<none>");
        }
        if (fclose(out) != 0)
                return -ENOMEM;
        printf("daemonset.apps/%s \n", rollout->name);
        return columns_write(&columns, text, stdout);
}

static int show_history(const Rollout *rollout, Error *reterr) {
        cleanup_json json_t *list = NULL;
        const json_t *revisions;
        int r = client_get_json(rollout->options->socket, "/revisions", &list, reterr);

        if (r < 0)
                return r;
        revisions = json_object_get(list, "items");
        return rollout->options->revision ? print_one(rollout, revisions, reterr)
                                          : print_all(rollout, revisions);
}

/* ---- status ---- */

typedef struct Progress {
        const Rollout *rollout;
        char last[256]; /* line, so that none is said twice */
        Error *reterr;
} Progress;

static void say(Progress *progress, const char *format, ...) printf_like(2, 3);

static void say(Progress *progress, const char *format, ...) {
        char line[sizeof(progress->last)];
        va_list ap;

        va_start(ap, format);
        (void) vsnprintf(line, sizeof(line), format, ap);
        va_end(ap);
        if (streq(line, progress->last))
                return;
        printf("%s\n", line);
        fflush(stdout);
        memcpy(progress->last, line, sizeof(line));
}

/* 1 where it is over. */
static int tell_progress(Progress *progress, const json_t *set) {
        const char *name = progress->rollout->name;
        const json_t *condition = resource_condition(set, "Progressing");
        long long desired = daemonset_count(set, "desiredNumberScheduled");
        long long updated = daemonset_count(set, "updatedNumberScheduled");
        long long available = daemonset_count(set, "numberAvailable");

        if (condition && streq_ptr(json_text(condition, "reason"), "ProgressDeadlineExceeded"))
                return error_setf(progress->reterr, ETIME,
                                  "daemon set \"%s\" exceeded its progress deadline: %s", name,
                                  strna(json_text(condition, "message")));
        if (updated < desired)
                say(progress,
                    "Waiting for daemon set \"%s\" rollout to finish: %lld out of %lld new pods "
                    "have been updated...",
                    name, updated, desired);
        else if (available < desired)
                say(progress,
                    "Waiting for daemon set \"%s\" rollout to finish: %lld of %lld updated pods "
                    "are available...",
                    name, available, desired);
        else
                say(progress, "daemon set \"%s\" successfully rolled out", name);
        return updated >= desired && available >= desired;
}

static int on_set(const char *type, json_t *set, void *userdata) {
        Progress *progress = userdata;

        if (streq(type, "DELETED"))
                return error_setf(progress->reterr, ENOENT, "object has been deleted");
        if (!streq_ptr(json_text(set, "spec", "updateStrategy", "type"), "RollingUpdate"))
                return error_setf(progress->reterr, EINVAL,
                                  "rollout status is only available for RollingUpdate strategy "
                                  "type");
        return tell_progress(progress, set);
}

static int show_status(const Rollout *rollout, Error *reterr) {
        Progress progress = { .rollout = rollout, .reterr = reterr };
        char *const names[] = { strdupa(rollout->name) };
        cleanup_json json_t *sets = NULL;
        int r = daemonsets_fetch(rollout->options, rollout->namespace, names, 1, &sets, reterr);

        return r < 0 ? r
                     : daemonsets_watch(rollout->options, rollout->namespace, names, 1, on_set,
                                        &progress, reterr);
}

/* ---- undo, restart ---- */

static int undo(const Rollout *rollout, Error *reterr) {
        const char *revision = rollout->options->to_revision;
        int r = daemonset_order(rollout->options, rollout->namespace, rollout->name, "undo",
                                revision, reterr);

        if (r > 0)
                printf("daemonset.apps/%s skipped rollback (current template already matches "
                       "revision %s)\n",
                       rollout->name, revision ? revision : "0");
        else if (r == 0)
                printf("daemonset.apps/%s rolled back\n", rollout->name);
        return MIN(r, 0);
}

static int restart(const Rollout *rollout, Error *reterr) {
        int r = daemonset_order(rollout->options, rollout->namespace, rollout->name, "restart",
                                NULL, reterr);

        if (r >= 0)
                printf("daemonset.apps/%s restarted\n", rollout->name);
        return MIN(r, 0);
}

static const struct {
        const char *word;
        int (*run)(const Rollout *rollout, Error *reterr);
} verbs[] = {
        { "history", show_history },
        { "status", show_status },
        { "undo", undo },
        { "restart", restart },
};

static int find_verb(const char *word, size_t *ret) {
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

static int check_numbers(const Options *options) {
        if (options->revision && !is_number(options->revision))
                return fail_usage("--revision must be a number, not '%s'", options->revision);
        if (options->to_revision && !is_number(options->to_revision))
                return fail_usage("--to-revision must be a number, not '%s'", options->to_revision);
        return STATUS_OK;
}

int run_rollout(const Options *options) {
        Options rest = *options;
        Rollout rollout = { .options = options,
                            .namespace = options->namespace ? options->namespace : "default" };
        cleanup_error Error error = ERROR_NULL;
        char *const *names;
        Resource resource;
        size_t n_names, verb;
        int status, r;

        if (options->n_words == 0)
                return fail_usage("say what: 'mainstay rollout history daemonset/NAME'");
        status = find_verb(options->words[0], &verb);
        rest.words++;
        rest.n_words--;
        if (status == STATUS_OK)
                status = parse_resource(&rest, "rollout", RESOURCE_BIT(RESOURCE_DAEMONSETS),
                                        &resource, &names, &n_names);
        if (status == STATUS_OK)
                status = check_numbers(options);
        if (status != STATUS_OK)
                return status;
        if (n_names != 1)
                return fail_usage("say which one: 'mainstay rollout %s daemonset/NAME'",
                                  verbs[verb].word);
        rollout.name = resource_bare_name(names[0]);
        r = verbs[verb].run(&rollout, &error);
        return r < 0 ? fail(r, &error) : STATUS_OK;
}
