/* SPDX-License-Identifier: Apache-2.0 */
/* `mainstay validate`: the errors and warnings of manifests, without an agent. */

#include "agent/cli/cli.h"

#include "agent/cli/input.h"
#include "agent/cli/words.h"
#include "agent/model/pod-order.h"
#include "common/array.h"
#include "common/cleanup.h"
#include "common/strv.h"
#include "common/text.h"

#include <stdio.h>

/* mainstay validate: the errors and warnings that the agent would report for these files; here
 * unknown fields are also errors. */

/* The node's name is a suffix of pod names; it is removed in output. */
#define NODE_NAME "node"

/* Objects of earlier files, as "pod namespace/name" and the file, alternating; and the pods of
 * files without errors, with the file of each. */
typedef struct SeenObjects {
        char **objects;
        LIST_OF(Pod *) pods;
        char **files;
} SeenObjects;

static void seen_objects_done(SeenObjects *seen) {
        for (size_t i = 0; i < seen->pods.n; i++)
                pod_free(seen->pods.items[i]);
        free(seen->pods.items);
        strv_free(seen->files);
        strv_free(seen->objects);
}

/* "pod namespace/name" as in the manifest. */
static char *pod_label(const Pod *pod) {
        const char *name = strna(pod->metadata.name);
        size_t length = strlen(name), suffix = strlen("-" NODE_NAME);

        if (length > suffix && streq(name + length - suffix, "-" NODE_NAME))
                length -= suffix;
        return text_format("pod %s/%.*s", strna(pod->metadata.namespace), (int) length, name);
}

/* "daemonset namespace/name" */
static char *daemonset_label(const DaemonSet *set) {
        return text_format("daemonset %s/%s", set->metadata.namespace, set->metadata.name);
}

/* Pods and DaemonSets share one name space. */
static const char *skip_kind(const char *label) {
        bool is_pod = strncmp(label, "pod ", 4) == 0 || strncmp(label, "daemonset ", 10) == 0;

        return is_pod ? strchr(label, ' ') : label;
}

static const char *find_seen_object(const SeenObjects *seen, const char *label) {
        for (char **object = seen->objects; object && *object; object += 2)
                if (streq(skip_kind(object[0]), skip_kind(label)))
                        return object[1];
        return NULL;
}

/* Takes ownership of the label. Appends it to "pod default/web, secret default/web"; reports an
 * error if an earlier file has the name. */
static int add_seen_object_take(const char *file, char *label_taken, SeenObjects *seen, FILE *out) {
        cleanup_free char *label = label_taken;
        const char *other;

        if (!label)
                return -ENOMEM;
        other = find_seen_object(seen, label);
        if (other) {
                print_line(stderr, "error: %s: %s is already defined in %s", file, label, other);
                return -EEXIST;
        }
        fprintf(out, "%s%s", ftell(out) > 0 ? ", " : "", label);
        if (strv_append(&seen->objects, label) < 0 || strv_append(&seen->objects, file) < 0)
                return -ENOMEM;
        return 0;
}

static void report_manifest_warnings(const ManifestObjects *objects) {
        strv_foreach(warning, objects->warnings)
                print_line(stderr, "warning: %s", *warning);
}

/* Prints the objects of the file. 0, or -errno after an error was printed. */
static int report_valid_objects(const char *file, const ManifestObjects *objects,
                                SeenObjects *seen) {
        cleanup_free char *text = NULL;
        size_t length;
        FILE *out = open_memstream(&text, &length);
        int result = 0;

        if (!out)
                return -ENOMEM;
        report_manifest_warnings(objects);
        for (size_t i = 0; i < objects->pods.n; i++) {
                int r = add_seen_object_take(file, pod_label(objects->pods.items[i]), seen, out);

                result = r < 0 ? r : result;
        }
        for (size_t i = 0; i < objects->data.n; i++) {
                int r = add_seen_object_take(file, data_object_label(objects->data.items[i]), seen,
                                             out);

                result = r < 0 ? r : result;
        }
        for (size_t i = 0; i < objects->daemonsets.n; i++) {
                int r = add_seen_object_take(file, daemonset_label(objects->daemonsets.items[i]),
                                             seen, out);

                result = r < 0 ? r : result;
        }
        if (fclose(out) != 0)
                return -ENOMEM;
        if (result >= 0)
                print_line(stdout, "%s: ok (%s)", file, length > 0 ? text : "no object");
        return result;
}

