/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Takes a body apart as it arrives, at whatever byte it was split: the items of a List one by one,
 * or the documents of a watch. So a list of any length needs the memory of its largest item, and an
 * item that is no good is its own trouble. It looks at braces and strings only; what it hands on is
 * for a parser. */

#include <stdbool.h>
#include <stddef.h>

enum {
        JSON_FRAMER_ITEM_MAX = 4 * 1024 * 1024, /* bytes of an item */
        JSON_FRAMER_DEPTH_MAX = 64,
        JSON_FRAMER_REST_MAX = 64 * 1024, /* of a List without its items */
};

typedef struct JsonFramer JsonFramer;

/* 'data' has a NUL after it and is borrowed. < 0 ends the split with that. */
typedef int (*json_framer_item_t)(const char *data, size_t length, void *userdata);

/* 'is_list': the body is one object, and what is in its "items" is told; else it is one document
 * after the other. NULL where memory ends. */
JsonFramer *json_framer_new(bool is_list, json_framer_item_t on_item, void *userdata);
JsonFramer *json_framer_free(JsonFramer *framer);

/* 0; -EBADMSG for what is no JSON, is too deep or too long; -ENOMEM; what on_item gave. Then
 * nothing more is taken. */
int json_framer_push(JsonFramer *framer, const char *data, size_t length);

/* At the end of a List: all of the object but its items, as JSON ("items" is []). -EBADMSG where it
 * is not whole. The text is the splitter's. */
int json_framer_finish(JsonFramer *framer, const char **ret_rest);
