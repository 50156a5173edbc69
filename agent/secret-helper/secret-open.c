/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/secret-helper/secret-open.h"

#include "agent/secrets/opening-protocol.h"
#include "common/cleanup.h"

#include <errno.h>
#include <stdlib.h>

/* The unread rest of a request. */
typedef struct Cursor {
        const uint8_t *at;
        size_t left;
} Cursor;

/* NULL: the request is too short. */
static const void *take_bytes(Cursor *cursor, size_t length) {
        const uint8_t *start = cursor->at;

        if (length > cursor->left)
                return NULL;
        cursor->at += length;
        cursor->left -= length;
        return start;
}

static int take_copy(Cursor *cursor, void *ret, size_t length) {
        const void *bytes = take_bytes(cursor, length);

        if (!bytes)
                return -EBADMSG;
        memcpy(ret, bytes, length);
        return 0;
}

static int append_answer(Buffer *answer, int error, const char *bytes, size_t length) {
        const OpenedHeader header = { .error = (uint32_t) error, .length = (uint32_t) length };
        int r = buffer_append(answer, &header, sizeof(header), SIZE_MAX);

        return r < 0 ? r : buffer_append(answer, bytes, length, SIZE_MAX);
}

static int open_value(const AgeKey *identities, size_t n, const void *data, size_t length,
                      Buffer *answer) {
        cleanup_error Error error = ERROR_NULL;
        cleanup_free char *opened = NULL;
        size_t opened_length = 0;
        int r = age_decrypt(data, length, identities, n, &opened, &opened_length, &error);

        if (r == -ENOMEM)
                return r;
        if (r < 0)
                return append_answer(answer, -r, error.message,
                                     MIN(strlen(error.message), (size_t) OPENING_MESSAGE_MAX));
        r = append_answer(answer, 0, opened, opened_length);
        explicit_bzero(opened, opened_length);
        return r;
}

static int open_each_value(Cursor *cursor, const AgeKey *identities, const OpeningRequest *request,
                           Buffer *answer) {
        int r = 0;

        for (size_t i = 0; r >= 0 && i < request->n_values; i++) {
                uint32_t length = 0;
                const void *data;

                r = take_copy(cursor, &length, sizeof(length));
                if (r < 0)
                        return r;
                data = take_bytes(cursor, length);
                r = data ? open_value(identities, request->n_identities, data, length, answer)
                         : -EBADMSG;
        }
        return r;
}

int open_values(void *request, size_t length, Buffer *ret) {
        cleanup_with(buffer_erase) Buffer answer = { 0 };
        Cursor cursor = { request, length };
        AgeKey identities[OPENING_IDENTITIES_MAX];
        OpeningRequest header = { 0 };
        int r = take_copy(&cursor, &header, sizeof(header));

        if (r >= 0 && header.n_identities > OPENING_IDENTITIES_MAX)
                r = -EBADMSG;
        if (r >= 0)
                r = take_copy(&cursor, identities, header.n_identities * sizeof(*identities));
        if (r >= 0)
                r = open_each_value(&cursor, identities, &header, &answer);
        explicit_bzero(identities, sizeof(identities));
        explicit_bzero(request, length);
        if (r < 0)
                return r;
        *ret = answer;
        answer = (Buffer){ 0 };
        return 0;
}
