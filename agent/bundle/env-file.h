/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Variables that a container of the pod has written into a file of an emptyDir, for those that
 * begin after it: fileKeyRef. */

#include "agent/bundle/bundle.h"

enum {
        ENV_FILE_MAX = 64 * 1024 /* Kubernetes' limit */
};

/* The value that a file's text gives the name, by Kubernetes' rules, a part of POSIX shell's: lines
 * NAME='value', of which nothing is replaced and which may have several lines; blank lines, and
 * lines that begin with '#'. 0, with NULL where it has none; -EBADMSG with the sentence where what
 * stands before it is no such line; -ENOMEM. The caller frees the value. */
int env_file_find(const char *text, const char *name, char **ret, Error *reterr);

/* The same of the file of a volume of the pod, which a stranger wrote. NULL as well where it need
 * not be there and is not. What must be and is not, or cannot be read, is -BUNDLE_CONFIG_ERROR. */
int env_file_value(const BundleConfig *config, const Pod *pod, const FileKeySelector *selector,
                   char **ret, Error *reterr);
