/* SPDX-License-Identifier: Apache-2.0 */

/* Frames of SPDY/3.1. A frame has a head of eight bytes and a payload; control frames are collected
 * and handled as a whole, data frames are passed on as they arrive. */

#include "agent/node-api/wire/spdy.h"

#include "common/array.h"

#include <errno.h>
#include <stdlib.h>

enum {
        FRAME_HEAD_SIZE = 8,
        CONTROL_BIT = 0x80, /* in the first byte */
        SPDY_VERSION = 3,
        STREAM_ID_MAX = 0x7fffffff,
        DATA_FRAME_MAX = 32 * 1024, /* the maximum that this end sends */

        FLAG_FIN = 1,
        FLAG_UNIDIRECTIONAL = 2, /* in SYN_STREAM: this end may not send on it */
};

typedef enum SpdyFrameType {
        SPDY_SYN_STREAM = 1,
        SPDY_SYN_REPLY = 2,
        SPDY_RST_STREAM = 3,
        SPDY_SETTINGS = 4,
        SPDY_PING = 6,
        SPDY_GOAWAY = 7,
        SPDY_HEADERS = 8,
        SPDY_WINDOW_UPDATE = 9,
} SpdyFrameType;

typedef struct SpdyStream {
        uint32_t id;
        bool has_client_ended, have_we_ended;
} SpdyStream;

struct Spdy {
        const SpdyHandlers *handlers;
        void *userdata;
        ByteQueue *output;
        SpdyHeaderReader *header_reader;
        SpdyHeaderWriter *header_writer;

        SpdyStream *streams; /* open streams */
        size_t n_streams;
        uint32_t last_id; /* ID of the last stream that was opened */
        bool is_gone;
        int error; /* -errno: a frame was invalid; nothing is parsed after it */

        /* The frame that is being received. */
        unsigned char head[FRAME_HEAD_SIZE];
        size_t n_head;
        size_t payload_left;
        unsigned char control[SPDY_CONTROL_FRAME_MAX];
        size_t n_control;
};

int spdy_new(const SpdyHandlers *handlers, void *userdata, ByteQueue *output, Spdy **ret) {
        Spdy *spdy = calloc(1, sizeof(*spdy));

        if (!spdy)
                return -ENOMEM;
        spdy->handlers = handlers;
        spdy->userdata = userdata;
        spdy->output = output;
        if (spdy_header_reader_new(&spdy->header_reader) < 0 ||
            spdy_header_writer_new(&spdy->header_writer) < 0) {
                spdy_free(spdy);
                return -ENOMEM;
        }
        *ret = spdy;
        return 0;
}

Spdy *spdy_free(Spdy *spdy) {
        if (!spdy)
                return NULL;
        spdy_header_reader_free(spdy->header_reader);
        spdy_header_writer_free(spdy->header_writer);
        free(spdy->streams);
        free(spdy);
        return NULL;
}

bool spdy_is_gone(const Spdy *spdy) {
        return spdy->is_gone;
}

/* ---- streams ---- */

static SpdyStream *find_spdy_stream(Spdy *spdy, uint32_t id) {
        for (size_t i = 0; i < spdy->n_streams; i++)
                if (spdy->streams[i].id == id)
                        return &spdy->streams[i];
        return NULL;
}

static void remove_spdy_stream(Spdy *spdy, SpdyStream *stream) {
        *stream = spdy->streams[--spdy->n_streams];
}

static void remove_ended_spdy_stream(Spdy *spdy, uint32_t id) {
        SpdyStream *stream = find_spdy_stream(spdy, id);

        if (stream && stream->has_client_ended && stream->have_we_ended)
                remove_spdy_stream(spdy, stream);
}

static int add_spdy_stream(Spdy *spdy, uint32_t id) {
        if (!ARRAY_RESERVE(spdy->streams, spdy->n_streams, 1))
                return -ENOMEM;
        spdy->streams[spdy->n_streams++] = (SpdyStream){ .id = id };
        return 0;
}

/* ---- sending ---- */

