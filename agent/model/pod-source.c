/* SPDX-License-Identifier: Apache-2.0 */
/* The text forms of a pod's source, in records and for users. */

#include "agent/model/pod-source.h"

#include "agent/model/pod-adoption.h"
#include "common/cleanup.h"
#include "common/text.h"

/* The texts are part of the records' format and must not change. */
static const char *const source_texts[N_POD_SOURCE_KINDS] = {
        [POD_SOURCE_APISERVER] = "the API server",
        [POD_SOURCE_APISERVER_DAEMONSET] = "[API server]",
        [POD_SOURCE_ORPHAN] = "(no file)",
};

PodSource pod_source_of_file(const char *name) {
        size_t n_prefix = strlen(POD_SOURCE_INDEX_PREFIX);
        PodSourceKind kind = streq(name, POD_SOURCE_URL_NAME) ? POD_SOURCE_URL
                             : strncmp(name, POD_SOURCE_INDEX_PREFIX, n_prefix) == 0
                                     ? POD_SOURCE_INDEX
                                     : POD_SOURCE_FILE;

        return (PodSource){ kind, (char *) (uintptr_t) name };
}

ObjectSource pod_source_origin(const PodSource *source) {
        static const ObjectSource origins[N_POD_SOURCE_KINDS] = {
                [POD_SOURCE_FILE] = OBJECT_SOURCE_FILE,
                [POD_SOURCE_URL] = OBJECT_SOURCE_URL,
                [POD_SOURCE_INDEX] = OBJECT_SOURCE_INDEX,
                [POD_SOURCE_APISERVER] = OBJECT_SOURCE_APISERVER,
                [POD_SOURCE_APISERVER_DAEMONSET] = OBJECT_SOURCE_APISERVER,
                [POD_SOURCE_ORPHAN] = OBJECT_SOURCE_FILE,
        };

        return origins[source->kind];
}

int pod_set_source(Pod *pod, const PodSource *source) {
        static const char *const words[N_POD_SOURCE_KINDS] = {
                [POD_SOURCE_FILE] = "file",   [POD_SOURCE_URL] = "http",
                [POD_SOURCE_INDEX] = "http",  [POD_SOURCE_APISERVER] = "api",
                [POD_SOURCE_ORPHAN] = "file",
        };
        const char *word = words[source->kind];

        pod->metadata.source = pod_source_origin(source);
        if (word)
                return string_map_set(&pod->metadata.annotations, pod_source_annotation, word);
        string_map_remove(&pod->metadata.annotations, pod_source_annotation);
        return 0;
}

bool pod_source_is_manifest(const PodSource *source) {
        return source->kind == POD_SOURCE_FILE || source->kind == POD_SOURCE_URL ||
               source->kind == POD_SOURCE_INDEX;
}

static unsigned trust_of_source(PodSourceKind kind) {
        switch (kind) {
        case POD_SOURCE_FILE:
        case POD_SOURCE_ORPHAN:
                return 2;
        case POD_SOURCE_URL:
        case POD_SOURCE_INDEX:
                return 1;
        case POD_SOURCE_APISERVER:
        case POD_SOURCE_APISERVER_DAEMONSET:
        case N_POD_SOURCE_KINDS:
                break;
        }
        return 0;
}

bool pod_source_outranks(const PodSource *a, const PodSource *b) {
        return trust_of_source(a->kind) > trust_of_source(b->kind);
}

int pod_source_copy(const PodSource *source, PodSource *ret) {
        char *name = source->name ? strdup(source->name) : NULL;

        if (source->name && !name)
                return -ENOMEM;
        *ret = (PodSource){ source->kind, name };
        return 0;
}

void pod_source_done(PodSource *source) {
        free(source->name);
        *source = (PodSource){ 0 };
}

bool pod_sources_equal(const PodSource *a, const PodSource *b) {
        return a->kind == b->kind && streq_ptr(a->name, b->name);
}

const char *pod_source_format(const PodSource *source) {
        return pod_source_is_manifest(source) ? strna(source->name) : source_texts[source->kind];
}

int pod_source_parse(const char *text, PodSource *ret) {
        const PodSource manifest = pod_source_of_file(text);

        for (PodSourceKind kind = 0; kind < N_POD_SOURCE_KINDS; kind++)
                if (streq_ptr(source_texts[kind], text)) {
                        *ret = (PodSource){ .kind = kind };
                        return 0;
                }
        return pod_source_copy(&manifest, ret);
}

const char *pod_source_describe(const PodSource *source) {
        static const char *const names[N_POD_SOURCE_KINDS] = {
                [POD_SOURCE_APISERVER] = "the API server",
                [POD_SOURCE_APISERVER_DAEMONSET] = "the DaemonSet of the API server",
                [POD_SOURCE_ORPHAN] = "the DaemonSet that left it behind",
        };

        return pod_source_is_manifest(source) ? strna(source->name) : names[source->kind];
}

char *print_daemonset_source(const PodSource *source) {
        const char *name = strna(source->name);

        if (!pod_source_is_manifest(source))
                return strdup("api");
        if (source->kind == POD_SOURCE_URL)
                return strdup("url");
        if (source->kind == POD_SOURCE_INDEX)
                return text_format("index %s", name + strlen(POD_SOURCE_INDEX_PREFIX));
        return text_format("file %s", name);
}

static char *print_apiserver_source(const Pod *pod) {
        cleanup_free char *api_name = pod_adoption_api_name(pod);

        if (!api_name)
                return strdup("api");
        return text_format("api (as %s)", api_name);
}

char *print_pod_source(const PodSource *source, const Pod *pod) {
        cleanup_free char *daemonset_source = NULL;

        if (source->kind == POD_SOURCE_APISERVER)
                return print_apiserver_source(pod);
        if (source->kind == POD_SOURCE_ORPHAN)
                return strdup("left by a DaemonSet");
        daemonset_source = print_daemonset_source(source);
        if (!daemonset_source || !object_controlling_daemonset(&pod->metadata))
                return TAKE_PTR(daemonset_source);
        return text_format("evaluated (%s)", daemonset_source);
}
