/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Requests to the agent about DaemonSets. */

#include "agent/cli/cli.h"
#include "agent/cli/watch.h"

/* The selected DaemonSets, sorted by namespace and name; a new array. If 'namespace' is NULL, those
 * of all namespaces; if there are no names, all. 0 or -errno with a message; -ENOENT for a name
 * that does not exist. */
int daemonsets_fetch(const Options *options, const char *namespace, char *const *names,
                     size_t n_names, json_t **ret, Error *reterr);

/* Watches them: each is reported once as "ADDED", then after each change. Returns the same as
 * watch_objects(). */
int daemonsets_watch(const Options *options, const char *namespace, char *const *names,
                     size_t n_names, watch_object_t each, void *userdata, Error *reterr);

/* The namespace from the command line; NULL: all. */
const char *daemonsets_namespace(const Options *options);

/* A number in the status. */
long long daemonset_count(const json_t *set, const char *key);

/* Requests an action: "undo", "restart", "delete", "orphan". 1 if there was nothing to do, 0, or
 * -errno with a message. */
int request_daemonset_action(const Options *options, const char *namespace, const char *name,
                             const char *verb, const char *revision, Error *reterr);

int describe_daemonsets(const Options *options, char *const *names, size_t n_names);
int delete_daemonsets(const Options *options, char *const *names, size_t n_names);
