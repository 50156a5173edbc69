/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The order of pods: with the annotation mainstay.dev/after, a pod names other pods of this node
 * that must be Ready before it starts, and that are stopped after it when the node shuts down.
 * Kubernetes has no equivalent for pods. Pure. */

#include "agent/model/pod.h"
#include "common/error.h"

enum {
        POD_AFTER_NAMES_MAX = 100
};

/* A name in the annotation; borrowed from the annotation and the pod, and not NUL-terminated. */
typedef struct PodAfterName {
        const char *namespace;
        const char *name;
        size_t namespace_length;
        size_t name_length;
        ObjectSource source; /* source of the pod that has the annotation */
} PodAfterName;

/* The next name in the pod's annotation; '*cursor' is initially NULL. False: there are no more
 * names.
 */
bool pod_after_next(const Pod *pod, const char **cursor, PodAfterName *ret);

/* Whether the value is valid: names, optionally preceded by "<namespace>/", separated by commas. 0,
 * or -EINVAL with a message. */
int pod_after_check(const Pod *pod, Error *reterr);

/* Whether the name refers to this pod: it is the pod's full name, or the name in its manifest
 * without the node name. Pods of sources that the annotation's source does not consider are never
 * referred to. */
bool pod_after_means(const PodAfterName *name, const Pod *pod);

/* Whether 'pod' names 'other' in its annotation. */
bool pod_is_after(const Pod *pod, const Pod *other);

/* Finds pods that wait for one another. 'ret_next[i]' is the index of the next pod that pod i
 * waits for, if its chain of waiting never ends; otherwise n. 0 or -ENOMEM. */
int pod_order_find_cycles(const Pod *const *pods, size_t n, size_t *ret_next);

/* "default/web after default/db after default/web": the cycle that starts with this pod, from the
 * result of pod_order_find_cycles(); and the same as an error message about its file. The caller
 * frees it; NULL: out of memory. */
char *pod_order_format_cycle(const Pod *const *pods, size_t n, const size_t *next, size_t from);
char *pod_order_explain_cycle(const char *file, const Pod *const *pods, size_t n,
                              const size_t *next, size_t from);

/* The number of steps in which the pods are stopped, and the step of each pod: pods that others
 * name are stopped later. Pods of a cycle are in the step in which the cycle was found. 0 or
 * -ENOMEM. */
int pod_order_stop_steps(const Pod *const *pods, size_t n, size_t *ret_steps, size_t *ret_n_steps);