static void put_number(unsigned char *p, uint32_t number) {
        p[0] = (unsigned char) (number >> 24);
        p[1] = (unsigned char) (number >> 16);
        p[2] = (unsigned char) (number >> 8);
        p[3] = (unsigned char) number;
}

static uint32_t get_number(const unsigned char *p) {
        return (uint32_t) p[0] << 24 | (uint32_t) p[1] << 16 | (uint32_t) p[2] << 8 | p[3];
}

static int send_spdy_bytes(Spdy *spdy, const void *data, size_t length) {
        return byte_queue_append(spdy->output, SPDY_OUTPUT_MAX, data, length);
}

/* 'number' starts the payload, and 'rest' follows. */
static int send_control_frame(Spdy *spdy, SpdyFrameType type, uint32_t number, const void *rest,
                              size_t length) {
        unsigned char head[FRAME_HEAD_SIZE + 4] = { CONTROL_BIT, SPDY_VERSION, 0,
                                                    (unsigned char) type };
        int r;

        put_number(head + 4, (uint32_t) (4 + length)); /* no flags */
        put_number(head + FRAME_HEAD_SIZE, number);
        r = send_spdy_bytes(spdy, head, sizeof(head));
        return r < 0 ? r : send_spdy_bytes(spdy, rest, length);
}

static int send_two_numbers(Spdy *spdy, SpdyFrameType type, uint32_t first, uint32_t second) {
        unsigned char rest[4];

        put_number(rest, second);
        return send_control_frame(spdy, type, first, rest, sizeof(rest));
}

static int send_syn_reply(Spdy *spdy, uint32_t id) {
        unsigned char block[SPDY_EMPTY_BLOCK_MAX];
        size_t length = spdy_header_writer_write_empty(spdy->header_writer, block);

        return length > 0 ? send_control_frame(spdy, SPDY_SYN_REPLY, id, block, length) : -EPROTO;
}

static int send_data_frame(Spdy *spdy, uint32_t id, const void *data, size_t length, bool is_last) {
        unsigned char head[FRAME_HEAD_SIZE];
        int r;

        put_number(head, id);
        put_number(head + 4, (uint32_t) length);
        head[4] = is_last ? FLAG_FIN : 0;
        r = send_spdy_bytes(spdy, head, sizeof(head));
        return r < 0 ? r : send_spdy_bytes(spdy, data, length);
}

int spdy_send(Spdy *spdy, uint32_t id, const void *data, size_t length, bool is_last) {
        SpdyStream *stream = find_spdy_stream(spdy, id);
        const char *bytes = data;
        int r = 0;

        if (!stream || stream->have_we_ended)
                return 0;
        while (r >= 0 && length > DATA_FRAME_MAX) {
                r = send_data_frame(spdy, id, bytes, DATA_FRAME_MAX, false);
                bytes += DATA_FRAME_MAX;
                length -= DATA_FRAME_MAX;
        }
        if (r >= 0 && (length > 0 || is_last))
                r = send_data_frame(spdy, id, bytes, length, is_last);
        if (is_last) {
                stream->have_we_ended = true;
                remove_ended_spdy_stream(spdy, id);
        }
        return r;
}

int spdy_reset(Spdy *spdy, uint32_t id, SpdyResetStatus status) {
        SpdyStream *stream = find_spdy_stream(spdy, id);

        if (!stream)
                return 0;
        remove_spdy_stream(spdy, stream);
        return send_two_numbers(spdy, SPDY_RST_STREAM, id, status);
}

int spdy_go_away(Spdy *spdy) {
        int r = 0;

        while (r >= 0 && spdy->n_streams > 0)
                r = spdy_reset(spdy, spdy->streams[0].id, SPDY_CANCEL);
        return r < 0 ? r : send_two_numbers(spdy, SPDY_GOAWAY, spdy->last_id, 0);
}

/* ---- control frames ---- */

/* The data after 'offset' in the payload is a header block. */
static int read_spdy_headers(Spdy *spdy, size_t offset, SpdyHeaders *ret) {
        if (spdy->n_control <= offset)
                return -EPROTO;
        return spdy_header_reader_read(spdy->header_reader, spdy->control + offset,
                                       spdy->n_control - offset, ret);
}

