/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Selects pods: by namespace, name and labels. */

#include "agent/cli/cli.h"

/* Labels: "key=value,key==value,key!=value,key,!key". */
typedef struct LabelRequirement {
        char *key;
        char *value; /* NULL: only the key is compared */
        bool is_negated;
} LabelRequirement;

typedef struct Selector {
        LabelRequirement *items;
        size_t n;
} Selector;

/* 0, or -EINVAL with a message. NULL or "" selects everything. */
int selector_parse(const char *text, Selector *ret, Error *reterr);
bool selector_matches(const Selector *selector, const json_t *labels);
void selector_done(Selector *selector);

typedef struct PodFilter {
        const char *namespace; /* NULL: all */
        char *const *names;    /* empty: all */
        size_t n_names;
        Selector selector;
} PodFilter;

/* Takes namespace, names and selector from a command line whose first word is the resource "pods".
 * 0, -EINVAL with a message. */
int pod_filter_init(PodFilter *filter, const Options *options, char *const *names, size_t n_names,
                    Error *reterr);
void pod_filter_done(PodFilter *filter);

/* True if 'name' refers to the pod: its name, or its name without the node suffix. */
bool pod_is_called(const json_t *pod, const char *name);

/* True if it is Ready, or has succeeded and will never be Ready again. */
bool pod_json_is_ready_or_done(const json_t *pod);

bool pod_filter_matches(const PodFilter *filter, const json_t *pod);

/* Requests all pods and returns those that match the filter, sorted by namespace and name, each
 * with apiVersion and kind; a new array. 0 or -errno with a message. */
int pods_fetch(const char *socket, const PodFilter *filter, json_t **ret, Error *reterr);

/* The first name in the filter that no pod has, or NULL. */
const char *pods_missing_name(const PodFilter *filter, const json_t *pods);

/* Reports the name that was not found, which is an error, or that there are no pods. Returns the
 * exit status. */
int report_missing_pods(const PodFilter *filter, const json_t *pods);

/* Prints "error: …" and "warning: …" for the agent's manifests; or one warning if they cannot be
 * requested. */
void print_manifest_errors(const char *socket);
