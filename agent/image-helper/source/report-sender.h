/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Sends a report: one POST of 'settings->body'. The process has access to nothing but the network
 * while it does. What the server answers is read for its status only. */

#include "agent/image-helper/source/source-settings.h"

/* 0: the server took it (2xx); or -errno with a message. */
int send_report(const SourceSettings *settings, Error *reterr);
