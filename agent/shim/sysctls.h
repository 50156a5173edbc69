/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Kernel parameters of the pod's own namespaces, which this process is in. */

#include "common/error.h"

/* Sets what <pod_dir>/sysctls says, a file in the format of sysctl.d(5); one that is not there says
 * nothing. 0, or -errno and the sentence. */
int sysctls_apply(const char *pod_dir, Error *reterr);
