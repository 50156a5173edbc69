/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Kernel parameters (sysctls) of the pod's own namespaces, in which this process runs. */

#include "common/error.h"

/* Sets the parameters in <pod_dir>/sysctls, in the format of sysctl.d(5); if the file does not
 * exist, nothing is set. 0, or -errno and the message. */
int sysctls_apply(const char *pod_dir, Error *reterr);
