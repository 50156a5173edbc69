/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The log in the journal, if standard error is connected to it: adds the fields POD_NAMESPACE=,
 * POD_NAME=, POD_UID=, CONTAINER_NAME= and MESSAGE_ID= to messages, and logs events of pods that
 * are not logged otherwise. */

#include "agent/model/event.h"

/* Sends the log to the journal's socket at 'socket_path' (borrowed) from now on; does nothing if
 * standard error is not the journal. The agent never waits for the journal: messages that it does
 * not accept are counted, and the count precedes the next message that it accepts. */
void journal_attach_log(const char *socket_path);

/* Logs an event when it occurs for the first time, unless a log message reports the same. */
void journal_report_event(const PodEvent *event);
