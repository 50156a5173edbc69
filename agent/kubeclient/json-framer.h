/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Splits a response body as it arrives, regardless of how the network fragmented it, into the items
 * of a List or the documents of a watch. A list of any length needs only the memory of its largest
 * item, and an invalid item does not affect the others. Only brackets and strings are examined; the
 * items are parsed elsewhere. */

#include <stdbool.h>
#include <stddef.h>

enum {
        /* Limit of an item in bytes: more than the largest object of a server, so that no user's
         * object makes the whole list fail. etcd stores at most 1.5 MiB, and JSON uses six bytes
         * for some characters. */
        JSON_FRAMER_ITEM_MAX = 16 * 1024 * 1024,
        JSON_FRAMER_DEPTH_MAX = 64,
        JSON_FRAMER_REST_MAX = 64 * 1024, /* bytes of a List without its items */
};

typedef struct JsonFramer JsonFramer;

/* 'data' is NUL-terminated and borrowed. A result < 0 ends the split with that error. */
typedef int (*json_framer_item_t)(const char *data, size_t length, void *userdata);

/* 'is_list': the body is one object, and the elements of its "items" are reported; otherwise it is
 * a sequence of documents. NULL: out of memory. */
JsonFramer *json_framer_new(bool is_list, json_framer_item_t on_item, void *userdata);
JsonFramer *json_framer_free(JsonFramer *framer);

/* 0; -EBADMSG if it is not JSON, nested too deeply or too long; -ENOMEM; or the return value of
 * on_item. After an error, no more data is accepted. */
int json_framer_push(JsonFramer *framer, const char *data, size_t length);

/* At the end of a List: the object as JSON with empty "items". -EBADMSG if it is incomplete. The
 * framer owns the text. */
int json_framer_finish(JsonFramer *framer, const char **ret_rest);
