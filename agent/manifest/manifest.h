/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The interface of this module: bytes in, typed objects out, or an error with file, line, column
 * and field path. */

#include "agent/model/config.h"
#include "agent/model/daemonset.h"
#include "agent/model/object.h"
#include "agent/model/pod.h"
#include "common/error.h"

#include <systemd/sd-event.h>

/* The objects of one file. */
typedef struct ManifestObjects {
        LIST_OF(Pod *) pods;        /* defaulted, validated, with the identity of a static pod */
        LIST_OF(DataObject *) data; /* ConfigMaps, Secrets, classes */
        LIST_OF(DaemonSet *) daemonsets; /* defaulted, validated */
        char **warnings; /* unknown fields, each with its place: "web.yaml:9:5: spec.foo: …" */
} ManifestObjects;

void manifest_objects_done(ManifestObjects *objects);

/* How many there are. A valid file may have none, if all that it holds is skipped. */
size_t manifest_objects_count(const ManifestObjects *objects);

/* Parses the bytes of one file: YAML or JSON, several documents, List. 'file' is its name in
 * messages, 'node_name' becomes part of the identity. Either all documents are valid, or it returns
 * -EINVAL with the first error; then 'ret' has the warnings that precede it, and no object. The
 * caller frees 'ret'. */
int manifest_parse(const char *file, const char *data, size_t length, const char *node_name,
                   ManifestObjects *ret, Error *reterr);

/* The same for 'mainstay validate': all errors of an invalid file, at most a hundred, are in
 * 'ret_errors', for strv_free(). */
int manifest_validate(const char *file, const char *data, size_t length, const char *node_name,
                      ManifestObjects *ret, char ***ret_errors);

/* Parses an object from an API server; in a list it has no kind and apiVersion. Unknown fields, and
 * fields for other components than the node, are ignored. A pod keeps its name and UID. 'place'
 * starts the messages. */
int manifest_parse_api(const char *place, const char *kind, const char *data, size_t length,
                       const char *node_name, ManifestObjects *ret, Error *reterr);

/* Reads a v1.Pod of our own records (pod_to_json()), defaulted and not validated; it has its
 * identity. */
int manifest_parse_record(const char *data, size_t length, Pod **ret, Error *reterr);

/* The same for one that was changed on request: it is validated, and messages start with the path
 * of a field. */
int manifest_parse_changed_record(const char *data, size_t length, Pod **ret, Error *reterr);

/* Reads a pod template of our own revision history; the caller frees it with
 * schema_done(&pod_template_schema). */
int manifest_parse_template(const char *data, size_t length, Pod *ret, Error *reterr);

/* Reads a DaemonSet of our own records, defaulted and not validated; it has its UID. */
int manifest_parse_daemonset(const char *data, size_t length, DaemonSet **ret, Error *reterr);

/* Reads the configuration of one file without drop-ins (config-files.h); a missing file is an empty
 * one. */
int kubelet_config_load(const char *path, Config *ret, char ***ret_warnings, Error *reterr);
void config_done(Config *config);

/* The manifest directory. The state of one file: */
typedef struct Manifest {
        char *file;    /* name in the directory */
        char hash[65]; /* of the content that was read last */
        LIST_OF(Pod *)
        pods; /* of the last good content, without those whose names another file owns */
        LIST_OF(DataObject *)
        data;                            /* likewise */
        const DataObject *default_class; /* of 'data': the PriorityClass with globalDefault */
        LIST_OF(DaemonSet *)
        daemonsets; /* likewise */
        char **warnings;
        char *error;          /* why the present content is not used; NULL: it is used */
        uint64_t error_since; /* realtime, microseconds */
} Manifest;

/* It does not come from the directory, but from staticPodURL or an index: POD_SOURCE_URL_NAME is
 * its name, or the text after POD_SOURCE_INDEX_PREFIX. */
bool manifest_is_fetched(const Manifest *manifest);

typedef struct ManifestDirectory ManifestDirectory;

/* Called from the event loop after a scan that changed anything, errors included. */
typedef void (*manifest_changed_t)(void *userdata);

/* Watches 'directory', which may not exist yet. Nothing is read before manifest_directory_start().
 */
int manifest_directory_new(sd_event *event, const char *directory, const char *node_name,
                           manifest_changed_t on_changed, void *userdata, ManifestDirectory **ret);

/* Before the first scan: a pod that ran from 'file' when the agent stopped, so that it is kept if
 * the file is invalid now. Takes ownership of the pod. */
int manifest_directory_restore_pod_take(ManifestDirectory *source, const char *file, Pod *pod);

/* The same for a DaemonSet; takes ownership. */
int manifest_directory_restore_set_take(ManifestDirectory *source, const char *file,
                                        DaemonSet *set);

/* Scans once (on_changed is called before it returns, regardless of the result) and starts to
 * watch. */
int manifest_directory_start(ManifestDirectory *source, Error *reterr);

/* Manifests that were fetched, all those whose names start with 'prefix' (POD_SOURCE_URL_NAME or
 * POD_SOURCE_INDEX_PREFIX): they become those of the open directory, as if files of the manifest
 * directory had changed, been added or removed; -EBADF: there are none. A file of the manifest
 * directory has precedence on the same name. on_changed is called from the loop; before
 * manifest_directory_start(), by it. 0; or -errno, and then some or all are as before. */
int manifest_directory_set_fetched(ManifestDirectory *source, const char *prefix, int dir_fd,
                                   Error *reterr);

/* Whether all manifests of an open directory could be used under that prefix: 0, or -errno and the
 * first error. */
int manifest_directory_check_fetched(const ManifestDirectory *source, const char *prefix,
                                     int dir_fd, Error *reterr);

/* NULL, or why the directory cannot be read; then the last good set stays. */
const char *manifest_directory_last_error(const ManifestDirectory *source);

/* NULL, or the warning that users other than root may write to the directory. */
const char *manifest_directory_warning(const ManifestDirectory *source);

/* False while memory was insufficient to decide which file has which name: then the files do not
 * have all objects that they contain. */
bool manifest_directory_is_resolved(const ManifestDirectory *source);

/* All files, sorted by name. Valid until the next scan. */
size_t manifest_directory_list(const ManifestDirectory *source, const Manifest *const **ret);

/* The last good object of that key, or NULL; without a name, the PriorityClass with globalDefault.
 * Valid until the next scan. */
const DataObject *manifest_directory_find_object(const ManifestDirectory *source,
                                                 const ObjectKey *key);

/* Changes with every change of an object; 0: there never was one. */
unsigned manifest_directory_data_generation(const ManifestDirectory *source);

ManifestDirectory *manifest_directory_free(ManifestDirectory *source);
DEFINE_CLEANUP(ManifestDirectory *, manifest_directory_free)
