/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What somebody may have meant who wrote a key that is not there. */

#include "agent/model/schema.h"

/* The key of a field that is spelled nearly so, or NULL. */
const char *suggest_field_key(const Schema *schema, const char *key);
