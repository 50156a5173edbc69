/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Declarations that the files of the image store share. */

#include "agent/image-helper/store/store.h"

struct Store {
        const StoreView *view; /* NULL: everything */
        int fd;
        int tmp_fd;
        int work_fd; /* tmp/<work_name>, locked; or not created yet */
        char work_name[17];
        char **staged; /* final paths of files that are in the work directory as "staged-0", … */
};

/* The part of one blob, see store_sweep_downloads(), by its name in partial/. */
void store_sweep_partial_blob(const Store *store, const char *name);

/* A rename is durable when its directory is synced. */
int store_sync_directory(const Store *store, const char *name);
