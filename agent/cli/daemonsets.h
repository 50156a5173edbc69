/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DaemonSets as the agent tells of them. */

#include "agent/cli/cli.h"
#include "agent/cli/watch.h"

/* Those that are meant, sorted by namespace and name; a new array. 'namespace' NULL: of all; no
 * names: all. 0 or -errno with a sentence; -ENOENT for a name that none has. */
int daemonsets_fetch(const Options *options, const char *namespace, char *const *names,
                     size_t n_names, json_t **ret, Error *reterr);

/* The same as they change: each is told once as "ADDED" first, then when it is another. As
 * watch_objects(). */
int daemonsets_watch(const Options *options, const char *namespace, char *const *names,
                     size_t n_names, watch_object_t each, void *userdata, Error *reterr);

/* The namespace of a command line, NULL: all. */
const char *daemonsets_namespace(const Options *options);

/* A number of the status. */
long long daemonset_count(const json_t *set, const char *key);

/* "a=b,c=d", or "<none>". The caller frees it; NULL: no memory. */
char *format_pairs(json_t *map);

/* The same of a selector: "a=b,c in (d,e),!f". */
char *format_label_selector(const json_t *selector);

/* Asks for what a person wants of a set: "undo", "restart", "delete", "orphan". 1 where the agent
 * says that it is so already, 0, or -errno with a sentence. */
int request_daemonset_action(const Options *options, const char *namespace, const char *name,
                             const char *verb, const char *revision, Error *reterr);

int describe_daemonsets(const Options *options, char *const *names, size_t n_names);
int delete_daemonsets(const Options *options, char *const *names, size_t n_names);
