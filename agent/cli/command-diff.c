/* SPDX-License-Identifier: Apache-2.0 */
/* `mainstay diff`: the effect of changed manifests on running pods. */

#include "agent/cli/agent-client.h"
#include "agent/cli/cli.h"
#include "agent/cli/input.h"
#include "agent/cli/resources.h"
#include "agent/cli/words.h"
#include "agent/daemonset/rules/rules.h"
#include "agent/model/daemonset.h"
#include "agent/model/edit-plan.h"
#include "agent/model/json.h"
#include "agent/model/own-keys.h"
#include "common/cleanup.h"
#include "common/error.h"
#include "common/json-text.h"
#include "common/text.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>

/* diff of a DaemonSet: whether its template differs from the revision that runs. */

/* A pod of the set that is not terminating, preferably one of this revision; or NULL. */
static const json_t *find_daemonset_pod(const json_t *pods, const DaemonSet *set,
                                        const char *hash) {
        const json_t *found = NULL;
        size_t i;
        json_t *pod;

        json_array_foreach(pods, i, pod) {
                if (!is_owned_by_daemonset(pod, set->metadata.name) ||
                    !streq_ptr(json_text(pod, "metadata", "namespace"), set->metadata.namespace) ||
                    json_at(pod, "metadata", "deletionTimestamp"))
                        continue;
                found = pod;
                if (streq_ptr(json_text(pod, "metadata", "labels", "controller-revision-hash"),
                              hash))
                        break;
        }
        return found;
}

static const char *explain_update_strategy(const DaemonSet *set) {
        const DaemonSetUpdateStrategy *strategy = &set->spec.update_strategy;

        if (strategy->type == DAEMONSET_ON_DELETE)
                return "when the old one is deleted (OnDelete)";
        if (int_or_percent_of_one(&strategy->rolling_update->max_surge, true) > 0)
                return "the new one starts first";
        return "the old one terminates first";
}

/* Prints the effect on the pod of the set on a node of that name, given the running pods. 1 if
 * there is an effect, 0, -ENOMEM. */
static int diff_daemonset(const char *node, const json_t *pods, const DaemonSet *set) {
        char hash[REVISION_HASH_SIZE];
        const json_t *pod;
        int r = daemonset_revision_hash(&set->spec.template, hash);

        if (r < 0)
                return r;
        printf("daemonset %s/%s: ", set->metadata.namespace, set->metadata.name);
        pod = find_daemonset_pod(pods, set, hash);
        if (!pod) {
                printf("does not run on %s\n", node);
                return 1;
        }
        if (streq_ptr(json_text(pod, "metadata", "labels", "controller-revision-hash"), hash)) {
                printf("unchanged\n");
                return 0;
        }
        printf("is a new revision; its pod is replaced, %s\n", explain_update_strategy(set));
        return 1;
}

/* mainstay diff: the effect that these files would have on running pods if they were in the
 * manifest directory. Uses the agent's own plan (model/edit-plan.h). */

/* As in diff(1) and kubectl: 0: no difference; 1: a difference; greater: an error. */
enum {
        DIFF_NONE = STATUS_OK,
        DIFF_SOME = 1,
        DIFF_FAILED = 2,
};

/* The node's name is part of a pod's; without any pod it is unknown and not needed. */
#define NO_NODE "node"

typedef struct ManifestDiff {
        json_t *pods;    /* running pods */
        json_t *classes; /* the node's PriorityClasses */
        const char *node;
        int status;
} ManifestDiff;

static void fail_diff(ManifestDiff *diff, int r, const Error *error) {
        print_line(stderr, "error: %s", error_message(error, r));
        diff->status = DIFF_FAILED;
}

static void set_diff_found(ManifestDiff *diff) {
        diff->status = MAX(diff->status, DIFF_SOME);
}

/* The length of the name in the manifest, without the node suffix. */
static int name_length(const ManifestDiff *diff, const char *name) {
        size_t length = strlen(name), suffix = strlen(diff->node) + 1;

        return (int) (length > suffix ? length - suffix : length);
}

static const json_t *find_running_pod(const ManifestDiff *diff, const Pod *pod) {
        json_t *item;
        size_t i;

        json_array_foreach(diff->pods, i, item)
                if (streq_ptr(json_text(item, "metadata", "name"), pod->metadata.name) &&
                    streq_ptr(json_text(item, "metadata", "namespace"), pod->metadata.namespace))
                        return item;
        return NULL;
}

/* The source is not part of the pod's JSON. */
static int parse_running_pod(const json_t *item, Pod **ret, Error *reterr) {
        json_t *annotations = json_at(item, "metadata", "annotations");
        cleanup_free char *text = NULL;

        (void) json_object_del(annotations, own_key_name(OWN_KEY_SOURCE));
        text = json_to_text(item, JSON_COMPACT);
        return text ? manifest_parse_record(text, strlen(text), ret, reterr) : -ENOMEM;
}

/* "<label>: [container c ]<what>: <changes>", if there are any. */
static void print_edit_changes(const char *label, const EditPlan *plan, EditEffect effect,
                               const char *container, const char *what) {
        cleanup_free char *changes = edit_plan_format(plan, effect, container);

        if (!changes || !changes[0])
                return;
        print_line(stdout, "%s: %s%s%s%s: %s", label, container ? "container " : "",
                   strna(container), container ? (effect == EDIT_IN_PLACE ? ": " : " ") : "", what,
                   changes);
}

