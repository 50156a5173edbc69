/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* JSON that is whole, or not there. What is built of many small values does not check each of them,
 * and jansson does not check all of its own allocations: where its buffer cannot grow, json_dumps()
 * leaves out the name of a member, and json_loads() reads and writes beyond the end of a string.
 * So its allocations never fail: they come from a reserve, and are counted, and what was made
 * meanwhile is given up. A process that has used up the reserve as well ends by abort(). Not for
 * several threads at once. */

#include <jansson.h>

/* How many allocations of jansson have failed. Who builds an object compares this before and after:
 * where it differs, something may be missing in it, and -ENOMEM is the result. */
unsigned json_failed_allocations(void);

/* json_loadb(), which does not say whether the text or the memory was at fault. 0 and the value,
 * which the caller frees; -EBADMSG with the place in 'ret_problem', which may be NULL; -ENOMEM. */
int json_parse_text(const char *text, size_t length, size_t flags, json_t **ret,
                    json_error_t *ret_problem);

/* json_dumps(): memory that the caller frees; NULL also where a part of the text would be missing.
 */
char *json_to_text(const json_t *json, size_t flags);
