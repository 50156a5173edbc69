/* SPDX-License-Identifier: Apache-2.0 */

/* The library keeps the window, parses header and trailer, and verifies the checksum in the
 * trailer. The compressed bytes are passed in place, and this file continues from one member to the
 * next. */

#ifdef HAVE_ISAL

#include "agent/image-helper/archive/gunzip.h"

#include "common/cleanup.h"

#include <isa-l/igzip_lib.h>

enum {
        MAGIC = 0x1f
};

struct Gunzip {
        gunzip_source_t source;
        void *userdata;
        struct inflate_state state;
        bool is_between; /* before or between members */
        bool is_over;
};

static void begin_member(Gunzip *gunzip) {
        struct inflate_state *state = &gunzip->state;

        isal_inflate_reset(state);
        state->crc_flag = ISAL_GZIP;
        gunzip->is_between = false;
}

Gunzip *gunzip_new(gunzip_source_t source, void *userdata) {
        Gunzip *gunzip = calloc(1, sizeof(*gunzip));

        if (gunzip) {
                gunzip->source = source;
                gunzip->userdata = userdata;
                isal_inflate_init(&gunzip->state);
                begin_member(gunzip);
        }
        return gunzip;
}

/* 1: compressed bytes are available; 0: the input has ended; or -errno. */
static int provide_packed_bytes(Gunzip *gunzip, Error *reterr) {
        struct inflate_state *state = &gunzip->state;
        const void *data;
        ssize_t n;

        if (state->avail_in > 0)
                return 1;
        n = gunzip->source(gunzip->userdata, &data, reterr);
        if (n <= 0)
                return (int) n;
        state->next_in = (uint8_t *) (uintptr_t) data;
        state->avail_in = (uint32_t) n;
        return 1;
}

static int find_member(Gunzip *gunzip, Error *reterr) {
        int r = provide_packed_bytes(gunzip, reterr);

        if (r < 0)
                return r;
        if (r > 0 && *gunzip->state.next_in == MAGIC)
                begin_member(gunzip);
        else
                gunzip->is_over = true;
        return 0;
}

/* One step: some more bytes, or the end of a member. */
static int inflate_step(Gunzip *gunzip, Error *reterr) {
        struct inflate_state *state = &gunzip->state;
        int r;

        if (gunzip->is_between)
                return find_member(gunzip, reterr);
        r = isal_inflate(state);
        if (r != ISAL_DECOMP_OK)
                return error_setf(reterr, EBADMSG, "gzip decompression failed");
        if (state->block_state == ISAL_BLOCK_FINISH) {
                gunzip->is_between = true;
                return 0;
        }
        if (state->avail_out == 0)
                return 0;
        r = provide_packed_bytes(gunzip, reterr);
        return r != 0 ? r : error_setf(reterr, EBADMSG, "truncated gzip input");
}

ssize_t gunzip_read(Gunzip *gunzip, void *block, uint32_t size, Error *reterr) {
        struct inflate_state *state = &gunzip->state;

        state->next_out = block;
        state->avail_out = size;
        while (state->avail_out > 0 && !gunzip->is_over) {
                int r = inflate_step(gunzip, reterr);

                if (r < 0)
                        return r;
        }
        return (ssize_t) (size - state->avail_out);
}

Gunzip *gunzip_free(Gunzip *gunzip) {
        free(gunzip);
        return NULL;
}

#endif
