/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Labels and selectors of JSON objects as kubectl prints them. Pure. */

#include <jansson.h>

/* "a=b,c=d", or "<none>". The caller frees it; NULL: out of memory. */
char *format_pairs(json_t *map);

/* The same for a label selector: "a=b,c in (d,e),!f". */
char *format_label_selector(const json_t *selector);
