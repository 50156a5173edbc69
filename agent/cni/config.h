/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A network configuration list as the plugins are to see it. */

#include "common/error.h"

#include <jansson.h>

/* Parses and validates a list, or a single plugin's configuration, which becomes a list of one:
 * {name, cniVersion, disableCheck, plugins: [...]}. The caller owns the reference. 0, -ENOMEM or
 * -EINVAL with the sentence. */
int cni_config_list_parse(const char *text, json_t **ret, Error *reterr);

/* Whether the text is nested deeper than anything that we hand on. */
int cni_check_json_depth(const json_t *value, unsigned max_depth);

/* JSON numbers that are versions: -1, 0 or 1 as 'a' is less than, equal to or more than 'b'. Both
 * are among those that we know. */
int cni_version_compare(const char *a, const char *b);
