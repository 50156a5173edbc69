/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What is known of one file of the directory, and which file may have which pod name. */

#include "agent/manifest/manifest.h"
#include "agent/manifest/reader.h"

typedef struct ManifestEntry {
        Manifest manifest; /* its pods are borrowed from 'pods' */
        FileStamp stamp;
        LIST_OF(Pod *) pods;        /* of the last good bytes, all of them */
        bool *holds;                /* for each: it has its name, no other file may take it */
        LIST_OF(DataObject *) data; /* likewise */
        bool *data_holds;
        bool holds_default;              /* its PriorityClass is that of pods that name none */
        LIST_OF(DaemonSet *) daemonsets; /* likewise */
        bool *daemonset_holds;
        char *last_error;       /* why the bytes that are there are not used, without conflicts */
        uint64_t missing_since; /* boottime; 0: it is there */
        unsigned generation;    /* of the scan that saw it last */
} ManifestEntry;

/* All entries, sorted by file name. */
typedef struct ManifestTable {
        ManifestEntry **entries;
        const Manifest **manifests; /* of the entries, in their order */
        size_t n;
        unsigned data_generation; /* another one when any ConfigMap or Secret is */
} ManifestTable;

/* The entry of a file, made where there is none; NULL where memory ends. */
ManifestEntry *manifest_table_get(ManifestTable *table, const char *file);
ManifestEntry *manifest_table_find(const ManifestTable *table, const char *file);
void manifest_table_remove(ManifestTable *table, size_t i);
void manifest_table_done(ManifestTable *table);

/* An object that is immutable stays as it is as long as its file has it. 0, or -EINVAL where one of
 * the new objects is another than the one of its name. */
int manifest_entry_check_immutable(const ManifestEntry *entry, const ManifestObjects *objects,
                                   Error *reterr);

/* The selector of a DaemonSet is for good: its pods are told by it. 0, or -EINVAL where one of the
 * new objects has another than the set of its name. */
int manifest_entry_check_selectors(const ManifestEntry *entry, const ManifestObjects *objects,
                                   Error *reterr);

/* Takes new objects and warnings in place of the old; a name that was held before is held still. 0
 * or -ENOMEM, and then all is as it was. */
int manifest_entry_set_objects(ManifestTable *table, ManifestEntry *entry,
                               ManifestObjects *objects);

/* Adds a pod that ran before there was a file; it holds its name. Takes the pod, on failure too. */
int manifest_entry_restore_pod_take(ManifestEntry *entry, Pod *pod);

/* The same of a DaemonSet. */
int manifest_entry_restore_set_take(ManifestEntry *entry, DaemonSet *set);

/* Says why the bytes are not used, NULL: they are. True where that is news. Takes the text. */
bool manifest_entry_set_error_take(ManifestEntry *entry, char *error_text);

/* Decides over all entries who has which name, and fills in manifest.pods, manifest.data and
 * manifest.error. Who had a name keeps it, then the first by file name gets it; a file that is
 * missing gives its names up to one that is there. 1 where anything changed, 0, -ENOMEM. */
int manifest_table_resolve_names(ManifestTable *table, uint64_t now_realtime_usec);
