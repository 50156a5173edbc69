/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Reading gzip by ISA-L, where we are built with it: twice as fast as zlib, on which most of the
 * time of unpacking would go. Without it libarchive reads gzip, too. */

#include "agent/image-helper/byte-stream.h"

typedef struct Gunzip Gunzip;

/* NULL where memory fails. */
Gunzip *gunzip_new(void);

/* Fills 'block' with what the stream unpacks to: one gzip member, or several in a row; what follows
 * them and is none is no part of it. The bytes, fewer only at the end; 0 after it; -errno with the
 * sentence. */
ssize_t gunzip_read(Gunzip *gunzip, ByteStream *packed, void *block, uint32_t size, Error *reterr);

Gunzip *gunzip_free(Gunzip *gunzip);
