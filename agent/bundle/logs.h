/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The logs of a pod as files: which attempts there are, and their end. The shim writes them. */

#include "agent/bundle/bundle.h"

/* The highest attempt that has a log, or -1: how the kubelet too finds a lost restart count again.
 */
int bundle_last_logged_attempt(const BundleConfig *config, const Pod *pod, const char *container);

/* Removes the logs of all attempts before one, with their rotated files and their links. */
void bundle_remove_logs_before(const BundleConfig *config, const Pod *pod, const char *container,
                               unsigned attempt);

/* What the journal shall know of a container's lines, "NAME=value" each, as other engines tell it;
 * NULL where they do not go there. The caller frees them. 0 or -ENOMEM. */
int bundle_journal_fields(const BundleConfig *config, const Pod *pod, const Container *container,
                          const char *id, char ***ret);

/* Removes all links to what is in a pod's log directory. */
void bundle_remove_log_links(const BundleConfig *config, const char *log_dir);

/* The log directory of a pod of which nobody knows more than the UID, or NULL. */
char *bundle_find_log_dir(const BundleConfig *config, const char *uid);
