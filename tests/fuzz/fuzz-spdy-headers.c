/* SPDX-License-Identifier: Apache-2.0 */
/* Any input as a header block, compressed like a client's: the resulting headers have unique names
 * in lower case, and values. The damaged compressed blocks of fuzz-spdy rarely reach this code. */

#include "tests/fuzz/fuzz.h"

#include "agent/node-api/wire/spdy-headers.h"
#include "common/cleanup.h"

#include <errno.h>
#define ZLIB_CONST
#include <zlib.h>

enum {
        DICTIONARY_MAX = 4096
};

static size_t compress_block(const uint8_t *data, size_t size, unsigned char *ret,
                             size_t ret_size) {
        unsigned char dictionary[DICTIONARY_MAX];
        z_stream zlib = { 0 };
        size_t n;

        assert(deflateInit(&zlib, Z_BEST_SPEED) == Z_OK);
        assert(deflateSetDictionary(&zlib, dictionary,
                                    (uInt) spdy_dictionary(dictionary, sizeof(dictionary))) ==
               Z_OK);
        zlib.next_in = data;
        zlib.avail_in = (uInt) size;
        zlib.next_out = ret;
        zlib.avail_out = (uInt) ret_size;
        assert(deflate(&zlib, Z_SYNC_FLUSH) == Z_OK && zlib.avail_in == 0);
        n = ret_size - zlib.avail_out;
        (void) deflateEnd(&zlib);
        return n;
}

static void check_headers(const SpdyHeaders *headers) {
        assert(headers->n <= SPDY_HEADERS_MAX);
        for (size_t i = 0; i < headers->n; i++) {
                const SpdyHeader *header = &headers->items[i];

                assert(header->name[0] && header->value);
                assert(strlen(header->name) + strlen(header->value) < SPDY_HEADER_BLOCK_MAX);
                assert(spdy_header_value(headers, header->name) == header->value);
                for (const char *c = header->name; *c; c++)
                        assert(*c > ' ' && *c <= '~' && !(*c >= 'A' && *c <= 'Z'));
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        size_t room = size + size / 2 + 1024;
        cleanup_free unsigned char *block = malloc(room);
        SpdyHeaderReader *reader;
        SpdyHeaders headers;
        int r;

        if (size == 0)
                return 0;
        assert(block && spdy_header_reader_new(&reader) >= 0);
        r = spdy_header_reader_read(reader, block, compress_block(data, size, block, room),
                                    &headers);
        assert(r == 0 || r == -EPROTO);
        assert(r < 0 || size < SPDY_HEADER_BLOCK_MAX);
        if (r == 0)
                check_headers(&headers);
        spdy_header_reader_free(reader);
        return 0;
}
