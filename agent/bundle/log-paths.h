/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The log files of a pod's containers (/var/log/pods, /var/log/containers): finding the attempts
 * that have one, and removing them. The shim writes and rotates them. */

#include "agent/bundle/bundle-settings.h"

/* The highest attempt that has a log, or -1. Like the kubelet, the agent restores a lost restart
 * count from it. */
int bundle_last_logged_attempt(const BundleConfig *config, const Pod *pod, const char *container);

/* Whether this attempt has a log file. */
bool bundle_has_log(const BundleConfig *config, const Pod *pod, const char *container,
                    unsigned attempt);

/* Removes the logs of all attempts before this one, with their rotated files and symlinks. */
void bundle_remove_logs_before(const BundleConfig *config, const Pod *pod, const char *container,
                               unsigned attempt);

/* The journal fields for a container's log lines, each "NAME=value", named as in other container
 * engines; NULL if its logs are not written to the journal. The caller frees them. 0 or -ENOMEM. */
int bundle_journal_fields(const BundleConfig *config, const Pod *pod, const Container *container,
                          const char *id, char ***ret);

/* Removes all symlinks to the files of a pod's log directory. */
void bundle_remove_log_links(const BundleConfig *config, const char *log_dir);

/* The log directory of a pod of which only the UID is known, or NULL. */
char *bundle_find_log_dir(const BundleConfig *config, const char *uid);
