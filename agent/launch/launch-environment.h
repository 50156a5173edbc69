/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The environment of a program that is started for a client. It is filtered, because a variable of
 * the dynamic linker, for example, could make the program execute anything. */

/* The variables of the server, together with the client's variables that programs of Mainstay read:
 * proxies, the journal's stream, MAINSTAY_…. The strings are borrowed; NULL: out of memory. */
char **launch_environment(char *const *server, char *const *client);
