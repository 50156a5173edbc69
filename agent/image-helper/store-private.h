/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What store.c and store-blob.c share. */

#include "agent/image-helper/store.h"

struct Store {
        int fd;
        int tmp_fd;
        int work_fd; /* tmp/<work_name>, locked; or not created yet */
        char work_name[17];
        char **staged; /* final paths of files that are in the work directory as "staged-0", … */
};
