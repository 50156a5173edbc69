/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What mainstay-image is given for a pull: imagePullSecrets, mirrors, proxies. */

#include "agent/model/config.h"

/* A memory file with the settings of a pull, because they contain passwords. 'config' may be NULL:
 * defaults; 'auths' are documents with credentials. A descriptor that the caller closes, or -errno.
 */
int pull_settings_open(const MainstayConfig *config, const char *reference, char *const *auths);
