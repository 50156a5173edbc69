/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The result of a session, a v1.Status as JSON. Pure. */

/* The message of a failure, for clients of protocols without JSON; NULL on success. The caller
 * frees it. */
char *session_result_failure(const char *status);

/* The result of a session that could not take place; NULL: out of memory. The caller frees it. */
char *session_result_of_error(const char *message);
