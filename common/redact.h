/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Removes values that may be secret from what is given to others. The list of what is removed is in
 * the table of redact.c, and in mainstay(1). */

#include <jansson.h>
#include <stdbool.h>

#define REDACTED "<masked>"

/* Which texts: those of the agent have no values behind names such as "password". */
typedef enum RedactedText {
        REDACT_AGENT,     /* private keys, tokens, passwords of URLs */
        REDACT_CONTAINER, /* also what follows names such as "password" */
} RedactedText;

/* The text without secret values, which the caller frees; NULL: out of memory. */
char *redact_text(const char *text, RedactedText kind);

/* Replaces, in the JSON of API objects: values of variables, headers of probes, data of ConfigMaps
 * and Secrets, the previous manifest of kubectl, and what redact_text() finds in any string. 0 or
 * -ENOMEM. */
int redact_json(json_t *json);
