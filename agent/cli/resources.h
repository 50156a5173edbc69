/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The kinds of objects that commands know by kubectl's names and short names. */

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

/* "pods", as sentences and headings name it. */
const char *api_resource_name(ApiResource resource);

/* Reads the words after a command: a resource of those that 'allowed' has the bits of, such as
 * "pods" or "pod/NAME", and names. 0 with the names (which begin at the array that is given), or
 * STATUS_USAGE, said. */
int parse_api_resource(const Options *options, const char *command, unsigned allowed,
                       ApiResource *ret, char *const **ret_names, size_t *ret_n_names);

/* The name in "pod/NAME" or "NAME". */
const char *strip_resource_prefix(const char *word);

/* True where the object has one of the names, or none was given. */
bool object_is_named(const json_t *object, char *const *names, size_t n_names);

/* The condition of that type in the status, borrowed; NULL where there is none. */
const json_t *find_status_condition(const json_t *object, const char *type);

/* The first of the names that none of the objects has, bare; or NULL. */
const char *find_missing_object_name(const json_t *objects, char *const *names, size_t n_names);
