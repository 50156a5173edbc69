/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* v1.Status: the Kubernetes API's description of a failure. Pure. */

/* The reason that corresponds to an HTTP status, such as "NotFound". */
const char *status_reason(unsigned code);

/* Its JSON, which the caller frees; NULL: out of memory, or the message is not UTF-8. */
char *status_object_format(unsigned code, const char *message);
