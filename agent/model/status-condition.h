/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Conditions of API objects as jansson trees. Pure. */

#include <jansson.h>

/* The condition of that type in the object's status, borrowed; NULL if it is absent. */
const json_t *find_status_condition(const json_t *object, const char *type);
