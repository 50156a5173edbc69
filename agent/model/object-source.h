/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The source of an object, which is part of its identity, in addition to namespace, name and UID. A
 * node has one source of each kind. Two objects with the same namespace and name, but from two
 * sources, are unrelated, and a pod sees only the objects of its own source. */

#include <stdbool.h>

typedef enum ObjectSource {
        OBJECT_SOURCE_NONE,      /* unknown: it sees no objects, and no pod sees it */
        OBJECT_SOURCE_FILE,      /* root: the files of the manifest directory */
        OBJECT_SOURCE_URL,       /* the server of staticPodURL */
        OBJECT_SOURCE_INDEX,     /* the holder of the index's key */
        OBJECT_SOURCE_APISERVER, /* users of the cluster */
        N_OBJECT_SOURCES,
} ObjectSource;

/* "file", "url", "index", "api": as in the annotation mainstay.dev/source and in the configuration;
 * NULL for OBJECT_SOURCE_NONE. */
extern const char *const object_source_names[N_OBJECT_SOURCES];

/* Whether both are from the same source, which is known. */
bool object_sources_match(ObjectSource a, ObjectSource b);

/* Whether labels, affinity and names of pods of 'other' are considered for pods of 'by', which is
 * the case if 'other' is the same source or has a higher rank. A file has the highest rank, because
 * it belongs to the machine's administrator; users of a cluster have the lowest. */
bool object_source_heeds(ObjectSource by, ObjectSource other);
