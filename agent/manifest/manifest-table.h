/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* All known files of the manifest directory, and which of them owns which object name. */

#include "agent/manifest/manifest.h"
#include "agent/manifest/reader.h"

typedef struct ManifestEntry {
        Manifest manifest; /* its pods are borrowed from 'pods' */
        ManifestStamp stamp;
        LIST_OF(Pod *) pods;        /* all pods of the last good content */
        bool *holds;                /* for each pod: this file owns its name */
        LIST_OF(DataObject *) data; /* likewise */
        bool *data_holds;
        bool holds_default;              /* its PriorityClass is the global default */
        LIST_OF(DaemonSet *) daemonsets; /* likewise */
        bool *daemonset_holds;
        char *last_error;       /* why the current content is not used; name conflicts are not
                                 * included */
        uint64_t missing_since; /* boot time; 0: the file exists */
        unsigned generation;    /* generation of the last scan that found it */
} ManifestEntry;

/* All entries, sorted by file name. */
typedef struct ManifestTable {
        ManifestEntry **entries;
        const Manifest **manifests; /* borrowed from the entries, in their order */
        size_t n;
        unsigned data_generation; /* changes with every change of a ConfigMap or Secret */
} ManifestTable;

/* The entry of a file, created if it does not exist; NULL: out of memory. */
ManifestEntry *manifest_table_get(ManifestTable *table, const char *file);
ManifestEntry *manifest_table_find(const ManifestTable *table, const char *file);
void manifest_table_remove(ManifestTable *table, size_t i);
void manifest_table_done(ManifestTable *table);

/* Checks that immutable objects have not changed while their file contains them. 0, or -EINVAL if
 * one of the new objects differs from the current one with the same name. */
int manifest_entry_check_immutable(const ManifestEntry *entry, const ManifestObjects *objects,
                                   Error *reterr);

/* Checks the selectors of DaemonSets, which are immutable because they identify pods. 0, or -EINVAL
 * if one of the new objects has a different selector than the current one with the same name. */
int manifest_entry_check_selectors(const ManifestEntry *entry, const ManifestObjects *objects,
                                   Error *reterr);

/* Replaces objects and warnings; owned names are kept. 0; or -ENOMEM, in which case nothing has
 * changed. */
int manifest_entry_set_objects(ManifestTable *table, ManifestEntry *entry,
                               ManifestObjects *objects);

/* Adds a pod that ran before its file was read; it owns its name. Takes ownership of the pod, also
 * on failure. */
int manifest_entry_restore_pod_take(ManifestEntry *entry, Pod *pod);

/* The same for a DaemonSet. */
int manifest_entry_restore_set_take(ManifestEntry *entry, DaemonSet *set);

/* Sets the error of a file, NULL: none. True if it has changed. Takes ownership of the text. */
bool manifest_entry_set_error_take(ManifestEntry *entry, char *error_text);

/* Determines for each name which entry owns it, and sets manifest.pods, manifest.data and
 * manifest.error. An owner keeps its name; otherwise the first file by name gets it; a missing file
 * loses its names to an existing one. 1 if anything changed, 0, -ENOMEM. */
int manifest_table_resolve_names(ManifestTable *table, uint64_t now_realtime_usec);
