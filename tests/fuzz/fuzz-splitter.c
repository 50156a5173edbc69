/* SPDX-License-Identifier: Apache-2.0 */
/* Any response body has the same items regardless of the position at which it is split into two
 * pieces. The brackets of an item are balanced, so that its members can be read. The first two
 * bytes select a list or a watch, and the position of the split. */

#include "tests/fuzz/fuzz.h"

#include "agent/kubeclient/json-framer.h"
#include "agent/kubeclient/json-view.h"
#include "common/cleanup.h"

typedef struct SplitItems {
        size_t n, bytes;
        uint64_t sum;
} SplitItems;

static int on_split_item(const char *data, size_t length, void *userdata) {
        SplitItems *items = userdata;
        JsonView item = { data, length };
        cleanup_free char *message = NULL;

        assert(length > 0 && length <= JSON_FRAMER_ITEM_MAX && data[length] == '\0');
        item = json_view_member(json_view_member(item, "object"), "metadata");
        assert(!item.text || (item.text > data && item.text + item.length <= data + length));
        message = json_view_message(json_view_member(item, "message"));
        items->n++;
        items->bytes += length;
        for (size_t i = 0; i < length; i++)
                items->sum = items->sum * 31 + (unsigned char) data[i];
        return 0;
}

static int split_input(bool is_list, const char *data, size_t size, size_t at, SplitItems *ret) {
        JsonFramer *splitter = json_framer_new(is_list, on_split_item, ret);
        const char *rest = NULL;
        int r;

        assert(splitter);
        r = json_framer_push(splitter, data, at);
        if (r >= 0)
                r = json_framer_push(splitter, data + at, size - at);
        if (r >= 0)
                r = json_framer_finish(splitter, &rest);
        if (r >= 0 && is_list) {
                assert(rest && strlen(rest) <= JSON_FRAMER_REST_MAX);
                (void) json_view_member((JsonView){ rest, strlen(rest) }, "metadata");
        }
        json_framer_free(splitter);
        return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        const char *body = (const char *) data + 2;
        SplitItems whole = { 0 }, split = { 0 };
        bool is_list;
        int r;

        if (size < 2)
                return 0;
        is_list = data[0] == 'L';
        size -= 2;
        r = split_input(is_list, body, size, 0, &whole);
        assert(split_input(is_list, body, size, MIN(data[1], size), &split) == r);
        assert(whole.n == split.n && whole.bytes == split.bytes && whole.sum == split.sum);
        assert(whole.bytes <= size);
        return 0;
}