/* Prints the qualified names by which pods refer to the devices. */
static int report_valid_cdi_spec(const char *file, const CdiSpec *spec) {
        cleanup_free char *names = NULL;

        for (size_t i = 0; i < spec->devices.n; i++)
                if (text_appendf(&names, "%s%s=%s", i > 0 ? ", " : "", spec->kind,
                                 spec->devices.items[i].name) < 0)
                        return -ENOMEM;
        print_line(stdout, "%s: ok (CDI devices %s)", file, names);
        return 0;
}

/* Takes the pods of the file. 0 or -ENOMEM. */
static int keep_pods(const char *file, ManifestObjects *objects, SeenObjects *seen) {
        if (!ARRAY_RESERVE(seen->pods.items, seen->pods.n, objects->pods.n + 1))
                return -ENOMEM;
        for (size_t i = 0; i < objects->pods.n; i++) {
                if (strv_append(&seen->files, file) < 0)
                        return -ENOMEM;
                seen->pods.items[seen->pods.n++] = TAKE_PTR(objects->pods.items[i]);
        }
        return 0;
}

/* Finds pods of all files that wait for one another. 0, or -errno after an error was printed. */
static int check_pod_cycles(const SeenObjects *seen) {
        const Pod *const *pods = (const Pod *const *) seen->pods.items;
        cleanup_free size_t *next = calloc(seen->pods.n + 1, sizeof(*next));
        int r = next ? pod_order_find_cycles(pods, seen->pods.n, next) : -ENOMEM, result = r;

        for (size_t i = 0; r >= 0 && i < seen->pods.n; i++) {
                cleanup_free char *text = NULL;

                if (next[i] == seen->pods.n)
                        continue;
                text = pod_order_explain_cycle(seen->files[i], pods, seen->pods.n, next, i);
                print_line(stderr, "error: %s", strna(text));
                result = -EINVAL;
        }
        return result;
}

/* 0, or -errno after an error was printed. */
static int validate_file(const char *file, SeenObjects *seen) {
        cleanup_with(manifest_objects_done) ManifestObjects objects = { 0 };
        cleanup_strv char **errors = NULL;
        cleanup_with(cdi_spec_freep) CdiSpec *cdi = NULL;
        int r = validate_manifest(file, NODE_NAME, &objects, &cdi, &errors);

        if (r < 0) {
                report_manifest_warnings(&objects);
                strv_foreach(message, errors)
                        print_line(stderr, "error: %s", *message);
                if (!errors)
                        print_line(stderr, "error: %s: %s", input_name(file), strerror(-r));
                return r;
        }
        if (cdi)
                return report_valid_cdi_spec(input_name(file), cdi);
        r = report_valid_objects(input_name(file), &objects, seen);
        return r < 0 ? r : keep_pods(input_name(file), &objects, seen);
}

int run_validate(const Options *options) {
        cleanup_with(seen_objects_done) SeenObjects seen = { 0 };
        int status = STATUS_OK;

        if (options->n_words == 0)
                return fail_usage(
                        "files are required: 'mainstay validate FILE...'; '-' is standard input");
        for (size_t i = 0; i < options->n_words; i++)
                if (validate_file(options->words[i], &seen) < 0)
                        status = STATUS_FAILED;
        if (check_pod_cycles(&seen) < 0)
                status = STATUS_FAILED;
        return status;
}
