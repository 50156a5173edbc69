/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The interface of this module: parses bytes into typed objects, or returns an error with file,
 * line, column and field path. */

#include "agent/model/config.h"
#include "agent/model/daemonset.h"
#include "agent/model/object.h"
#include "agent/model/pod.h"
#include "common/error.h"

#include <systemd/sd-event.h>

/* The objects of one file. */
typedef struct ManifestObjects {
        LIST_OF(Pod *)
        pods;                            /* validated, with defaults and the identity of a static
                                          * pod */
        LIST_OF(DataObject *) data;      /* ConfigMaps, Secrets, classes */
        LIST_OF(DaemonSet *) daemonsets; /* defaulted, validated */
        char **warnings; /* unknown fields, each with its place: "web.yaml:9:5: spec.foo: …" */
} ManifestObjects;

void manifest_objects_done(ManifestObjects *objects);

/* The number of objects. A valid file may have none, if all of its objects are skipped. */
size_t manifest_objects_count(const ManifestObjects *objects);

/* Parses the bytes of one file: YAML or JSON, several documents, List. 'file' is its name in
 * messages, 'node_name' becomes part of the identity. If a document is invalid, it returns -EINVAL
 * with the first error, and 'ret' contains the warnings that precede it, but no object. The caller
 * frees 'ret'. */
int manifest_parse(const char *file, const char *data, size_t length, const char *node_name,
                   ManifestObjects *ret, Error *reterr);

/* The same for 'mainstay validate': all errors of an invalid file, at most a hundred, are in
 * 'ret_errors', for strv_free(). */
int manifest_validate(const char *file, const char *data, size_t length, const char *node_name,
                      ManifestObjects *ret, char ***ret_errors);

/* Parses an object from an API server; in a list it has neither kind nor apiVersion. Unknown
 * fields, and fields for other components than the node, are ignored. A pod keeps its name and UID.
 * 'place' is the prefix of messages. */
int manifest_parse_api(const char *place, const char *kind, const char *data, size_t length,
                       const char *node_name, ManifestObjects *ret, Error *reterr);

/* Reads a v1.Pod from one of the agent's own records (pod_to_json()), which has its identity;
 * applies defaults, but does not validate. */
int manifest_parse_record(const char *data, size_t length, Pod **ret, Error *reterr);

/* The same for a record that was changed on request: it is validated, and messages start with the
 * path of a field. */
int manifest_parse_changed_record(const char *data, size_t length, Pod **ret, Error *reterr);

/* Reads a pod template from the agent's own revision history; the caller frees it with
 * schema_done(&pod_template_schema). */
int manifest_parse_template(const char *data, size_t length, Pod *ret, Error *reterr);

/* Reads a DaemonSet from one of the agent's own records, which has its UID; applies defaults, but
 * does not validate. */
int manifest_parse_daemonset(const char *data, size_t length, DaemonSet **ret, Error *reterr);

/* Reads the configuration from one file without drop-ins (config-files.h); a missing file counts as
 * empty. */
int kubelet_config_load(const char *path, Config *ret, char ***ret_warnings, Error *reterr);
void config_done(Config *config);

/* The state of one file in the manifest directory. */
typedef struct Manifest {
        char *file;    /* name in the directory */
        char hash[65]; /* of the content that was last read */
        LIST_OF(Pod *)
        pods; /* of the last good content, except for those whose names another file owns */
        LIST_OF(DataObject *)
        data;                            /* likewise */
        const DataObject *default_class; /* from 'data': the PriorityClass with globalDefault */
        LIST_OF(DaemonSet *)
        daemonsets; /* likewise */
        char **warnings;
        char *error;          /* why the current content is not used; NULL: it is used */
        uint64_t error_since; /* realtime, microseconds */
} Manifest;

/* Whether the manifest comes from staticPodURL or an index, and not from the directory. Its name is
 * POD_SOURCE_URL_NAME, or the text after POD_SOURCE_INDEX_PREFIX. */
bool manifest_is_fetched(const Manifest *manifest);

typedef struct ManifestDirectory ManifestDirectory;

/* Called from the event loop after a scan that changed anything, errors included. */
typedef void (*manifest_changed_t)(void *userdata);

/* Watches 'directory', which may not exist yet. Nothing is read before manifest_directory_start().
 */
int manifest_directory_new(sd_event *event, const char *directory, const char *node_name,
                           manifest_changed_t on_changed, void *userdata, ManifestDirectory **ret);

/* To be called before the first scan: a pod that ran from 'file' when the agent stopped, which is
 * kept if the file is invalid now. Takes ownership of the pod. */
int manifest_directory_restore_pod_take(ManifestDirectory *source, const char *file, Pod *pod);

/* The same for a DaemonSet; takes ownership. */
int manifest_directory_restore_set_take(ManifestDirectory *source, const char *file,
                                        DaemonSet *set);

/* Scans the directory and starts to watch it; on_changed is called before it returns, regardless of
 * the result. */
int manifest_directory_start(ManifestDirectory *source, Error *reterr);

/* Replaces the fetched manifests whose names start with 'prefix' (POD_SOURCE_URL_NAME or
 * POD_SOURCE_INDEX_PREFIX) by those in the open directory, as if files of the manifest directory
 * had changed, been added or removed; -EBADF: there are none. A file of the manifest directory has
 * precedence if the names are equal. on_changed is called from the loop, or before
 * manifest_directory_start() by that function. 0; or -errno, in which case some or all of them are
 * unchanged. */
int manifest_directory_set_fetched(ManifestDirectory *source, const char *prefix, int dir_fd,
                                   Error *reterr);

/* Checks whether all manifests of an open directory could be used under that prefix. 0, or -errno
 * and the first error. */
int manifest_directory_check_fetched(const ManifestDirectory *source, const char *prefix,
                                     int dir_fd, Error *reterr);

/* Why the directory cannot be read, in which case the last good set stays; NULL: it can. */
const char *manifest_directory_last_error(const ManifestDirectory *source);

/* The warning that users other than root may write to the directory; NULL: none. */
const char *manifest_directory_warning(const ManifestDirectory *source);

/* False if memory was insufficient to determine which file owns which name, in which case some
 * objects are missing from the files that contain them. */
bool manifest_directory_is_resolved(const ManifestDirectory *source);

/* All files, sorted by name. Valid until the next scan. */
size_t manifest_directory_list(const ManifestDirectory *source, const Manifest *const **ret);

/* The last good object with that key, or NULL; without a name, the PriorityClass with
 * globalDefault. Valid until the next scan. */
const DataObject *manifest_directory_find_object(const ManifestDirectory *source,
                                                 const ObjectKey *key);

/* Changes whenever an object changes; 0: there has never been an object. */
unsigned manifest_directory_data_generation(const ManifestDirectory *source);

ManifestDirectory *manifest_directory_free(ManifestDirectory *source);
DEFINE_CLEANUP(ManifestDirectory *, manifest_directory_free)
