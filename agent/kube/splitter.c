/* SPDX-License-Identifier: Apache-2.0 */

/* A stack of brackets, and whether we are in a string, is all that is remembered from byte to byte.
 * Bytes go to one of two texts, a run at a time: to the item that is being gathered, or to the rest
 * of the List. An item that is told leaves nothing behind, so a stream that is idle holds no
 * memory. */

#include "agent/kube/splitter.h"

#include "common/cleanup.h"
#include "common/macros.h"

#include <errno.h>
#include <stdint.h>

typedef struct Text {
        char *bytes;
        size_t n, room;
} Text;

enum {
        ITEMS_DEPTH = 2, /* of what is in a List's items: the List, and the array */
        DEPTH_MAX = ITEMS_DEPTH + SPLITTER_DEPTH_MAX,
};

struct Splitter {
        splitter_item_t on_item;
        void *userdata;
        int error;
        bool is_list;

        char brackets[DEPTH_MAX]; /* those that are open, as they are to be closed */
        unsigned depth;
        bool is_in_string, is_escaped;

        bool is_in_items; /* in the array of a List */
        bool is_in_item;
        bool is_whole; /* the List has ended */

        bool is_key_due; /* in the List itself: what comes is a key */
        bool is_items_key;
        size_t key_at; /* in the rest, behind its quote */

        Text item, rest;
};

Splitter *splitter_new(bool is_list, splitter_item_t on_item, void *userdata) {
        Splitter *splitter = calloc(1, sizeof(*splitter));

        if (!splitter)
                return NULL;
        splitter->is_list = is_list;
        splitter->on_item = on_item;
        splitter->userdata = userdata;
        return splitter;
}

Splitter *splitter_free(Splitter *splitter) {
        if (!splitter)
                return NULL;
        free(splitter->item.bytes);
        free(splitter->rest.bytes);
        free(splitter);
        return NULL;
}

/* ---- gathering ---- */

static int append(Text *text, const char *data, size_t length, size_t max) {
        size_t room = MAX(text->room, (size_t) 512);
        char *larger;

        if (length > max - text->n)
                return -EBADMSG;
        while (room < text->n + length + 1)
                room *= 2;
        if (room != text->room) {
                larger = realloc(text->bytes, room);
                if (!larger)
                        return -ENOMEM;
                text->bytes = larger;
                text->room = room;
        }
        memcpy(text->bytes + text->n, data, length);
        text->n += length;
        text->bytes[text->n] = '\0';
        return 0;
}

static int keep(Splitter *s, const char *data, size_t length) {
        if (length == 0)
                return 0;
        if (s->is_in_item)
                return append(&s->item, data, length, SPLITTER_ITEM_MAX);
        return s->is_list ? append(&s->rest, data, length, SPLITTER_REST_MAX) : 0;
}

static int tell_item(Splitter *s) {
        int r = s->on_item(s->item.bytes, s->item.n, s->userdata);

        s->is_in_item = false;
        s->item.n = 0;
        return r < 0 ? r : 0;
}

/* ---- one byte ---- */

/* What a byte means for the run that it stands in. */
typedef enum Step {
        STEP_ON,     /* it belongs to the run */
        STEP_BEGIN,  /* an item begins with it */
        STEP_END,    /* an item ends with it */
        STEP_BEFORE, /* an item ended before it; it is looked at once more */
        STEP_SKIP,   /* it belongs to nothing */
} Step;

static unsigned item_depth(const Splitter *s) {
        return s->is_list ? ITEMS_DEPTH : 0;
}

