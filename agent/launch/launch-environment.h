/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The environment of a program that is started for a client. A variable of the dynamic linker, for
 * example, would have it execute anything. */

/* The variables of the server, and of the client those that programs of Mainstay read: proxies, the
 * journal's stream, MAINSTAY_…. The strings are borrowed; NULL: out of memory. */
char **launch_environment(char *const *server, char *const *client);
