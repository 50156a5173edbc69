/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The kinds of objects that a file may contain in addition to those that a node runs: published
 * manifests contain a DaemonSet together with its ServiceAccount, its roles and its custom
 * resources. */

#include "agent/manifest/yaml-tree.h"

#define RUNNABLE_KINDS "Pod, DaemonSet, ConfigMap, Secret, PriorityClass, RuntimeClass and List"

/* A custom resource that the file defines itself. */
typedef struct CustomKind {
        const char *group; /* 'group' and 'kind' are borrowed from the tree */
        const char *kind;
} CustomKind;

/* The objects of a file that a node does not run. */
typedef struct ForeignKinds {
        CustomKind *defined; /* defined by its CustomResourceDefinitions; sorted */
        size_t n_defined;
        char **skipped; /* kinds, without duplicates, in the order of the file */
        size_t n_more;  /* the number beyond the limit of 'skipped' */
} ForeignKinds;

/* Finds the CustomResourceDefinitions of a file. 0 or -ENOMEM. The result borrows from the tree;
 * the caller frees it with foreign_kinds_done(). */
int foreign_kinds_find(const YamlTree *tree, ForeignKinds *ret);
void foreign_kinds_done(ForeignKinds *foreign);

/* Whether objects of that kind are irrelevant to a node and can be skipped: Kubernetes' own kinds
 * that run nothing, those of widely used extensions, and those that the file defines. */
bool foreign_kinds_can_skip(const ForeignKinds *foreign, const char *version, const char *kind);

/* Whether a DaemonSet is for Windows nodes, by its node selector or its field 'os': it is usually
 * published together with one for Linux, and contains paths that do not exist on Linux. */
bool daemonset_is_for_windows(const YamlNode *object);

/* Whether a controller in a cluster creates pods for objects of that kind: such an object must not
 * be skipped, because it is the purpose of the file. '*ret_advice' names the kind to use on a node
 * instead. */
bool kind_is_workload(const char *kind, const char **ret_advice);

/* Records that an object was skipped. 0 or -ENOMEM. */
int foreign_kinds_skip(ForeignKinds *foreign, const char *version, const char *kind);

/* The sentence about the skipped objects; the caller frees it. NULL: out of memory. */
char *foreign_kinds_explain(const ForeignKinds *foreign);
