/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/inputs.h"

#include "agent/model/json.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/strv.h"

#include <sys/stat.h>

/* As old as what the file says now. */
static uint64_t manifest_time(const char *directory, const char *file) {
        cleanup_free char *path = path_join(directory, file);
        struct stat st;

        if (!path || stat(path, &st) < 0)
                return 0;
        return (uint64_t) st.st_mtim.tv_sec * USEC_PER_SEC;
}

/* Looks through all there are: a list of n is n walks, and there are few. */
int inputs_next_object(const ManifestSource *sources, const char *directory, ObjectKind kind,
                       const char *after, char **ret_key, char **ret_json) {
        const Manifest *const *manifests;
        size_t n = manifest_source_list(sources, &manifests);
        cleanup_free char *first = NULL;
        const DataObject *found = NULL;
        const char *file = NULL;

        for (size_t i = 0; i < n; i++)
                for (size_t j = 0; j < manifests[i]->data.n; j++) {
                        const DataObject *object = manifests[i]->data.items[j];
                        cleanup_free char *key =
                                path_join(object->metadata.namespace, object->metadata.name);

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
        *ret_json = data_object_to_json(found, manifest_time(directory, file));
        if (!*ret_json)
                return -ENOMEM;
        *ret_key = TAKE_PTR(first);
        return 1;
}

static void report_archive(const char *archive, const char *message, void *userdata) {
        serve_report_archive(userdata, archive, message);
}

static void report_manifest(ServeReport *report, const Manifest *manifest) {
        cleanup_strv char **pods = NULL;

        for (size_t i = 0; i < manifest->pods.n; i++)
                (void) strv_appendf(&pods, "%s/%s", manifest->pods.items[i]->metadata.namespace,
                                    manifest->pods.items[i]->metadata.name);
        serve_report_manifest(report, &(ServeManifest){
                                              .file = manifest->file,
                                              .pods = pods,
                                              .warnings = manifest->warnings,
                                              .error = manifest->error,
                                              .error_since = manifest->error_since,
                                      });
}

void inputs_report(const ManifestSource *sources, const char *directory, ImageStore *images,
                   ServeReport *report) {
        const Manifest *const *manifests;
        size_t n = manifest_source_list(sources, &manifests);

        serve_report_directory(report, directory, manifest_source_trouble(sources));
        for (size_t i = 0; i < n; i++)
                report_manifest(report, manifests[i]);
        image_store_foreach_trouble(images, report_archive, report);
}

/* Those of its last good bytes run on, and it is them that people look at. */
void inputs_tell_broken(const Manifest *manifest,
                        void (*tell)(const PodEvent *event, void *userdata), void *userdata) {
        for (size_t i = 0; i < manifest->pods.n; i++) {
                const Pod *pod = manifest->pods.items[i];
                cleanup_free char *message = NULL;

                if (asprintf(&message, "Error validating pod %s_%s(%s) from file, ignoring: %s",
                             pod->metadata.name, pod->metadata.namespace, pod->metadata.uid,
                             manifest->error) < 0)
                        message = NULL;
                else
                        tell(&(PodEvent){ .pod = pod,
                                          .kind = POD_EVENT_WARNING,
                                          .reason = "FailedValidation",
                                          .message = message },
                             userdata);
        }
}
