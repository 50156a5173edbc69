/* SPDX-License-Identifier: Apache-2.0 */

/* The state between two bytes is a stack of brackets and whether a string is open. Each run of
 * bytes goes to the item that is being collected or to the rest of the List. Nothing of a reported
 * item is kept, so an idle stream uses no memory. */

#include "agent/kubeclient/json-framer.h"

#include "common/buffer.h"
#include "common/cleanup.h"
#include "common/macros.h"

#include <errno.h>
#include <stdint.h>

enum {
        ITEMS_DEPTH = 2, /* inside a List's items: the List and the array */
        DEPTH_MAX = ITEMS_DEPTH + JSON_FRAMER_DEPTH_MAX,
};

struct JsonFramer {
        json_framer_item_t on_item;
        void *userdata;
        int error;
        bool is_list;

        char brackets[DEPTH_MAX]; /* the open brackets, represented by the ones that close them */
        unsigned depth;
        bool is_in_string, is_escaped;

        bool is_in_items; /* in the array of a List */
        bool is_in_item;
        bool is_whole; /* the List is complete */

        bool is_key_due; /* in the List itself: a key follows */
        bool is_items_key;
        size_t key_at; /* position in the rest, after the key's quote */

        Buffer item, rest;
};

JsonFramer *json_framer_new(bool is_list, json_framer_item_t on_item, void *userdata) {
        JsonFramer *framer = calloc(1, sizeof(*framer));

        if (!framer)
                return NULL;
        framer->is_list = is_list;
        framer->on_item = on_item;
        framer->userdata = userdata;
        return framer;
}

JsonFramer *json_framer_free(JsonFramer *framer) {
        if (!framer)
                return NULL;
        buffer_done(&framer->item);
        buffer_done(&framer->rest);
        free(framer);
        return NULL;
}

/* ---- collecting ---- */

static int append_frame_text(Buffer *text, const char *data, size_t length, size_t max) {
        int r = buffer_append(text, data, length, max);

        return r == -EFBIG ? -EBADMSG : r;
}

static int keep_frame_bytes(JsonFramer *framer, const char *data, size_t length) {
        if (length == 0)
                return 0;
        if (framer->is_in_item)
                return append_frame_text(&framer->item, data, length, JSON_FRAMER_ITEM_MAX);
        return framer->is_list
                       ? append_frame_text(&framer->rest, data, length, JSON_FRAMER_REST_MAX)
                       : 0;
}

static int emit_framed_item(JsonFramer *framer) {
        int r = framer->on_item(framer->item.data, framer->item.length, framer->userdata);

        framer->is_in_item = false;
        framer->item.length = 0;
        return r < 0 ? r : 0;
}

/* ---- one byte ---- */

/* The meaning of a byte for the run that contains it. */
typedef enum FrameStep {
        FRAME_CONTINUE,        /* it is part of the run */
        FRAME_ITEM_START,      /* it is an item's first byte */
        FRAME_ITEM_END,        /* it is an item's last byte */
        FRAME_ITEM_END_BEFORE, /* the item ended before this byte, which is processed again */
        FRAME_SKIP,            /* it belongs to none of them */
} FrameStep;

static unsigned item_depth(const JsonFramer *framer) {
        return framer->is_list ? ITEMS_DEPTH : 0;
}

