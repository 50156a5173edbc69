/* SPDX-License-Identifier: Apache-2.0 */
/* The status of manifests and of preloaded image archives, for requests on the local socket. */

#include "agent/desired/manifest-status.h"

#include "agent/daemonset/rules/rules.h"
#include "agent/model/json.h"
#include "agent/model/pod-source.h"
#include "common/array.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/strv.h"
#include "common/text.h"

#include <stdlib.h>
#include <sys/stat.h>

/* Objects of files are as old as the content of the file. */
static uint64_t manifest_mtime_usec(const char *directory, const char *file) {
        cleanup_free char *path = path_join(directory, file);
        struct stat st;

        if (!path || stat(path, &st) < 0)
                return 0;
        return (uint64_t) st.st_mtim.tv_sec * USEC_PER_SEC;
}

/* Objects with the same name have different sources, and the manifest directory comes first. */
static char *format_object_key(const DataObject *object) {
        return text_format("%s/%s/%d", object->metadata.namespace, object->metadata.name,
                           (int) object->metadata.source);
}

/* A list of n objects takes n passes over all of them, but there are only a few. */
int find_next_manifest_object(const ManifestDirectory *sources, const char *directory,
                              ObjectKind kind, const char *after, char **ret_key, char **ret_json) {
        const Manifest *const *manifests;
        size_t n = manifest_directory_list(sources, &manifests);
        cleanup_free char *first = NULL, *source_text = NULL;
        const DataObject *found = NULL;
        const char *file = NULL;
        PodSource source;

        for (size_t i = 0; i < n; i++)
                for (size_t j = 0; j < manifests[i]->data.n; j++) {
                        const DataObject *object = manifests[i]->data.items[j];
                        cleanup_free char *key = format_object_key(object);

                        if (!key)
                                return -ENOMEM;
                        if (object->kind != kind || (after && strcmp(key, after) <= 0) ||
                            (first && strcmp(key, first) >= 0))
                                continue;
                        free(first);
                        first = TAKE_PTR(key);
                        found = object;
                        file = manifests[i]->file;
                }
        if (!found)
                return 0;
        source = pod_source_of_file(file);
        source_text = print_daemonset_source(&source);
        if (!source_text)
                return -ENOMEM;
        *ret_json = data_object_to_json(found, manifest_mtime_usec(directory, file), source_text);
        if (!*ret_json)
                return -ENOMEM;
        *ret_key = TAKE_PTR(first);
        return 1;
}

static void report_broken_archive(const char *archive, const char *message, void *userdata) {
        http_report_archive_error(userdata, archive, message);
}

static void append_object_name(char ***names, const ObjectMeta *metadata) {
        (void) strv_appendf(names, "%s/%s", metadata->namespace, metadata->name);
}

/* Pods that have a controller, valid until the next step of the pod manager. */
typedef struct ControlledPods {
        const Pod **items;
        size_t n;
} ControlledPods;

static int collect_controlled_pod(const Pod *pod, const PodStatus *status, void *userdata) {
        ControlledPods *controlled = userdata;
        const Pod **added;

        if (!object_controller(&pod->metadata))
                return 0;
        added = ARRAY_APPEND(controlled->items, controlled->n);
        if (!added)
                return -ENOMEM;
        *added = pod;
        return 0;
}

static void append_controlled_pods(char ***names, const DaemonSet *set,
                                   const ControlledPods *controlled) {
        for (size_t i = 0; i < controlled->n; i++)
                if (daemonset_controls_pod(set, controlled->items[i]))
                        append_object_name(names, &controlled->items[i]->metadata);
}

static void report_manifest_file(HttpManifestReport *report, const Manifest *manifest,
                                 const ControlledPods *controlled) {
        cleanup_strv char **pods = NULL, **daemonsets = NULL;

        for (size_t i = 0; i < manifest->pods.n; i++)
                append_object_name(&pods, &manifest->pods.items[i]->metadata);
        for (size_t i = 0; i < manifest->daemonsets.n; i++) {
                append_object_name(&daemonsets, &manifest->daemonsets.items[i]->metadata);
                append_controlled_pods(&pods, manifest->daemonsets.items[i], controlled);
        }
        http_report_manifest(report, &(HttpManifestStatus){
                                             .file = manifest->file,
                                             .pods = pods,
                                             .daemonsets = daemonsets,
                                             .warnings = manifest->warnings,
                                             .error = manifest->error,
                                             .error_since = manifest->error_since,
                                     });
}

void report_manifest_status(const ManifestDirectory *sources, const char *directory,
                            PodManager *pod_manager, ImageStore *images,
                            HttpManifestReport *report) {
        ControlledPods controlled = { 0 };
        const Manifest *const *manifests;
        size_t n = manifest_directory_list(sources, &manifests);

        http_report_manifest_directory(report, directory, manifest_directory_last_error(sources),
                                       manifest_directory_warning(sources));
        (void) pod_manager_for_each_pod(pod_manager, collect_controlled_pod,
                                        &controlled); /* an incomplete list is better than none */
        for (size_t i = 0; i < n; i++)
                report_manifest_file(report, manifests[i], &controlled);
        free(controlled.items);
        image_store_foreach_archive_error(images, report_broken_archive, report);
}
