/* SPDX-License-Identifier: Apache-2.0 */
/* Logs errors and warnings of manifests (static pods) and records FailedValidation events. */

#include "agent/desired/manifest-problems.h"

#include "common/cleanup.h"
#include "common/log.h"
#include "common/message-ids.h"
#include "common/strv.h"
#include "common/text.h"

struct ManifestProblems {
        void (*on_event)(const PodEvent *event, void *userdata);
        void *userdata;
        char **reported; /* problems that were logged, and still exist */
};

static void report_manifest_problem(const ManifestProblems *problems, char ***present,
                                    const char *text, bool is_error) {
        if (!strv_contains(problems->reported, text)) {
                log_set_message_id(MESSAGE_MANIFEST_INVALID);
                if (is_error)
                        log_error("%s", text);
                else
                        log_warning("%s", text);
        }
        (void) strv_append(present, text);
}

/* The message is the kubelet's. The pods keep running, so the events are recorded for them. */
static void record_broken_object_event(const ManifestProblems *problems, const char *what,
                                       const ObjectMeta *metadata, const Manifest *manifest,
                                       PodEvent *event) {
        cleanup_free char *message = NULL;

        message = text_format("Error validating %s %s_%s(%s) from %s, ignoring: %s", what,
                              metadata->name, metadata->namespace, metadata->uid,
                              manifest_is_fetched(manifest) ? "http" : "file", manifest->error);
        if (!message)
                return;
        event->kind = POD_EVENT_WARNING;
        event->reason = "FailedValidation";
        event->message = message;
        problems->on_event(event, problems->userdata);
}

/* A problem of a file that cannot be attributed to an object is reported for the node. */
static void record_broken_file_event(const ManifestProblems *problems, const Manifest *manifest) {
        cleanup_free char *message = NULL;

        message = text_format("Error validating manifest from %s, ignoring: %s",
                              manifest_is_fetched(manifest) ? "http" : "file", manifest->error);
        if (!message)
                return;
        problems->on_event(&(PodEvent){ .kind = POD_EVENT_WARNING,
                                        .reason = "FailedValidation",
                                        .message = message },
                           problems->userdata);
}

static void record_broken_manifest_events(const ManifestProblems *problems,
                                          const Manifest *manifest) {
        if (manifest->pods.n + manifest->daemonsets.n == 0) {
                record_broken_file_event(problems, manifest);
                return;
        }
        for (size_t i = 0; i < manifest->pods.n; i++) {
                const Pod *pod = manifest->pods.items[i];

                record_broken_object_event(problems, "pod", &pod->metadata, manifest,
                                           &(PodEvent){ .pod = pod });
        }
        for (size_t i = 0; i < manifest->daemonsets.n; i++) {
                const DaemonSet *set = manifest->daemonsets.items[i];

                record_broken_object_event(problems, "daemonset", &set->metadata, manifest,
                                           &(PodEvent){ .daemonset = set });
        }
}

static void report_one_manifest(const ManifestProblems *problems, const Manifest *manifest,
                                char ***present) {
        if (manifest->error) {
                if (!strv_contains(problems->reported, manifest->error))
                        record_broken_manifest_events(problems, manifest);
                report_manifest_problem(problems, present, manifest->error, /* is_error= */ true);
        }
        strv_foreach(warning, manifest->warnings)
                report_manifest_problem(problems, present, *warning, /* is_error= */ false);
}

void manifest_problems_report(ManifestProblems *problems, const ManifestDirectory *manifests,
                              char *const *warnings) {
        const char *directory_error = manifest_directory_last_error(manifests);
        const char *directory_warning = manifest_directory_warning(manifests);
        cleanup_strv char **present = NULL;
        const Manifest *const *list;
        size_t n = manifest_directory_list(manifests, &list);

        for (size_t i = 0; i < n; i++)
                report_one_manifest(problems, list[i], &present);
        if (directory_error)
                report_manifest_problem(problems, &present, directory_error, /* is_error= */ true);
        if (directory_warning)
                report_manifest_problem(problems, &present, directory_warning,
                                        /* is_error= */ false);
        for (; warnings && *warnings; warnings++)
                report_manifest_problem(problems, &present, *warnings, /* is_error= */ false);
        strv_free(problems->reported);
        problems->reported = TAKE_PTR(present);
}

ManifestProblems *manifest_problems_new(void (*on_event)(const PodEvent *event, void *userdata),
                                        void *userdata) {
        ManifestProblems *problems = calloc(1, sizeof(*problems));

        if (!problems)
                return NULL;
        problems->on_event = on_event;
        problems->userdata = userdata;
        return problems;
}

ManifestProblems *manifest_problems_free(ManifestProblems *problems) {
        if (!problems)
                return NULL;
        strv_free(problems->reported);
        free(problems);
        return NULL;
}
