/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Why a pod is not ready, for the message of a rollback. Pure. */

#include "agent/model/status.h"

/* "container main: CrashLoopBackOff: back-off …", of the first container that has a reason;
 * otherwise the message of the pod's conditions. One line, which the caller frees; NULL: out of
 * memory. */
char *explain_unready_pod(const PodStatus *status);
