/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The names of signals. */

#include "common/error.h"

/* Parses "SIGTERM", "TERM", "SIGRTMIN+3", "SIGRTMAX-1" or a number, as used in images and pods. 0:
 * not a signal. */
int signal_from_name(const char *text);

/* "SIGTERM", "SIGRTMIN+3"; "SIG<number>" for a number without a name. Returns the buffer. */
enum {
        SIGNAL_NAME_SIZE = 24
};
const char *signal_name(int signal, char buffer[SIGNAL_NAME_SIZE]);

/* A signal in Kubernetes' list for Linux; a check for a Schema. */
int check_stop_signal(const char *value, Error *reterr);
