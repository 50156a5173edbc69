/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/inputs.h"

#include "agent/model/json.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/strv.h"

#include <stdlib.h>
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

static void add_name(char ***names, const ObjectMeta *metadata) {
        (void) strv_appendf(names, "%s/%s", metadata->namespace, metadata->name);
}

/* Pods that somebody owns, for as long as nothing is stepped. */
typedef struct OwnedPods {
        const Pod **items;
        size_t n;
} OwnedPods;

static int keep_owned(const Pod *pod, const PodStatus *status, void *userdata) {
        OwnedPods *owned = userdata;
        const Pod **longer;

        if (!object_controller(&pod->metadata))
                return 0;
        longer = reallocarray(owned->items, owned->n + 1, sizeof(*longer));
        if (!longer)
                return -ENOMEM;
        owned->items = longer;
        longer[owned->n++] = pod;
        return 0;
}

static void add_pods_of(char ***names, const DaemonSet *set, const OwnedPods *owned) {
        for (size_t i = 0; i < owned->n; i++)
                if (streq(object_controller(&owned->items[i]->metadata)->uid, set->metadata.uid))
                        add_name(names, &owned->items[i]->metadata);
}

static void report_manifest(ServeReport *report, const Manifest *manifest, const OwnedPods *owned) {
        cleanup_strv char **pods = NULL, **daemonsets = NULL;

        for (size_t i = 0; i < manifest->pods.n; i++)
                add_name(&pods, &manifest->pods.items[i]->metadata);
        for (size_t i = 0; i < manifest->daemonsets.n; i++) {
                add_name(&daemonsets, &manifest->daemonsets.items[i]->metadata);
                add_pods_of(&pods, manifest->daemonsets.items[i], owned);
        }
        serve_report_manifest(report, &(ServeManifest){
                                              .file = manifest->file,
                                              .pods = pods,
                                              .daemonsets = daemonsets,
                                              .warnings = manifest->warnings,
                                              .error = manifest->error,
                                              .error_since = manifest->error_since,
                                      });
}

void inputs_report(const ManifestSource *sources, const char *directory, Supervisor *supervisor,
                   ImageStore *images, ServeReport *report) {
        OwnedPods owned = { 0 };
        const Manifest *const *manifests;
        size_t n = manifest_source_list(sources, &manifests);

        serve_report_directory(report, directory, manifest_source_trouble(sources));
        (void) supervisor_each(supervisor, keep_owned, &owned); /* some is better than nothing */
        for (size_t i = 0; i < n; i++)
                report_manifest(report, manifests[i], &owned);
        free(owned.items);
        image_store_foreach_trouble(images, report_archive, report);
}

/* What runs on, and is what people look at. */
static void tell_broken(const char *what, const ObjectMeta *metadata, const char *error,
                        PodEvent *event, void (*tell)(const PodEvent *event, void *userdata),
                        void *userdata) {
        cleanup_free char *message = NULL;

        if (asprintf(&message, "Error validating %s %s_%s(%s) from file, ignoring: %s", what,
                     metadata->name, metadata->namespace, metadata->uid, error) < 0) {
                message = NULL;
                return;
        }
        event->kind = POD_EVENT_WARNING;
        event->reason = "FailedValidation";
        event->message = message;
        tell(event, userdata);
}

void inputs_tell_broken(const Manifest *manifest,
                        void (*tell)(const PodEvent *event, void *userdata), void *userdata) {
        for (size_t i = 0; i < manifest->pods.n; i++) {
                const Pod *pod = manifest->pods.items[i];

                tell_broken("pod", &pod->metadata, manifest->error, &(PodEvent){ .pod = pod }, tell,
                            userdata);
        }
        for (size_t i = 0; i < manifest->daemonsets.n; i++) {
                const DaemonSet *set = manifest->daemonsets.items[i];

                tell_broken("daemonset", &set->metadata, manifest->error,
                            &(PodEvent){ .daemonset = set }, tell, userdata);
        }
}