static void end_client_half(Spdy *spdy, uint32_t id) {
        SpdyStream *stream = find_spdy_stream(spdy, id);

        if (!stream || stream->has_client_ended)
                return;
        stream->has_client_ended = true;
        spdy->handlers->on_end(id, spdy->userdata);
        remove_ended_spdy_stream(spdy, id);
}

/* spdy_reset() cannot reset a stream that is unknown here. */
static int refuse_spdy_stream(Spdy *spdy, uint32_t id, SpdyResetStatus status) {
        return send_two_numbers(spdy, SPDY_RST_STREAM, id, status);
}

static int on_syn_stream(Spdy *spdy, unsigned flags) {
        enum {
                HEADERS_OFFSET = 10, /* id, associated id, priority, slot */
        };
        SpdyHeaders headers;
        uint32_t id;
        int r = read_spdy_headers(spdy, HEADERS_OFFSET, &headers);

        if (r < 0)
                return r;
        id = get_number(spdy->control) & STREAM_ID_MAX;
        if (id == 0)
                return -EPROTO;
        if (id % 2 == 0 || id <= spdy->last_id)
                return refuse_spdy_stream(spdy, id, SPDY_PROTOCOL_ERROR);
        spdy->last_id = id;
        /* No Kubernetes client opens a unidirectional stream. With FLAG_FIN it would end
         * immediately and not be counted, but its data would be kept. */
        if (flags & FLAG_UNIDIRECTIONAL)
                return refuse_spdy_stream(spdy, id, SPDY_PROTOCOL_ERROR);
        if (spdy->n_streams >= SPDY_STREAMS_MAX)
                return refuse_spdy_stream(spdy, id, SPDY_REFUSED_STREAM);
        r = add_spdy_stream(spdy, id);
        if (r < 0)
                return r;
        /* The reply must precede all data, because the client would otherwise drop the data. */
        if (spdy->handlers->on_stream(id, &headers, spdy->userdata) < 0)
                return spdy_reset(spdy, id, SPDY_CANCEL);
        r = send_syn_reply(spdy, id);
        if (r < 0)
                return r;
        if (flags & FLAG_FIN)
                end_client_half(spdy, id);
        return 0;
}

/* These headers are ignored, but they are part of the compressed stream. */
static int on_other_headers(Spdy *spdy, unsigned flags) {
        SpdyHeaders headers;
        int r = read_spdy_headers(spdy, 4, &headers);

        if (r < 0)
                return r;
        if (flags & FLAG_FIN)
                end_client_half(spdy, get_number(spdy->control) & STREAM_ID_MAX);
        return 0;
}

static int on_rst_stream(Spdy *spdy, unsigned flags) {
        SpdyStream *stream;
        uint32_t id;

        if (flags != 0 || spdy->n_control != 8 || get_number(spdy->control + 4) == 0)
                return -EPROTO;
        id = get_number(spdy->control) & STREAM_ID_MAX;
        stream = find_spdy_stream(spdy, id);
        if (!stream)
                return 0;
        remove_spdy_stream(spdy, stream);
        spdy->handlers->on_reset(id, spdy->userdata);
        return 0;
}

/* Pings of the client have odd numbers; only these are answered. */
static int on_ping(Spdy *spdy, unsigned flags) {
        uint32_t id;

        if (flags != 0 || spdy->n_control != 4)
                return -EPROTO;
        id = get_number(spdy->control);
        return id % 2 == 0 ? 0 : send_control_frame(spdy, SPDY_PING, id, NULL, 0);
}

static const SpdyStream *find_stream_that_client_writes(const Spdy *spdy) {
        for (size_t i = 0; i < spdy->n_streams; i++)
                if (!spdy->streams[i].has_client_ended)
                        return &spdy->streams[i];
        return NULL;
}

