/* SPDX-License-Identifier: Apache-2.0 */
/* Growing arrays, texts and tables without memory: they stay unchanged. */

#include "common/array.h"
#include "common/buffer.h"
#include "common/cleanup.h"
#include "common/text.h"
#include "tests/allocations.h"

static int append_to_array(const char *input, char **ret) {
        cleanup_free char *letters = NULL;
        size_t n = 0;

        for (; *input; input++) {
                char *letter = ARRAY_INSERT(letters, n, 0);

                if (!letter)
                        return -ENOMEM;
                *letter = *input;
        }
        return take_allocated_text(strndup(letters, n), ret);
}

/* Tries again after a failure, so that the previous content is checked. */
static int append_to_array_twice(const char *input, char **ret) {
        cleanup_free char *letters = NULL;
        size_t n = 0;

        for (; *input; input++) {
                char *letter = ARRAY_APPEND(letters, n);

                if (!letter)
                        letter = ARRAY_APPEND(letters, n);
                if (!letter)
                        return -ENOMEM;
                *letter = *input;
        }
        return take_allocated_text(strndup(letters, n), ret);
}

static int append_to_buffer(const char *input, char **ret) {
        cleanup_buffer Buffer buffer = { 0 };

        for (; *input; input++) {
                size_t length = buffer.length;
                int r = buffer_append(&buffer, input, 1, 1000);

                if (r < 0)
                        EXPECT(r == -ENOMEM && buffer.length == length);
                if (r < 0)
                        r = buffer_append(&buffer, input, 1, 1000);
                if (r < 0)
                        return r;
        }
        return take_allocated_text(buffer_take(&buffer), ret);
}

static int append_to_text(const char *input, char **ret) {
        cleanup_free char *text = NULL;
        int r = text_replace(&text, input);

        if (r >= 0)
                r = text_appendf(&text, "-%s", input);
        if (r < 0)
                return r;
        return take_allocated_text(text_format("<%s>", text), ret);
}

static int join_items(const char *input, char **ret) {
        char a[] = "a", b[] = "b";

        return take_allocated_text(text_join((char *[]){ a, b, NULL }, input), ret);
}

TEST(arrays_buffers_and_texts_survive_failed_allocations)
{
        static const char letters[] = "The quick brown fox jumps over the lazy dog.";

        expect_survives_failed_allocations("ARRAY_INSERT", append_to_array, letters, 1);
        expect_survives_failed_allocations("ARRAY_APPEND", append_to_array_twice, letters, 1);
        expect_survives_failed_allocations("buffer_append", append_to_buffer, letters, 1);
        expect_survives_failed_allocations("text", append_to_text, letters, 1);
        expect_survives_failed_allocations("text_join", join_items, ", ", 1);
}
