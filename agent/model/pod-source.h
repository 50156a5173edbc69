/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Where a pod or a DaemonSet comes from (the kubelet's config source: file, http, api): a file of
 * the manifest directory, what staticPodURL gave, a file of a signed index, the API server, a
 * DaemonSet of the API server that is evaluated on this node, or an orphan that its DaemonSet left
 * behind. It does not say what the source contains. */

#include "agent/model/pod.h"

typedef enum PodSourceKind {
        POD_SOURCE_FILE,                /* of the manifest directory; also of its DaemonSets */
        POD_SOURCE_URL,                 /* what staticPodURL gave; likewise */
        POD_SOURCE_INDEX,               /* a file of a signed index; likewise */
        POD_SOURCE_APISERVER,           /* a pod that the API server has bound to this node */
        POD_SOURCE_APISERVER_DAEMONSET, /* a DaemonSet of the API server, evaluated here */
        POD_SOURCE_ORPHAN,              /* a pod that its DaemonSet left behind */
        N_POD_SOURCE_KINDS,
} PodSourceKind;

typedef struct PodSource {
        PodSourceKind kind;
        char *name; /* of the manifest (Manifest.file); else NULL */
} PodSource;

/* The names of manifests that were fetched, none of which is one of a file in the manifest
 * directory: the only one of staticPodURL, and the start of those of an index, which the file's own
 * name follows. */
#define POD_SOURCE_URL_NAME     "staticPodURL"
#define POD_SOURCE_INDEX_PREFIX "source/"

/* A source whose name is borrowed: of a manifest, whose name decides the kind. */
PodSource pod_source_of_file(const char *name);

/* Whose it is. Only pods of DaemonSets of the manifest directory can be left behind. */
ObjectSource pod_source_origin(const PodSource *source);

/* Sets the pod's source, and the kubelet's annotation of it, or removes that: whatever is written
 * there, by a user of an API server into the template of a DaemonSet perhaps. 0 or -ENOMEM. */
int pod_set_source(Pod *pod, const PodSource *source);

/* It has a manifest: a file, fetched or not. */
bool pod_source_is_manifest(const PodSource *source);

/* Whether a pod of 'a' may take from one of 'b' what both need, a name or a port of the host: a
 * file of the manifest directory is the machine's administrator's, what is fetched is that of those
 * whom he has named in the configuration, and the rest is the API server's, whose users he does not
 * know. Orphans count as the API server's. */
bool pod_source_outranks(const PodSource *a, const PodSource *b);

/* 0 or -ENOMEM; the caller ends the copy with pod_source_done(). */
int pod_source_copy(const PodSource *source, PodSource *ret);
void pod_source_done(PodSource *source);
bool pod_sources_equal(const PodSource *a, const PodSource *b);

/* The text in records: the manifest's name, or "the API server", "[API server]", "(no file)", which
 * are not names of manifests. The format borrows; the parser gives a copy, or -ENOMEM. */
const char *pod_source_format(const PodSource *source);
int pod_source_parse(const char *text, PodSource *ret);

/* In a message: "web.yaml", "the API server", "the DaemonSet of the API server". Borrowed. */
const char *pod_source_describe(const PodSource *source);

/* For display. The caller frees it; NULL: out of memory. Of a DaemonSet, ConfigMap, Secret or
 * class: "file web.yaml", "url", "index web.yaml", "api". Of a pod: the same; "api (as logd-x2x4z)"
 * where it was adopted for a pod of the API server; "evaluated (file logd.yaml)", "evaluated (api)"
 * of a DaemonSet's; "left by a DaemonSet". */
char *print_daemonset_source(const PodSource *source);
char *print_pod_source(const PodSource *source, const Pod *pod);
