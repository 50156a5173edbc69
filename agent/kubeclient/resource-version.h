/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Compares resourceVersions. */

/* Compares them as numbers; 0 if one of them is not a number or NULL: then they cannot be
 * compared. */
int resource_version_compare(const char *a, const char *b);