static bool is_frame_blank(char c) {
        return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static int open_bracket(JsonFramer *framer, char c) {
        if (framer->depth == item_depth(framer) + JSON_FRAMER_DEPTH_MAX)
                return -EBADMSG;
        if (framer->is_list && framer->depth == 1 && framer->is_items_key && c == '[')
                framer->is_in_items = true;
        framer->brackets[framer->depth++] = c == '{' ? '}' : ']';
        framer->is_key_due = framer->is_list && framer->depth == 1;
        return FRAME_CONTINUE;
}

static int close_bracket(JsonFramer *framer, char c) {
        if (framer->depth == 0 || framer->brackets[framer->depth - 1] != c)
                return -EBADMSG;
        framer->depth--;
        if (framer->is_in_item)
                return framer->depth == item_depth(framer) ? FRAME_ITEM_END : FRAME_CONTINUE;
        if (framer->depth == 1)
                framer->is_in_items = framer->is_items_key = false;
        framer->is_whole = framer->depth == 0;
        return FRAME_CONTINUE;
}

static int step_string(JsonFramer *framer, char c) {
        if (framer->is_escaped)
                framer->is_escaped = false;
        else if (c == '\\')
                framer->is_escaped = true;
        else if (c == '"')
                framer->is_in_string = false;
        return FRAME_CONTINUE;
}

/* Between items in a List or a stream. */
static int step_between(JsonFramer *framer, char c) {
        if (is_frame_blank(c) || (framer->is_list && c == ','))
                return FRAME_SKIP;
        if (framer->is_list && c == ']')
                return close_bracket(framer, c);
        if (!framer->is_list && c != '{')
                return -EBADMSG;
        return FRAME_ITEM_START;
}

static int step_structure(JsonFramer *framer, char c) {
        switch (c) {
        case '{':
        case '[':
                return open_bracket(framer, c);
        case '}':
        case ']':
                return close_bracket(framer, c);
        case '"':
                framer->is_in_string = true;
                return FRAME_CONTINUE;
        case ',':
                if (framer->is_list && framer->depth == 1) {
                        framer->is_key_due = true;
                        framer->is_items_key = false;
                }
                return FRAME_CONTINUE;
        case ':':
                if (framer->is_list && framer->depth == 1)
                        framer->is_key_due = false;
                return FRAME_CONTINUE;
        default:
                return framer->depth > 0 || is_frame_blank(c) ? FRAME_CONTINUE : -EBADMSG;
        }
}

static int step_byte(JsonFramer *framer, char c) {
        bool is_at_items =
                framer->depth == item_depth(framer) && (!framer->is_list || framer->is_in_items);

        if (framer->is_in_string)
                return step_string(framer, c);
        if (is_at_items && !framer->is_in_item)
                return step_between(framer, c);
        /* Words and numbers end without a bracket. */
        if (is_at_items && framer->is_list && (c == ',' || c == ']'))
                return FRAME_ITEM_END_BEFORE;
        if (framer->is_list && framer->depth == 0 &&
            (framer->is_whole ? !is_frame_blank(c) : c != '{' && !is_frame_blank(c)))
                return -EBADMSG;
        return step_structure(framer, c);
}

/* ---- the key of the items ---- */

/* A string starts or ends in the List itself; everything before it is in the rest. */
static void check_items_key(JsonFramer *framer) {
        static const char items[] = "items";
        const size_t n = sizeof(items) - 1;

        if (framer->is_in_string)
                framer->key_at = framer->rest.length;
        else
                framer->is_items_key = framer->rest.length == framer->key_at + n + 1 &&
                                       memcmp(framer->rest.data + framer->key_at, items, n) == 0;
}

/* ---- runs ---- */

typedef struct FrameRun {
        const char *data;
        size_t from, at;
} FrameRun;

/* Ends the run at the byte, including or excluding it. */
static int end_frame_run(JsonFramer *framer, FrameRun *run, bool is_included) {
        size_t to = run->at + (is_included ? 1 : 0);
        int r = keep_frame_bytes(framer, run->data + run->from, to - run->from);

        run->from = to;
        return r;
}

static int frame_byte(JsonFramer *framer, FrameRun *run) {
        bool was_in_string = framer->is_in_string;
        bool was_key = framer->is_list && framer->depth == 1 && framer->is_key_due;
        char c = run->data[run->at];
        int what = step_byte(framer, c), r = 0;

        if (what < 0)
                return what;
        if (what == FRAME_ITEM_START) {
                r = end_frame_run(framer, run, false);
                framer->is_in_item = true;
                return r < 0 ? r : frame_byte(framer, run);
        }
        if (what == FRAME_ITEM_END_BEFORE) {
                r = end_frame_run(framer, run, false);
                if (r < 0)
                        return r;
                r = emit_framed_item(framer);
                return r < 0 ? r : frame_byte(framer, run);
        }
        if (what == FRAME_ITEM_END) {
                r = end_frame_run(framer, run, true);
                return r < 0 ? r : emit_framed_item(framer);
        }
        if (what == FRAME_SKIP) {
                r = end_frame_run(framer, run, false);
                run->from++;
                return r;
        }
        if (!was_key || was_in_string == framer->is_in_string)
                return 0;
        r = end_frame_run(framer, run, true);
        check_items_key(framer);
        return r;
}

/* In a string only quotes and escapes matter. */
static size_t skip_plain(const JsonFramer *framer, const char *data, size_t at, size_t length) {
        if (framer->is_in_string && !framer->is_escaped)
                while (at < length && data[at] != '"' && data[at] != '\\')
                        at++;
        return at;
}

static int frame_bytes(JsonFramer *framer, const char *data, size_t length) {
        FrameRun run = { .data = data };

        while ((run.at = skip_plain(framer, data, run.at, length)) < length) {
                int r = frame_byte(framer, &run);

                if (r < 0)
                        return r;
                run.at++;
        }
        return end_frame_run(framer, &(FrameRun){ .data = data, .from = run.from, .at = length },
                             false);
}

int json_framer_push(JsonFramer *framer, const char *data, size_t length) {
        if (framer->error < 0)
                return framer->error;
        framer->error = frame_bytes(framer, data, length);
        if (framer->error < 0 || !framer->is_in_item) {
                buffer_done(&framer->item);
        }
        return framer->error;
}

int json_framer_finish(JsonFramer *framer, const char **ret_rest) {
        if (framer->error < 0)
                return framer->error;
        if (framer->is_list ? !framer->is_whole : framer->is_in_item || framer->depth > 0)
                return -EBADMSG;
        if (ret_rest)
                *ret_rest = framer->is_list ? framer->rest.data : "";
        return 0;
}
