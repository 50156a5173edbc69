/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* resourceVersions, and how they stand in a URL. */

/* As numbers, where both are; else 0, for of the others nothing can be said. NULL likewise. */
int resource_version_compare(const char *a, const char *b);

/* All but letters, digits and "-._~" as %XX, in memory that the caller frees, or NULL. */
char *url_escape(const char *text);
