/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Within the room: the pod that is being validated, and how a rule says where it is broken. */

#include "agent/manifest/rules.h"

#include <stdarg.h>

typedef struct Rules {
        const Decoder *decoder;
        const Node *root;
        const DecodePath *path;
        const Pod *pod;
        Error *reterr;
} Rules;

/* Adds the place of a field, whose path from the pod is printed, to the sentence that was said.
 * Returns r. */
int rules_vat(const Rules *rules, int r, const char *format, va_list ap)
        __attribute__((format(printf, 3, 0)));

/* What the pod asks for as a whole, against what its containers do. */
int check_pod_resources(const Rules *rules);

/* Security contexts, namespaces shared with the host or with one another, sysctls, priority. */
int check_security(const Rules *rules);
