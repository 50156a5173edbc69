/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Compares resourceVersions. */

/* Compares them as numbers; 0 if one of them is NULL or not a number, so that they cannot be
 * compared. */
int resource_version_compare(const char *a, const char *b);
