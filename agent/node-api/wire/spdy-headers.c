/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node-api/wire/spdy-headers.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#define ZLIB_CONST /* the input is const */
#include <zlib.h>

/* ---- the dictionary of SPDY/3, section 2.6.10.1 of its draft ---- */

/* A length precedes each word, as with a name or value in a block. */
static const char *const dictionary_words[] = {
        "options",
        "head",
        "post",
        "put",
        "delete",
        "trace",
        "accept",
        "accept-charset",
        "accept-encoding",
        "accept-language",
        "accept-ranges",
        "age",
        "allow",
        "authorization",
        "cache-control",
        "connection",
        "content-base",
        "content-encoding",
        "content-language",
        "content-length",
        "content-location",
        "content-md5",
        "content-range",
        "content-type",
        "date",
        "etag",
        "expect",
        "expires",
        "from",
        "host",
        "if-match",
        "if-modified-since",
        "if-none-match",
        "if-range",
        "if-unmodified-since",
        "last-modified",
        "location",
        "max-forwards",
        "pragma",
        "proxy-authenticate",
        "proxy-authorization",
        "range",
        "referer",
        "retry-after",
        "server",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "user-agent",
        "vary",
        "via",
        "warning",
        "www-authenticate",
        "method",
        "get",
        "status",
        "200 OK",
        "version",
        "HTTP/1.1",
        "url",
        "public",
        "set-cookie",
        "keep-alive",
        "origin",
};

/* This text follows the words, without length fields. */
static const char dictionary_text[] =
        "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
        "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request"
        "401 Unauthorized403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented"
        "503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue,"
        " Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif"
        ",application/xml,application/xhtml+xml,text/plain,text/javascript,publicprivatemax-age="
        "gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0.";

enum {
        DICTIONARY_SIZE = 1423,
        LENGTH_SIZE = 4, /* bytes of a length or count in a block */
};

size_t spdy_dictionary(unsigned char *ret, size_t size) {
        size_t n = 0;

        assert(size >= DICTIONARY_SIZE);
        for (size_t i = 0; i < N_ELEMENTS(dictionary_words); i++) {
                size_t length = strlen(dictionary_words[i]);

                memset(ret + n, 0, LENGTH_SIZE - 1); /* they are all short */
                ret[n + LENGTH_SIZE - 1] = (unsigned char) length;
                memcpy(ret + n + LENGTH_SIZE, dictionary_words[i], length);
                n += LENGTH_SIZE + length;
        }
        memcpy(ret + n, dictionary_text, sizeof(dictionary_text) - 1);
        n += sizeof(dictionary_text) - 1;
        assert(n == DICTIONARY_SIZE);
        return n;
}

const char *spdy_header_value(const SpdyHeaders *headers, const char *name) {
        for (size_t i = 0; i < headers->n; i++)
                if (streq(headers->items[i].name, name))
                        return headers->items[i].value;
        return NULL;
}

/* ---- parsing a decompressed block ---- */

typedef struct BlockCursor {
        char *bytes;
        size_t position, length;
} BlockCursor;

static int read_block_number(BlockCursor *cursor, uint32_t *ret) {
        const unsigned char *p = (const unsigned char *) cursor->bytes + cursor->position;

        if (cursor->length - cursor->position < LENGTH_SIZE)
                return -EPROTO;
        *ret = (uint32_t) p[0] << 24 | (uint32_t) p[1] << 16 | (uint32_t) p[2] << 8 | p[3];
        cursor->position += LENGTH_SIZE;
        return 0;
}

/* The string is moved over its length, which leaves room for a NUL. */
static int read_block_string(BlockCursor *cursor, char **ret) {
        uint32_t length;
        int r = read_block_number(cursor, &length);

        if (r < 0)
                return r;
        if (length > cursor->length - cursor->position)
                return -EPROTO;
        *ret = cursor->bytes + cursor->position - 1;
        memmove(*ret, *ret + 1, length);
        (*ret)[length] = '\0';
        cursor->position += length;
        return 0;
}

static bool is_header_name(const char *name) {
        if (*name == '\0')
                return false;
        for (; *name; name++)
                if (*name <= ' ' || *name > '~' || (*name >= 'A' && *name <= 'Z'))
                        return false;
        return true;
}

