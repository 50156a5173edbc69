/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Resource names and short names, as in kubectl. */

#include "agent/cli/cli.h"

typedef enum ApiResource {
        API_RESOURCE_PODS,
        API_RESOURCE_EVENTS,
        API_RESOURCE_IMAGES,
        API_RESOURCE_CONFIG_MAPS,
        API_RESOURCE_SECRETS,
        API_RESOURCE_PRIORITY_CLASSES,
        API_RESOURCE_RUNTIME_CLASSES,
        API_RESOURCE_DAEMONSETS,
        API_RESOURCE_NODES,
        N_API_RESOURCES,
} ApiResource;

#define API_RESOURCE_BIT(resource) (1U << (resource))

/* "pods", for messages and headings. */
const char *api_resource_name(ApiResource resource);

/* Parses the arguments after a command: a resource in the set 'allowed', such as "pods" or
 * "pod/NAME", and names. 0 with the names (which start at the given array), or STATUS_USAGE after
 * printing an error. */
int parse_api_resource(const Options *options, const char *command, unsigned allowed,
                       ApiResource *ret, char *const **ret_names, size_t *ret_n_names);

/* The name in "pod/NAME" or "NAME". */
const char *strip_resource_prefix(const char *word);

/* True for "daemonset/NAME", with any of the resource's words. */
bool is_daemonset_word(const char *word);

/* True if the first owner of the object (a pod, a revision) is the DaemonSet with that name. */
bool is_owned_by_daemonset(const json_t *object, const char *name);

/* True if the object has one of the names, or no name was given. */
bool object_is_named(const json_t *object, char *const *names, size_t n_names);

/* The first name, without a prefix, that none of the objects has; or NULL. */
const char *find_missing_object_name(const json_t *objects, char *const *names, size_t n_names);
