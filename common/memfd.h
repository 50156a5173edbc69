/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>

/* A file in memory with these bytes, open at its start. A descriptor or -errno. */
int memfd_open(const char *name, const void *data, size_t length);
