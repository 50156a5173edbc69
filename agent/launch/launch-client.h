/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The client: it stands in for a program that the server starts. */

/* Runs the program of this name with these arguments and the environment and streams of this
 * process. The exit status; or ends by the signal that ended the program. */
int launch_client(const char *program, char *const *argv);
