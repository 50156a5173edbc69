/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The client, which stands in for a program that the server starts. */

/* Runs the program of this name with these arguments, and with the environment and the streams of
 * this process. Returns the exit status; if a signal ended the program, this process ends by the
 * same signal. */
int launch_client(const char *program, char *const *argv);
