/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>

/* Creates a file in memory with these bytes, open at its start. Returns a descriptor or -errno. */
int memfd_open(const char *name, const void *data, size_t length);
