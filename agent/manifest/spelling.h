/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Suggestions for an unknown field: the field that was probably intended. */

#include "agent/model/schema.h"

/* The key of the field with a similar spelling, or NULL. */
const char *suggest_field_key(const Schema *schema, const char *key);
