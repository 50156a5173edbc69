/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Compares resourceVersions and escapes text for URLs. */

/* Compares them as numbers; 0 where one of them is not a number or NULL: then they cannot be
 * compared. */
int resource_version_compare(const char *a, const char *b);

/* Escapes all but letters, digits and "-._~" as %XX. The caller frees it; NULL on out of memory. */
char *url_escape(const char *text);
