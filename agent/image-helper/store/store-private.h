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
        char **staged; /* final paths of the files "staged-0", … in the work directory */
};

/* Does the part of store_sweep_downloads() for one blob, by its name in partial/. */
void store_sweep_partial_blob(const Store *store, const char *name);

/* Syncs a directory, which makes renames in it durable. */
int store_sync_directory(const Store *store, const char *name);
