/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The journal, where it is what our standard error goes to: sentences get fields by which they are
 * found (POD_NAMESPACE=, POD_NAME=, POD_UID=, CONTAINER_NAME=, MESSAGE_ID=), and what is told of
 * pods as events and stands in no sentence of the log is told as well. */

#include "agent/model/event.h"

/* From here on the log goes to the journal that listens at 'socket_path' (borrowed), with its
 * fields; where standard error is something else, nothing changes. Nobody waits for a journal that
 * stands still: what it does not take is counted, and the first sentence that it takes says so. */
void journal_attach_log(const char *socket_path);

/* An event that is told for the first time; those that the log has a sentence about are not said
 * again. */
void journal_report_event(const PodEvent *event);
