/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The kinds of objects that commands know by kubectl's names and short names. */

#include "agent/cli/cli.h"

typedef enum Resource {
        RESOURCE_PODS,
        RESOURCE_EVENTS,
        RESOURCE_IMAGES,
        RESOURCE_CONFIG_MAPS,
        RESOURCE_SECRETS,
        RESOURCE_PRIORITY_CLASSES,
        RESOURCE_RUNTIME_CLASSES,
        RESOURCE_DAEMONSETS,
        RESOURCE_NODES,
        N_RESOURCES,
} Resource;

#define RESOURCE_BIT(resource) (1U << (resource))

/* "pods", as sentences and headings name it. */
const char *resource_name(Resource resource);

/* Reads the words after a command: a resource of those that 'allowed' has the bits of, such as
 * "pods" or "pod/NAME", and names. 0 with the names (which begin at the array that is given), or
 * STATUS_USAGE, said. */
int parse_resource(const Options *options, const char *command, unsigned allowed, Resource *ret,
                   char *const **ret_names, size_t *ret_n_names);

/* The name in "pod/NAME" or "NAME". */
const char *resource_bare_name(const char *word);

/* True where the object has one of the names, or none was given. */
bool resource_is_named(const json_t *object, char *const *names, size_t n_names);

/* The condition of that type in the status, borrowed; NULL where there is none. */
const json_t *resource_condition(const json_t *object, const char *type);

/* The first of the names that none of the objects has, bare; or NULL. */
const char *resource_missing_name(const json_t *objects, char *const *names, size_t n_names);