static int parse_header_block(char *bytes, size_t length, SpdyHeaders *ret) {
        BlockCursor cursor = { .bytes = bytes, .length = length };
        uint32_t count;

        ret->n = 0;
        if (read_block_number(&cursor, &count) < 0 || count > SPDY_HEADERS_MAX)
                return -EPROTO;
        for (; count > 0; count--) {
                char *name, *value;

                if (read_block_string(&cursor, &name) < 0 ||
                    read_block_string(&cursor, &value) < 0 || !is_header_name(name) ||
                    spdy_header_value(ret, name))
                        return -EPROTO;
                ret->items[ret->n++] = (SpdyHeader){ name, value };
        }
        return cursor.position == cursor.length ? 0 : -EPROTO;
}

/* ---- zlib ---- */

struct SpdyHeaderReader {
        z_stream zlib;
        char block[SPDY_HEADER_BLOCK_MAX];
};

int spdy_header_reader_new(SpdyHeaderReader **ret) {
        SpdyHeaderReader *reader = calloc(1, sizeof(*reader));

        if (!reader)
                return -ENOMEM;
        if (inflateInit(&reader->zlib) != Z_OK) {
                free(reader);
                return -ENOMEM;
        }
        *ret = reader;
        return 0;
}

SpdyHeaderReader *spdy_header_reader_free(SpdyHeaderReader *reader) {
        if (reader)
                (void) inflateEnd(&reader->zlib);
        free(reader);
        return NULL;
}

static int inflate_with_dictionary(z_stream *zlib) {
        unsigned char dictionary[DICTIONARY_SIZE];
        int code = inflate(zlib, Z_SYNC_FLUSH);

        if (code != Z_NEED_DICT)
                return code;
        code = inflateSetDictionary(zlib, dictionary,
                                    (uInt) spdy_dictionary(dictionary, sizeof(dictionary)));
        return code == Z_OK ? inflate(zlib, Z_SYNC_FLUSH) : code;
}

int spdy_header_reader_read(SpdyHeaderReader *reader, const void *block, size_t length,
                            SpdyHeaders *ret) {
        z_stream *zlib = &reader->zlib;
        int code;

        zlib->next_in = block;
        zlib->avail_in = (uInt) length;
        zlib->next_out = (unsigned char *) reader->block;
        zlib->avail_out = sizeof(reader->block);
        code = inflate_with_dictionary(zlib);
        /* If no space is left, more output may be pending, which would have to be stored. */
        if (code != Z_OK || zlib->avail_in > 0 || zlib->avail_out == 0)
                return -EPROTO;
        return parse_header_block(reader->block, sizeof(reader->block) - zlib->avail_out, ret);
}

struct SpdyHeaderWriter {
        z_stream zlib;
};

int spdy_header_writer_new(SpdyHeaderWriter **ret) {
        enum {
                WINDOW_BITS = 11, /* for the dictionary; a larger window would only cost memory */
                MEMORY_LEVEL = 1,
        };
        SpdyHeaderWriter *writer = calloc(1, sizeof(*writer));
        unsigned char dictionary[DICTIONARY_SIZE];

        if (!writer)
                return -ENOMEM;
        if (deflateInit2(&writer->zlib, Z_BEST_SPEED, Z_DEFLATED, WINDOW_BITS, MEMORY_LEVEL,
                         Z_DEFAULT_STRATEGY) != Z_OK) {
                free(writer);
                return -ENOMEM;
        }
        (void) deflateSetDictionary(&writer->zlib, dictionary,
                                    (uInt) spdy_dictionary(dictionary, sizeof(dictionary)));
        *ret = writer;
        return 0;
}

SpdyHeaderWriter *spdy_header_writer_free(SpdyHeaderWriter *writer) {
        if (writer)
                (void) deflateEnd(&writer->zlib);
        free(writer);
        return NULL;
}

size_t spdy_header_writer_write_empty(SpdyHeaderWriter *writer,
                                      unsigned char ret[SPDY_EMPTY_BLOCK_MAX]) {
        unsigned char count[LENGTH_SIZE] = { 0 };
        z_stream *zlib = &writer->zlib;

        zlib->next_in = count;
        zlib->avail_in = sizeof(count);
        zlib->next_out = ret;
        zlib->avail_out = SPDY_EMPTY_BLOCK_MAX;
        if (deflate(zlib, Z_SYNC_FLUSH) != Z_OK || zlib->avail_in > 0 || zlib->avail_out == 0)
                return 0;
        return SPDY_EMPTY_BLOCK_MAX - zlib->avail_out;
}