static int on_goaway(Spdy *spdy, unsigned flags) {
        const SpdyStream *stream;

        if (flags != 0 || spdy->n_control != 8)
                return -EPROTO;
        spdy->is_gone = true;
        while ((stream = find_stream_that_client_writes(spdy)))
                end_client_half(spdy, stream->id);
        return 0;
}

static int on_control_frame(Spdy *spdy) {
        unsigned version = (spdy->head[0] & ~CONTROL_BIT & 0xffU) << 8 | spdy->head[1];
        unsigned type = (unsigned) spdy->head[2] << 8 | spdy->head[3];
        unsigned flags = spdy->head[4];

        if (version != SPDY_VERSION)
                return -EPROTO;
        switch (type) {
        case SPDY_SYN_STREAM:
                return on_syn_stream(spdy, flags);
        case SPDY_SYN_REPLY:
        case SPDY_HEADERS:
                return on_other_headers(spdy, flags);
        case SPDY_RST_STREAM:
                return on_rst_stream(spdy, flags);
        case SPDY_SETTINGS:
                return spdy->n_control >= 4 ? 0 : -EPROTO;
        case SPDY_PING:
                return on_ping(spdy, flags);
        case SPDY_GOAWAY:
                return on_goaway(spdy, flags);
        case SPDY_WINDOW_UPDATE:
                return spdy->n_control == 8 ? 0 : -EPROTO;
        default:
                return -EPROTO;
        }
}

/* ---- receiving ---- */

static bool is_control_frame(const Spdy *spdy) {
        return spdy->head[0] & CONTROL_BIT;
}

static int begin_spdy_frame(Spdy *spdy) {
        size_t length = get_number(spdy->head + 4) & 0xffffff;

        if (is_control_frame(spdy) ? length > SPDY_CONTROL_FRAME_MAX
                                   : (get_number(spdy->head) & STREAM_ID_MAX) == 0)
                return -EPROTO;
        spdy->payload_left = length;
        spdy->n_control = 0;
        return 0;
}

static void take_spdy_payload(Spdy *spdy, const char *data, size_t length) {
        uint32_t id = get_number(spdy->head) & STREAM_ID_MAX;
        const SpdyStream *stream;

        if (is_control_frame(spdy)) {
                memcpy(spdy->control + spdy->n_control, data, length);
                spdy->n_control += length;
                return;
        }
        stream = find_spdy_stream(spdy, id);
        if (stream && !stream->has_client_ended && length > 0)
                spdy->handlers->on_data(id, data, length, spdy->userdata);
}

static int end_spdy_frame(Spdy *spdy) {
        spdy->n_head = 0;
        if (is_control_frame(spdy))
                return on_control_frame(spdy);
        if (spdy->head[4] & FLAG_FIN)
                end_client_half(spdy, get_number(spdy->head) & STREAM_ID_MAX);
        return 0;
}

/* Consumes some of the bytes and returns their number, or -errno. */
static ssize_t parse_spdy_bytes(Spdy *spdy, const char *data, size_t length) {
        size_t n;
        int r = 0;

        if (spdy->n_head < FRAME_HEAD_SIZE) {
                n = MIN(length, FRAME_HEAD_SIZE - spdy->n_head);
                memcpy(spdy->head + spdy->n_head, data, n);
                spdy->n_head += n;
                if (spdy->n_head < FRAME_HEAD_SIZE)
                        return (ssize_t) n;
                r = begin_spdy_frame(spdy);
                if (r < 0)
                        return r;
        } else {
                n = MIN(length, spdy->payload_left);
                take_spdy_payload(spdy, data, n);
                spdy->payload_left -= n;
        }
        if (spdy->payload_left == 0)
                r = end_spdy_frame(spdy);
        return r < 0 ? r : (ssize_t) n;
}

int spdy_receive(Spdy *spdy, const void *data, size_t length) {
        const char *bytes = data;

        while (length > 0 && !spdy->is_gone && spdy->error >= 0) {
                ssize_t n = parse_spdy_bytes(spdy, bytes, length);

                if (n < 0) {
                        spdy->error = (int) n;
                        break;
                }
                bytes += n;
                length -= (size_t) n;
        }
        return spdy->error;
}
