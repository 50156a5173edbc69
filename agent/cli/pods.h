/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Which pods are meant: by namespace, name, labels. */

#include "agent/cli/cli.h"

/* Labels: "key=value,key==value,key!=value,key,!key". */
typedef struct LabelRequirement {
        char *key;
        char *value; /* NULL: the key alone matters */
        bool is_negated;
} LabelRequirement;

typedef struct Selector {
        LabelRequirement *items;
        size_t n;
} Selector;

/* 0, or -EINVAL with a sentence. NULL or "" selects all. */
int selector_parse(const char *text, Selector *ret, Error *reterr);
bool selector_matches(const Selector *selector, const json_t *labels);
void selector_done(Selector *selector);

typedef struct PodFilter {
        const char *namespace; /* NULL: all */
        char *const *names;    /* empty: all */
        size_t n_names;
        Selector selector;
} PodFilter;

/* Takes namespace, names and selector of a command line whose first word is the resource "pods". 0,
 * -EINVAL with a sentence. */
int pod_filter_init(PodFilter *filter, const Options *options, char *const *names, size_t n_names,
                    Error *reterr);
void pod_filter_done(PodFilter *filter);

/* True where 'name' means the pod: its name, or its name without the node's suffix. */
bool pod_is_called(const json_t *pod, const char *name);

bool pod_filter_matches(const PodFilter *filter, const json_t *pod);

/* Asks the agent for all pods and gives those that match, sorted by namespace and name, each with
 * its apiVersion and kind; a new array. 0 or -errno with a sentence. */
int pods_fetch(const char *socket, const PodFilter *filter, json_t **ret, Error *reterr);

/* The first name of the filter that none of the pods has, or NULL. */
const char *pods_missing_name(const PodFilter *filter, const json_t *pods);

/* Says which name none of the pods has, an error; or that there is no pod at all. The exit status.
 */
int report_missing_pods(const PodFilter *filter, const json_t *pods);

/* "error: …" and "warning: …" for what the agent's manifests have; a sentence of its own where that
 * cannot be had. */
void print_manifest_errors(const char *socket);
