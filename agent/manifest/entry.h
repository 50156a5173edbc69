/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What is known of one file of the directory, and which file may have which pod name. */

#include "agent/manifest/manifest.h"
#include "agent/manifest/reader.h"

typedef struct Entry {
        Manifest manifest; /* its pods are borrowed from 'pods' */
        FileStamp stamp;
        LIST_OF(Pod *) pods;        /* of the last good bytes, all of them */
        bool *holds;                /* for each: it has its name, no other file may take it */
        LIST_OF(DataObject *) data; /* likewise */
        bool *data_holds;
        bool holds_default;              /* its PriorityClass is that of pods that name none */
        LIST_OF(DaemonSet *) daemonsets; /* likewise */
        bool *daemonset_holds;
        char *trouble;          /* why the bytes that are there are not used, without conflicts */
        uint64_t missing_since; /* boottime; 0: it is there */
        unsigned generation;    /* of the scan that saw it last */
} Entry;

/* All entries, sorted by file name. */
typedef struct EntryTable {
        Entry **entries;
        const Manifest **manifests; /* of the entries, in their order */
        size_t n;
        unsigned data_generation; /* another one when any ConfigMap or Secret is */
} EntryTable;

/* The entry of a file, made where there is none; NULL where memory ends. */
Entry *entry_table_get(EntryTable *table, const char *file);
Entry *entry_table_find(const EntryTable *table, const char *file);
void entry_table_remove(EntryTable *table, size_t i);
void entry_table_done(EntryTable *table);

/* An object that is immutable stays as it is as long as its file has it. 0, or -EINVAL where one of
 * the new objects is another than the one of its name. */
int entry_check_immutable(const Entry *entry, const ManifestObjects *objects, Error *reterr);

/* The selector of a DaemonSet is for good: its pods are told by it. 0, or -EINVAL where one of the
 * new objects has another than the set of its name. */
int entry_check_selectors(const Entry *entry, const ManifestObjects *objects, Error *reterr);

/* Takes new objects and warnings in place of the old; a name that was held before is held still. 0
 * or -ENOMEM, and then all is as it was. */
int entry_set_objects(EntryTable *table, Entry *entry, ManifestObjects *objects);

/* Adds a pod that ran before there was a file; it holds its name. Takes the pod, on failure too. */
int entry_seed_take(Entry *entry, Pod *pod);

/* The same of a DaemonSet. */
int entry_seed_daemonset_take(Entry *entry, DaemonSet *set);

/* Says why the bytes are not used, NULL: they are. True where that is news. Takes the text. */
bool entry_set_trouble_take(Entry *entry, char *trouble);

/* Decides over all entries who has which name, and fills in manifest.pods, manifest.data and
 * manifest.error. Who had a name keeps it, then the first by file name gets it; a file that is
 * missing gives its names up to one that is there. 1 where anything changed, 0, -ENOMEM. */
int entry_table_resolve(EntryTable *table, uint64_t now_realtime_usec);
