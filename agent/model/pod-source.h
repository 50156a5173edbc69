/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The source of a pod or a DaemonSet (the kubelet's config source: file, http, api): a file of the
 * manifest directory, the content of staticPodURL, a file of a signed index, the API server, a
 * DaemonSet of the API server that is evaluated on this node, or an orphan that its DaemonSet left
 * behind. */

#include "agent/model/pod.h"

typedef enum PodSourceKind {
        POD_SOURCE_FILE,                /* a file of the manifest directory; also for its
                                         * DaemonSets */
        POD_SOURCE_URL,                 /* the content of staticPodURL; also for its DaemonSets */
        POD_SOURCE_INDEX,               /* a file of a signed index; also for its DaemonSets */
        POD_SOURCE_APISERVER,           /* a pod that the API server has bound to this node */
        POD_SOURCE_APISERVER_DAEMONSET, /* a DaemonSet of the API server, evaluated here */
        POD_SOURCE_ORPHAN,              /* a pod that its deleted DaemonSet left behind */
        N_POD_SOURCE_KINDS,
} PodSourceKind;

typedef struct PodSource {
        PodSourceKind kind;
        char *name; /* name of the manifest (Manifest.file); else NULL */
} PodSource;

/* The names of fetched manifests, which are never names of files in the manifest directory: the
 * only one of staticPodURL, and the prefix for those of an index, followed by the file's own
 * name. */
#define POD_SOURCE_URL_NAME     "staticPodURL"
#define POD_SOURCE_INDEX_PREFIX "source/"

/* A source with a borrowed name: that of a manifest, which also determines the kind. */
PodSource pod_source_of_file(const char *name);

/* The kind of source that owns the pod. Only DaemonSets of the manifest directory can leave pods
 * behind. */
ObjectSource pod_source_origin(const PodSource *source);

/* Sets the pod's source, and sets or removes the kubelet's annotation for it, regardless of its
 * current value, which a user of an API server may have written into the template of a DaemonSet. 0
 * or -ENOMEM. */
int pod_set_source(Pod *pod, const PodSource *source);

/* Whether it has a manifest: a file, fetched or not. */
bool pod_source_is_manifest(const PodSource *source);

/* Whether a pod of 'a' may take a name, a host port or a device from a pod of 'b' if both need it.
 * A file of the manifest directory belongs to the machine's administrator, fetched manifests belong
 * to those whom the administrator has named in the configuration, and everything else to the API
 * server, whose users the administrator does not know. Orphans rank like the API server. */
bool pod_source_outranks(const PodSource *a, const PodSource *b);

/* 0 or -ENOMEM; the caller releases the copy with pod_source_done(). */
int pod_source_copy(const PodSource *source, PodSource *ret);
void pod_source_done(PodSource *source);
bool pod_sources_equal(const PodSource *a, const PodSource *b);

/* The text form for records: the manifest's name, or "the API server", "[API server]", "(no file)",
 * which are not names of manifests. The formatter borrows; the parser returns a copy, or
 * -ENOMEM. */
const char *pod_source_format(const PodSource *source);
int pod_source_parse(const char *text, PodSource *ret);

/* The text form for messages: "web.yaml", "the API server", "the DaemonSet of the API server".
 * Borrowed. */
const char *pod_source_describe(const PodSource *source);

/* The text form for display. The caller frees it; NULL: out of memory. For a DaemonSet, ConfigMap,
 * Secret or class: "file web.yaml", "url", "index web.yaml", "api". For a pod: the same; "api (as
 * logd-x2x4z)" if it was adopted for a pod of the API server; "evaluated (file logd.yaml)" or
 * "evaluated (api)" if it belongs to a DaemonSet; "left by a DaemonSet". */
char *print_daemonset_source(const PodSource *source);
char *print_pod_source(const PodSource *source, const Pod *pod);
