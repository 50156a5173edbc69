/* SPDX-License-Identifier: Apache-2.0 */
#include "common/error.h"

#include "common/cleanup.h"
#include "common/text.h"

#undef error_setf
#undef error_prefixf

char *format_message(const char *format, va_list ap) {
        return text_vformat(format, ap);
}

int error_setf(Error *reterr, int code, const char *format, ...) {
        if (reterr && !reterr->message) {
                va_list ap;

                va_start(ap, format);
                reterr->message = text_vformat(format, ap);
                va_end(ap);
        }
        return -code;
}

int error_prefixf(Error *reterr, int r, const char *format, ...) {
        cleanup_free char *prefix = NULL;
        char *whole = NULL;
        va_list ap;

        if (!reterr)
                return r;

        va_start(ap, format);
        prefix = text_vformat(format, ap);
        va_end(ap);

        whole = prefix ? text_format("%s: %s", prefix, error_message(reterr, r)) : NULL;
        if (!whole)
                return r;
        free(reterr->message);
        reterr->message = whole;
        return r;
}

const char *error_message(const Error *error, int r) {
        return error && error->message ? error->message : strerror(r < 0 ? -r : r);
}

void error_move(Error *to, Error *from) {
        error_done(to);
        *to = *from;
        *from = ERROR_NULL;
}

void error_done(Error *error) {
        free(error->message);
        error->message = NULL;
}
