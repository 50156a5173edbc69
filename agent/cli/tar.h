/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Files and directories as a tar, by libarchive: what cp sends into a container and takes out of
 * one. */

#include "common/error.h"

/* Writes what is at 'path' and below as a tar in which it is called 'name'. Links are links; who
 * owns what is not told. 0, or -errno with a sentence. */
int tar_pack(const char *path, const char *name, int fd, Error *reterr);

/* Makes 'target' in the working directory of a tar in which all is called 'name' or lies below it.
 * What it says is not trusted: nothing is written outside of 'target', through links of its own
 * neither, and devices, pipes and set-user-ID bits are left out. 0, or -errno with a sentence. */
int tar_unpack(int fd, const char *name, const char *target, Error *reterr);
