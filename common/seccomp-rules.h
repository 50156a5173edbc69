/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* System call filters with libseccomp, for processes that parse untrusted input. */

#include "common/error.h"

#include <seccomp.h>

/* For a variable: releases the filter at the end of its scope. */
static inline void seccomp_releasep(scmp_filter_ctx *filter) {
        if (*filter)
                seccomp_release(*filter);
}

/* Adds 'action' for calls by their names; calls that this architecture or libseccomp does not have
 * need no rule. 0 or -errno. */
int seccomp_add_calls(scmp_filter_ctx filter, uint32_t action, const char *const *names, size_t n);

/* Allows the calls that map memory, unless it is executable. 0 or -errno. */
int seccomp_add_data_calls(scmp_filter_ctx filter);

/* Loads the filter, after the function that adds its rules has returned 'r'. 0, or -errno with a
 * message: the process must exit, because an incomplete filter may be loaded. */
int seccomp_load_filter(scmp_filter_ctx filter, int r, Error *reterr);
