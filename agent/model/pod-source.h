/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The source of a pod or a DaemonSet (the kubelet's config source: file, http, api): a file of the
 * manifest directory, the content of staticPodURL, a file of a signed index, the API server, a
 * DaemonSet of the API server that is evaluated on this node, or an orphan that its DaemonSet left
 * behind. It does not determine the content of the source. */

#include "agent/model/pod.h"

typedef enum PodSourceKind {
        POD_SOURCE_FILE,                /* of the manifest directory; also of its DaemonSets */
        POD_SOURCE_URL,                 /* the content of staticPodURL, in the same way */
        POD_SOURCE_INDEX,               /* a file of a signed index, in the same way */
        POD_SOURCE_APISERVER,           /* a pod that the API server has bound to this node */
        POD_SOURCE_APISERVER_DAEMONSET, /* a DaemonSet of the API server, evaluated here */
        POD_SOURCE_ORPHAN,              /* a pod that its DaemonSet left behind */
        N_POD_SOURCE_KINDS,
} PodSourceKind;

typedef struct PodSource {
        PodSourceKind kind;
        char *name; /* of the manifest (Manifest.file); else NULL */
} PodSource;

/* The names of manifests that were fetched, none of which is the name of a file in the manifest
 * directory: the only one of staticPodURL, and the prefix of those of an index, which precedes the
 * file's own name. */
#define POD_SOURCE_URL_NAME     "staticPodURL"
#define POD_SOURCE_INDEX_PREFIX "source/"

/* A source whose name is borrowed: of a manifest, whose name decides the kind. */
PodSource pod_source_of_file(const char *name);

/* The owner of the pod. Only pods of DaemonSets of the manifest directory can be left behind. */
ObjectSource pod_source_origin(const PodSource *source);

/* Sets the pod's source, and the kubelet's annotation of it, or removes that: regardless of its
 * current value, which a user of an API server may have written into the template of a DaemonSet. 0
 * or -ENOMEM. */
int pod_set_source(Pod *pod, const PodSource *source);

/* It has a manifest: a file, fetched or not. */
bool pod_source_is_manifest(const PodSource *source);

/* Whether a pod of 'a' may take from one of 'b' something that both need, a name or a host port: a
 * file of the manifest directory belongs to the machine's administrator, fetched manifests to those
 * whom the administrator has named in the configuration, and the rest to the API server, whose
 * users the administrator does not know. Orphans count as the API server's. */
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

/* For display. The caller frees it; NULL: out of memory. For a DaemonSet, ConfigMap, Secret or
 * class: "file web.yaml", "url", "index web.yaml", "api". For a pod: the same; "api (as
 * logd-x2x4z)" if it was adopted for a pod of the API server; "evaluated (file logd.yaml)",
 * "evaluated (api)" for a DaemonSet's; "left by a DaemonSet". */
char *print_daemonset_source(const PodSource *source);
char *print_pod_source(const PodSource *source, const Pod *pod);
