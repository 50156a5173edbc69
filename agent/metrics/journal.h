/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The log in the journal, if standard error is connected to it: messages get the fields
 * POD_NAMESPACE=, POD_NAME=, POD_UID=, CONTAINER_NAME= and MESSAGE_ID=, and events of pods that are
 * not logged otherwise are logged. */

#include "agent/model/event.h"

/* The log is sent to the journal's socket at 'socket_path' (borrowed) from now on; if standard
 * error is not the journal, nothing changes. The agent never waits for the journal: messages that
 * it does not take are counted, and the next one that it takes is preceded by the count. */
void journal_attach_log(const char *socket_path);

/* Logs an event that occurs for the first time, unless a log message reports the same. */
void journal_report_event(const PodEvent *event);
