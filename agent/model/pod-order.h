/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The order of pods: with the annotation mainstay.dev/after a pod names others of this node, which
 * must be Ready before it starts, and which are stopped after it when the node shuts down.
 * Kubernetes has no equivalent for pods. Pure. */

#include "agent/model/pod.h"
#include "common/error.h"

enum {
        POD_AFTER_NAMES_MAX = 100
};

/* A name in the annotation; borrowed from it and from the pod, and not ended by a NUL. */
typedef struct PodAfterName {
        const char *namespace;
        const char *name;
        size_t namespace_length;
        size_t name_length;
        ObjectSource source; /* of the pod that has the annotation */
} PodAfterName;

/* The next name that the pod has; '*cursor' is NULL at first. False: there is no further one. */
bool pod_after_next(const Pod *pod, const char **cursor, PodAfterName *ret);

/* Whether the value can be used: names, each with or without "<namespace>/" before it, separated by
 * commas. 0, or -EINVAL with a message. */
int pod_after_check(const Pod *pod, Error *reterr);

/* The name means this pod: by its full name, or by the one in its manifest, without the node's. A
 * pod of a source that the annotation's does not heed has no name there. */
bool pod_after_means(const PodAfterName *name, const Pod *pod);

/* Whether 'pod' names 'other'. */
bool pod_is_after(const Pod *pod, const Pod *other);

/* Pods that wait for one another. For each of the n pods: the index of the next one that it waits
 * for, if following them never ends; else n. 0 or -ENOMEM. */
int pod_order_find_cycles(const Pod *const *pods, size_t n, size_t *ret_next);

/* "default/web after default/db after default/web": from this pod on, by the result of
 * pod_order_find_cycles(); and the same as the error of its file. The caller frees it; NULL:
 * out of memory. */
char *pod_order_format_cycle(const Pod *const *pods, size_t n, const size_t *next, size_t from);
char *pod_order_explain_cycle(const char *file, const Pod *const *pods, size_t n,
                              const size_t *next, size_t from);

/* In how many steps the pods can be stopped, and in which of them each: those that others are after
 * come later. Pods of a cycle are in the step in which it was found. 0 or -ENOMEM. */
int pod_order_stop_steps(const Pod *const *pods, size_t n, size_t *ret_steps, size_t *ret_n_steps);
