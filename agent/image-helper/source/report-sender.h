/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Sends a report: one POST of 'settings->body'. The process has access to nothing but the network
 * while it does. Only the status of the server's response is read. */

#include "agent/image-helper/source/source-settings.h"

/* 0: the server took it (2xx); or -errno with a message. */
int send_report(const SourceSettings *settings, Error *reterr);
