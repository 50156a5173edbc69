/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The number of bytes and inodes that the directories of pods use on disk, for /stats/summary and
 * /metrics/cadvisor. A child walks the directories at most once a minute, and only when a client
 * requests their usage: a request returns the known values, and starts the measurement for the next
 * one. */

#include "agent/model/usage.h"
#include "agent/pods/manager/pod-manager.h"

typedef struct StorageUsage StorageUsage;

/* The strings of 'bundle' and 'shim_path' are borrowed. 0 or -ENOMEM. */
int storage_usage_new(sd_event *event, const BundleConfig *bundle, const char *shim_path,
                      StorageUsage **ret);
StorageUsage *storage_usage_free(StorageUsage *usage);
DEFINE_CLEANUP(StorageUsage *, storage_usage_free)

/* Starts a measurement, unless one is in progress or the last one is recent. */
void storage_usage_refresh(StorageUsage *usage, PodManager *pods);

/* The usage of a directory, and its time: sets 'is_measured' and the members after it. False: it
 * has not been measured. */
bool storage_usage_find(const StorageUsage *usage, const char *path, StorageSample *sample);
