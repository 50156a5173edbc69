/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Network configuration lists (conflist), as passed to the plugins. */

#include "common/error.h"

#include <jansson.h>

/* Parses and validates a list, or a single plugin's configuration, which becomes a list of one:
 * {name, cniVersion, disableCheck, plugins: [...]}. The caller owns the reference. 0, -ENOMEM or
 * -EINVAL with a message. */
int cni_config_list_parse(const char *text, json_t **ret, Error *reterr);

/* 0; -EINVAL if the value is nested more deeply than 'max_depth'. */
int cni_check_json_depth(const json_t *value, unsigned max_depth);

/* Compares CNI versions: -1, 0 or 1 if 'a' is less than, equal to or greater than 'b'. Both must be
 * supported versions. */
int cni_version_compare(const char *a, const char *b);
