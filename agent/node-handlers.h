/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The handler of /node on the local socket. */

/* The Node as JSON that the caller frees, or NULL. 'userdata' is the Agent. */
char *agent_get_node(void *userdata);