static bool is_blank(char c) {
        return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static int open_bracket(Splitter *s, char c) {
        if (s->depth == item_depth(s) + SPLITTER_DEPTH_MAX)
                return -EBADMSG;
        if (s->is_list && s->depth == 1 && s->is_items_key && c == '[')
                s->is_in_items = true;
        s->brackets[s->depth++] = c == '{' ? '}' : ']';
        s->is_key_due = s->is_list && s->depth == 1;
        return STEP_ON;
}

static int close_bracket(Splitter *s, char c) {
        if (s->depth == 0 || s->brackets[s->depth - 1] != c)
                return -EBADMSG;
        s->depth--;
        if (s->is_in_item)
                return s->depth == item_depth(s) ? STEP_END : STEP_ON;
        if (s->depth == 1)
                s->is_in_items = s->is_items_key = false;
        s->is_whole = s->depth == 0;
        return STEP_ON;
}

static int step_string(Splitter *s, char c) {
        if (s->is_escaped)
                s->is_escaped = false;
        else if (c == '\\')
                s->is_escaped = true;
        else if (c == '"')
                s->is_in_string = false;
        return STEP_ON;
}

/* Between items, of a List or of a stream. */
static int step_between(Splitter *s, char c) {
        if (is_blank(c) || (s->is_list && c == ','))
                return STEP_SKIP;
        if (s->is_list && c == ']')
                return close_bracket(s, c);
        if (!s->is_list && c != '{')
                return -EBADMSG;
        return STEP_BEGIN;
}

static int step_structure(Splitter *s, char c) {
        switch (c) {
        case '{':
        case '[':
                return open_bracket(s, c);
        case '}':
        case ']':
                return close_bracket(s, c);
        case '"':
                s->is_in_string = true;
                return STEP_ON;
        case ',':
                if (s->is_list && s->depth == 1) {
                        s->is_key_due = true;
                        s->is_items_key = false;
                }
                return STEP_ON;
        case ':':
                if (s->is_list && s->depth == 1)
                        s->is_key_due = false;
                return STEP_ON;
        default:
                return s->depth > 0 || is_blank(c) ? STEP_ON : -EBADMSG;
        }
}

static int step(Splitter *s, char c) {
        bool is_at_items = s->depth == item_depth(s) && (!s->is_list || s->is_in_items);

        if (s->is_in_string)
                return step_string(s, c);
        if (is_at_items && !s->is_in_item)
                return step_between(s, c);
        /* A word or a number has no bracket that would end it. */
        if (is_at_items && s->is_list && (c == ',' || c == ']'))
                return STEP_BEFORE;
        if (s->is_list && s->depth == 0 && (s->is_whole ? !is_blank(c) : c != '{' && !is_blank(c)))
                return -EBADMSG;
        return step_structure(s, c);
}

/* ---- the key of the items ---- */

/* A string has begun or ended in the List itself, and all before it is in the rest. */
static void look_at_key(Splitter *s) {
        static const char items[] = "items";
        const size_t n = sizeof(items) - 1;

        if (s->is_in_string)
                s->key_at = s->rest.n;
        else
                s->is_items_key = s->rest.n == s->key_at + n + 1 &&
                                  memcmp(s->rest.bytes + s->key_at, items, n) == 0;
}

/* ---- runs ---- */

typedef struct Run {
        const char *data;
        size_t from, at;
} Run;

/* What was gathered up to the byte, itself included or not. */
static int end_run(Splitter *s, Run *run, bool is_included) {
        size_t to = run->at + (is_included ? 1 : 0);
        int r = keep(s, run->data + run->from, to - run->from);

        run->from = to;
        return r;
}

static int take_byte(Splitter *s, Run *run) {
        bool was_in_string = s->is_in_string;
        bool was_key = s->is_list && s->depth == 1 && s->is_key_due;
        char c = run->data[run->at];
        int what = step(s, c), r = 0;

        if (what < 0)
                return what;
        if (what == STEP_BEGIN) {
                r = end_run(s, run, false);
                s->is_in_item = true;
                return r < 0 ? r : take_byte(s, run);
        }
        if (what == STEP_BEFORE) {
                r = end_run(s, run, false);
                if (r >= 0)
                        r = tell_item(s);
                return r < 0 ? r : take_byte(s, run);
        }
        if (what == STEP_END) {
                r = end_run(s, run, true);
                return r < 0 ? r : tell_item(s);
        }
        if (what == STEP_SKIP) {
                r = end_run(s, run, false);
                run->from++;
                return r;
        }
        if (!was_key || was_in_string == s->is_in_string)
                return 0;
        r = end_run(s, run, true);
        look_at_key(s);
        return r;
}

/* In a string nothing matters but quotes and escapes. */
static size_t skip_plain(const Splitter *s, const char *data, size_t at, size_t length) {
        if (s->is_in_string && !s->is_escaped)
                while (at < length && data[at] != '"' && data[at] != '\\')
                        at++;
        return at;
}

static int take(Splitter *s, const char *data, size_t length) {
        Run run = { .data = data };

        while ((run.at = skip_plain(s, data, run.at, length)) < length) {
                int r = take_byte(s, &run);

                if (r < 0)
                        return r;
                run.at++;
        }
        return end_run(s, &(Run){ .data = data, .from = run.from, .at = length }, false);
}

int splitter_push(Splitter *s, const char *data, size_t length) {
        if (s->error < 0)
                return s->error;
        s->error = take(s, data, length);
        if (s->error < 0 || !s->is_in_item) {
                free(s->item.bytes);
                s->item = (Text){ 0 };
        }
        return s->error;
}

int splitter_finish(Splitter *s, const char **ret_rest) {
        if (s->error < 0)
                return s->error;
        if (s->is_list ? !s->is_whole : s->is_in_item || s->depth > 0)
                return -EBADMSG;
        if (ret_rest)
                *ret_rest = s->is_list ? s->rest.bytes : "";
        return 0;
}