static void print_edit_plan(const char *label, const EditPlan *plan, const PodSpec *spec) {
        if (plan->effect == EDIT_NONE) {
                printf("%s: unchanged\n", label);
                return;
        }
        print_edit_changes(label, plan, EDIT_RECREATE_POD, NULL, "is replaced");
        for (size_t i = 0; i < spec->containers.n; i++)
                print_edit_changes(label, plan, EDIT_RECREATE_POD, spec->containers.items[i].name,
                                   "replaces the pod");
        if (plan->effect == EDIT_RECREATE_POD)
                return;
        print_edit_changes(label, plan, EDIT_IN_PLACE, NULL, "applied live");
        for (size_t i = 0; i < spec->containers.n; i++) {
                const char *container = spec->containers.items[i].name;

                print_edit_changes(label, plan, EDIT_RESTART_CONTAINER, container, "restarts");
                print_edit_changes(label, plan, EDIT_IN_PLACE, container, "applied live");
        }
}

/* The PriorityClass of that name; "": the global default. NULL: it does not exist. */
static const json_t *find_priority_class(const ManifestDiff *diff, const char *name) {
        const json_t *item;
        size_t i;

        json_array_foreach(diff->classes, i, item)
                if (name ? streq_ptr(json_text(item, "metadata", "name"), name)
                         : json_is_true(json_object_get(item, "globalDefault")))
                        return item;
        return NULL;
}

/* As in the agent, a class that no longer exists has the values with which the pod started. */
static int resolve_diff_priority(const ManifestDiff *diff, PodSpec *spec) {
        const json_t *class = find_priority_class(diff, spec->priority_class_name);

        if (!class || spec->priority.is_set)
                return 0;
        spec->priority = (OptionalInt){ true, json_integer_value(json_object_get(class, "value")) };
        if (!spec->priority_class_name)
                spec->priority_class_name = strdup(strna(json_text(class, "metadata", "name")));
        return spec->priority_class_name ? 0 : -ENOMEM;
}

static int diff_running_pod(ManifestDiff *diff, const char *label, const json_t *item, Pod *desired,
                            Error *reterr) {
        cleanup_with(edit_plan_done) EditPlan plan = { 0 };
        cleanup_with(pod_freep) Pod *running = NULL;
        int r = parse_running_pod(item, &running, reterr);

        if (r < 0)
                return r;
        r = resolve_diff_priority(diff, &desired->spec);
        if (r < 0)
                return r;
        r = edit_inherit_class_values(running, desired);
        if (r < 0)
                return r;
        r = edit_plan_make(running, desired, &plan);
        if (r < 0)
                return r;
        if (plan.effect != EDIT_NONE)
                set_diff_found(diff);
        print_edit_plan(label, &plan, &desired->spec);
        return 0;
}

static int diff_pod(ManifestDiff *diff, Pod *desired, Error *reterr) {
        const json_t *item = find_running_pod(diff, desired);
        cleanup_free char *label =
                text_format("pod %s/%.*s", desired->metadata.namespace,
                            name_length(diff, desired->metadata.name), desired->metadata.name);

        if (!label)
                return -ENOMEM;
        if (item && !json_at(item, "metadata", "deletionTimestamp"))
                return diff_running_pod(diff, label, item, desired, reterr);
        printf("%s: starts%s\n", label,
               item ? ", when the one that is being stopped has terminated" : "");
        set_diff_found(diff);
        return 0;
}

static void diff_file(ManifestDiff *diff, const char *file) {
        cleanup_with(manifest_objects_done) ManifestObjects objects = { 0 };
        cleanup_error Error error = ERROR_NULL;
        int r = read_manifest(file, diff->node, &objects, &error);

        for (size_t i = 0; i < objects.pods.n && r >= 0; i++)
                r = diff_pod(diff, objects.pods.items[i], &error);
        for (size_t i = 0; i < objects.daemonsets.n && r >= 0; i++) {
                r = diff_daemonset(diff->node, diff->pods, objects.daemonsets.items[i]);
                if (r > 0)
                        set_diff_found(diff);
        }
        if (r < 0)
                fail_diff(diff, r, &error);
}

int run_diff(const Options *options) {
        cleanup_json json_t *list = NULL, *classes = NULL;
        cleanup_error Error error = ERROR_NULL;
        ManifestDiff diff = { .status = DIFF_NONE, .node = NO_NODE };
        const char *node;
        int r;

        if (options->n_words == 0)
                return fail_usage(
                        "files are required: 'mainstay diff FILE...'; '-' is standard input");
        r = client_get_json(options->socket, "/pods", &list, &error);
        if (r >= 0)
                r = client_get_json(options->socket, "/priorityclasses", &classes, &error);
        if (r < 0) {
                fail_diff(&diff, r, &error);
                return diff.status;
        }
        diff.pods = json_object_get(list, "items");
        diff.classes = json_object_get(classes, "items");
        node = json_text(json_array_get(diff.pods, 0), "spec", "nodeName");
        if (node)
                diff.node = node;
        for (size_t i = 0; i < options->n_words; i++)
                diff_file(&diff, options->words[i]);
        return diff.status;
}
