/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Removes values that may be secret from data that is passed on. The table in redact.c and
 * mainstay(1) list the removed values. */

#include <jansson.h>
#include <stdbool.h>

#define REDACTED "<masked>"

/* The kind of text. The agent's own texts contain no values after names such as "password". */
typedef enum RedactedText {
        REDACT_AGENT,     /* private keys, tokens, passwords in URLs */
        REDACT_CONTAINER, /* also values after names such as "password" */
} RedactedText;

/* The text without secret values, which the caller frees; NULL: out of memory. */
char *redact_text(const char *text, RedactedText kind);

/* In the JSON of API objects, replaces values of variables, headers of probes, data of ConfigMaps
 * and Secrets, kubectl's last-applied manifest, and in any string the values that redact_text()
 * replaces. 0 or -ENOMEM. */
int redact_json(json_t *json);
