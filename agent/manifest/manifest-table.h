/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* All known files of the manifest directory, and which of them owns which object name. */

#include "agent/manifest/manifest.h"
#include "agent/manifest/reader.h"

typedef struct ManifestEntry {
        Manifest manifest; /* its pods are borrowed from 'pods' */
        ManifestStamp stamp;
        LIST_OF(Pod *) pods;        /* of the last good content, all of them */
        bool *holds;                /* for each: it owns its name, so that no other file can */
        LIST_OF(DataObject *) data; /* likewise */
        bool *data_holds;
        bool holds_default;              /* its PriorityClass is the global default */
        LIST_OF(DaemonSet *) daemonsets; /* likewise */
        bool *daemonset_holds;
        char *last_error;       /* why the present content is not used; without name conflicts */
        uint64_t missing_since; /* boottime; 0: it exists */
        unsigned generation;    /* generation of the scan that saw it last */
} ManifestEntry;

/* All entries, sorted by file name. */
typedef struct ManifestTable {
        ManifestEntry **entries;
        const Manifest **manifests; /* of the entries, in their order */
        size_t n;
        unsigned data_generation; /* changes with every change of a ConfigMap or Secret */
} ManifestTable;

/* The entry of a file, created if it does not exist; NULL: out of memory. */
ManifestEntry *manifest_table_get(ManifestTable *table, const char *file);
ManifestEntry *manifest_table_find(const ManifestTable *table, const char *file);
void manifest_table_remove(ManifestTable *table, size_t i);
void manifest_table_done(ManifestTable *table);

/* An immutable object must not change while its file has it. 0, or -EINVAL if one of the new
 * objects differs from the current one of its name. */
int manifest_entry_check_immutable(const ManifestEntry *entry, const ManifestObjects *objects,
                                   Error *reterr);

/* The selector of a DaemonSet is immutable: it identifies its pods. 0, or -EINVAL if one of the new
 * objects has a different selector than the current one of its name. */
int manifest_entry_check_selectors(const ManifestEntry *entry, const ManifestObjects *objects,
                                   Error *reterr);

/* Replaces objects and warnings; names that were held are kept. 0 or -ENOMEM, and then nothing has
 * changed. */
int manifest_entry_set_objects(ManifestTable *table, ManifestEntry *entry,
                               ManifestObjects *objects);

/* Adds a pod that ran before its file was read; it holds its name. Takes ownership of the pod, on
 * failure too. */
int manifest_entry_restore_pod_take(ManifestEntry *entry, Pod *pod);

/* The same of a DaemonSet. */
int manifest_entry_restore_set_take(ManifestEntry *entry, DaemonSet *set);

/* Sets the error of a file, NULL: none. True if it has changed. Takes ownership of the text. */
bool manifest_entry_set_error_take(ManifestEntry *entry, char *error_text);

/* Decides for all entries which owns which name, and sets manifest.pods, manifest.data and
 * manifest.error. An owner keeps its name; otherwise the first file by name gets it; a missing file
 * loses its names to one that exists. 1 if anything changed, 0, -ENOMEM. */
int manifest_table_resolve_names(ManifestTable *table, uint64_t now_realtime_usec);
