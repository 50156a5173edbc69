/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Unpacks the tar of one layer into a directory. */

#include "agent/fetch/stream.h"
#include "agent/fetch/view.h"

/* 'tar' is the unpacked stream, 'fd' an empty directory, 'below' the layers under it, topmost
 * first. Reads the stream to its end. Whether the bytes are those that were promised is for the
 * caller to check afterwards: until then the directory is worth nothing. 0, or -errno with the
 * sentence. */
int layer_unpack(Stream *tar, int fd, const View *below, Error *reterr);
