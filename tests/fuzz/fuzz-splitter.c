/* SPDX-License-Identifier: Apache-2.0 */
/* A body of any bytes is taken apart in the same way wherever it was split; what is told has its
 * brackets closed, and can be looked into. The first two bytes say whether it is a list, and where
 * the split is. */

#include "tests/fuzz/fuzz.h"

#include "agent/kube/scan.h"
#include "agent/kube/splitter.h"
#include "common/cleanup.h"

typedef struct Taken {
        size_t n, bytes;
        uint64_t sum;
} Taken;

static int on_item(const char *data, size_t length, void *userdata) {
        Taken *taken = userdata;
        JsonText item = { data, length };
        cleanup_free char *sentence = NULL;

        assert(length > 0 && length <= SPLITTER_ITEM_MAX && data[length] == '\0');
        item = json_text_member(json_text_member(item, "object"), "metadata");
        assert(!item.text || (item.text > data && item.text + item.length <= data + length));
        sentence = json_text_sentence(json_text_member(item, "message"));
        taken->n++;
        taken->bytes += length;
        for (size_t i = 0; i < length; i++)
                taken->sum = taken->sum * 31 + (unsigned char) data[i];
        return 0;
}

static int take(bool is_list, const char *data, size_t size, size_t at, Taken *ret) {
        Splitter *splitter = splitter_new(is_list, on_item, ret);
        const char *rest = NULL;
        int r;

        assert(splitter);
        r = splitter_push(splitter, data, at);
        if (r >= 0)
                r = splitter_push(splitter, data + at, size - at);
        if (r >= 0)
                r = splitter_finish(splitter, &rest);
        if (r >= 0 && is_list) {
                assert(rest && strlen(rest) <= SPLITTER_REST_MAX);
                (void) json_text_member((JsonText){ rest, strlen(rest) }, "metadata");
        }
        splitter_free(splitter);
        return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        const char *body = (const char *) data + 2;
        Taken whole = { 0 }, split = { 0 };
        bool is_list;
        int r;

        if (size < 2)
                return 0;
        is_list = data[0] == 'L';
        size -= 2;
        r = take(is_list, body, size, 0, &whole);
        assert(take(is_list, body, size, MIN(data[1], size), &split) == r);
        assert(whole.n == split.n && whole.bytes == split.bytes && whole.sum == split.sum);
        assert(whole.bytes <= size);
        return 0;
}
