/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The door of the room: bytes in, typed objects out, or a sentence with file, line, column and
 * field path. */

#include "agent/model/config.h"
#include "agent/model/daemonset.h"
#include "agent/model/object.h"
#include "agent/model/pod.h"
#include "common/error.h"

#include <systemd/sd-event.h>

/* What a file's bytes gave. */
typedef struct ManifestObjects {
        LIST_OF(Pod *) pods;             /* defaulted, validated, with a file pod's identity */
        LIST_OF(DataObject *) data;      /* ConfigMaps, Secrets, classes */
        LIST_OF(DaemonSet *) daemonsets; /* defaulted, validated */
        char **warnings; /* unknown fields, each with its place: "web.yaml:9:5: spec.foo: …" */
} ManifestObjects;

void manifest_objects_done(ManifestObjects *objects);

/* Parses one file's bytes: YAML or JSON, several documents, List. 'file' is the name for sentences,
 * 'node_name' goes into the identity. All documents are good, or -EINVAL and the first sentence;
 * then 'ret' has the warnings that were due before it, and no object. The caller ends it. */
int manifest_parse(const char *file, const char *data, size_t length, const char *node_name,
                   ManifestObjects *ret, Error *reterr);

/* The same for 'mainstay validate': all errors of a file that cannot be used, at most a hundred,
 * are in 'ret_errors', for strv_free(). */
int manifest_validate(const char *file, const char *data, size_t length, const char *node_name,
                      ManifestObjects *ret, char ***ret_errors);

/* Parses an object that an API server gave; in a list it does not say of what kind it is. Fields
 * that this version does not know mean nothing; those that are for others than a node neither. A
 * pod keeps its name and UID. 'place' begins the sentences. */
int manifest_parse_api(const char *place, const char *kind, const char *data, size_t length,
                       const char *node_name, ManifestObjects *ret, Error *reterr);

/* Reads one v1.Pod of our own (pod_to_json()) back, defaulted and not validated; it has its
 * identity.
 */
int manifest_parse_record(const char *data, size_t length, Pod **ret, Error *reterr);

/* Reads a pod template of our own histories back, which schema_done(&pod_template_schema) ends. */
int manifest_parse_template(const char *data, size_t length, Pod *ret, Error *reterr);

/* Reads a DaemonSet of our own histories back, defaulted and not validated; it has its UID. */
int manifest_parse_daemonset(const char *data, size_t length, DaemonSet **ret, Error *reterr);

/* Reads the configuration; a file that is not there is an empty one. Fields of a
 * KubeletConfiguration that have no effect here become warnings. The caller ends it with
 * config_done(). */
int config_load(const char *path, Config *ret, char ***ret_warnings, Error *reterr);
void config_done(Config *config);

/* The directory of manifests. One file's state. */
typedef struct Manifest {
        char *file;    /* name in the directory */
        char hash[65]; /* of the bytes that were read last */
        LIST_OF(Pod *)
        pods; /* of the last good bytes; without those whose name another file holds */
        LIST_OF(DataObject *)
        data;                            /* likewise */
        const DataObject *default_class; /* of 'data': the PriorityClass of pods that name none */
        LIST_OF(DaemonSet *)
        daemonsets; /* likewise */
        char **warnings;
        char *error;          /* why the bytes that are there now are not used; NULL: they are */
        uint64_t error_since; /* realtime, microseconds */
} Manifest;

typedef struct ManifestDirectory ManifestDirectory;

/* Called from the loop after a scan in which anything changed, error texts included. */
typedef void (*manifest_changed_t)(void *userdata);

/* Watches 'directory', which need not be there yet. Nothing is read before
 * manifest_directory_start().
 */
int manifest_directory_new(sd_event *event, const char *directory, const char *node_name,
                           manifest_changed_t on_changed, void *userdata, ManifestDirectory **ret);

/* Before the first scan: says what ran from 'file' when the agent stopped, so that a file that is
 * broken now keeps it. Takes the pod. */
int manifest_directory_restore_pod_take(ManifestDirectory *source, const char *file, Pod *pod);

/* The same of a DaemonSet; takes it. */
int manifest_directory_restore_set_take(ManifestDirectory *source, const char *file,
                                        DaemonSet *set);

/* Scans once (on_changed is called before this returns, whatever was found) and begins to watch. */
int manifest_directory_start(ManifestDirectory *source, Error *reterr);

/* NULL, or why the directory as a whole cannot be read; then the last good set stands. */
const char *manifest_directory_last_error(const ManifestDirectory *source);

/* False while memory did not suffice to decide which file has which name: then the files lack
 * objects that they contain. */
bool manifest_directory_is_resolved(const ManifestDirectory *source);

/* All files, sorted by name. Valid until the next scan. */
size_t manifest_directory_list(const ManifestDirectory *source, const Manifest *const **ret);

/* The object that holds the name, as it was last good, or NULL; without a name the PriorityClass of
 * pods that name none. Valid until the next scan. */
const DataObject *manifest_directory_find_object(const ManifestDirectory *source, ObjectKind kind,
                                                 const char *namespace, const char *name);

/* Another number when any of them may be another; 0: there never was one. */
unsigned manifest_directory_data_generation(const ManifestDirectory *source);

ManifestDirectory *manifest_directory_free(ManifestDirectory *source);
DEFINE_CLEANUP(ManifestDirectory *, manifest_directory_free)
