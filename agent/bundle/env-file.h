/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* fileKeyRef: variables that an earlier container of the pod has written into a file of an
 * emptyDir. */

#include "agent/bundle/bundle-settings.h"

enum {
        ENV_FILE_MAX = 64 * 1024 /* Kubernetes' limit */
};

/* The value of a variable in the text of a file, according to Kubernetes' rules (a subset of POSIX
 * shell): lines NAME='value' without expansion, with values that may span lines; blank lines and
 * lines that start with '#' are skipped. 0, with NULL if the variable is not set; -EBADMSG with a
 * message if a line before it is malformed; -ENOMEM. The caller frees the value. */
int env_file_find(const char *text, const char *name, char **ret, Error *reterr);

/* Reads the variable from a file in a volume of the pod; the content is untrusted. The value is
 * also NULL if the file or key is optional and does not exist. -BUNDLE_CONFIG_ERROR if a required
 * one does not exist or cannot be read. */
int env_file_value(const BundleConfig *config, const Pod *pod, const FileKeySelector *selector,
                   char **ret, Error *reterr);
