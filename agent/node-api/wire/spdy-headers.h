/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Header blocks of SPDY/3: names and values, compressed by one zlib stream per direction of a
 * connection, with a dictionary known to both sides. Every block of a direction passes through its
 * stream in order, including those of refused SPDY streams. */

#include "common/macros.h"

#include <stdint.h>

enum {
        SPDY_HEADER_BLOCK_MAX = 16 * 1024, /* bytes, decompressed */
        SPDY_HEADERS_MAX = 32,             /* maximum number of names in a block */
};

typedef struct SpdyHeader {
        const char *name;  /* lower case */
        const char *value; /* the first value, if there are several */
} SpdyHeader;

typedef struct SpdyHeaders {
        SpdyHeader items[SPDY_HEADERS_MAX];
        size_t n;
} SpdyHeaders;

/* The value, or NULL. */
const char *spdy_header_value(const SpdyHeaders *headers, const char *name);

typedef struct SpdyHeaderReader SpdyHeaderReader;

/* 0 or -ENOMEM. */
int spdy_header_reader_new(SpdyHeaderReader **ret);
SpdyHeaderReader *spdy_header_reader_free(SpdyHeaderReader *reader);

/* Decompresses and parses a block. The strings are valid until the next one. 0; -EPROTO for an
 * invalid block, or one that exceeds a limit: the connection cannot continue. */
int spdy_header_reader_read(SpdyHeaderReader *reader, const void *block, size_t length,
                            SpdyHeaders *ret);

typedef struct SpdyHeaderWriter SpdyHeaderWriter;

enum {
        SPDY_EMPTY_BLOCK_MAX = 64, /* bytes, compressed */
};

/* 0 or -ENOMEM. */
int spdy_header_writer_new(SpdyHeaderWriter **ret);
SpdyHeaderWriter *spdy_header_writer_free(SpdyHeaderWriter *writer);

/* Compresses a block without headers, the only one that a Kubernetes server sends. Returns its
 * length; 0 if zlib fails. */
size_t spdy_header_writer_write_empty(SpdyHeaderWriter *writer,
                                      unsigned char ret[SPDY_EMPTY_BLOCK_MAX]);

/* Fills in the dictionary and returns its length; for tests that simulate a client. */
size_t spdy_dictionary(unsigned char *ret, size_t size);
