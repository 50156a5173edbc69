/* SPDX-License-Identifier: Apache-2.0 */
/* The time_t of this file is that of the distribution's libraries; see common/CMakeLists.txt. */

#include "common/certificate-time.h"

#include "common/clock.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

enum {
        TAG_INTEGER = 0x02,
        TAG_UTC_TIME = 0x17,
        TAG_GENERALIZED_TIME = 0x18,
        TAG_SEQUENCE = 0x30,
        TAG_VERSION = 0xa0,
};

typedef struct DerBytes {
        const unsigned char *p;
        size_t n;
} DerBytes;

/* Takes the first element, which must have this tag. */
static bool take_element(DerBytes *in, unsigned tag, DerBytes *ret) {
        size_t length, head = 2;

        if (in->n < head || in->p[0] != tag)
                return false;
        length = in->p[1];
        if (length >= 0x80) {
                size_t digits = length & 0x7f;

                if (digits == 0 || digits > sizeof(uint32_t) || in->n - head < digits)
                        return false;
                for (length = 0; digits > 0; digits--)
                        length = length << 8 | in->p[head++];
        }
        if (in->n - head < length)
                return false;
        *ret = (DerBytes){ in->p + head, length };
        *in = (DerBytes){ in->p + head + length, in->n - head - length };
        return true;
}

/* RFC 5280, 4.1.2.5: "YYMMDDHHMMSSZ" for 1950 to 2049, or "YYYYMMDDHHMMSSZ". */
static bool take_time(DerBytes *in, int64_t *ret) {
        const char *format = "%Y%m%d%H%M%SZ";
        char text[sizeof("20500102030405Z")] = "";
        struct tm tm = { 0 };
        const char *end;
        size_t n = 0;
        DerBytes time;

        if (take_element(in, TAG_UTC_TIME, &time)) {
                if (time.n != strlen("500102030405Z"))
                        return false;
                memcpy(text, time.p[0] < '5' ? "20" : "19", n = 2);
        } else if (!take_element(in, TAG_GENERALIZED_TIME, &time))
                return false;
        if (n + time.n != strlen("20500102030405Z"))
                return false;
        memcpy(text + n, time.p, time.n);
        end = strptime(text, format, &tm);
        if (!end || *end)
                return false;
        *ret = utc_to_seconds(&tm);
        return true;
}

static bool take_validity(DerBytes *in, CertificateTimes *ret) {
        DerBytes certificate, signed_part, validity, skipped;

        if (!take_element(in, TAG_SEQUENCE, &certificate) ||
            !take_element(&certificate, TAG_SEQUENCE, &signed_part))
                return false;
        (void) take_element(&signed_part, TAG_VERSION, &skipped);
        return take_element(&signed_part, TAG_INTEGER, &skipped) &&  /* the serial number */
               take_element(&signed_part, TAG_SEQUENCE, &skipped) && /* the algorithm */
               take_element(&signed_part, TAG_SEQUENCE, &skipped) && /* the issuer */
               take_element(&signed_part, TAG_SEQUENCE, &validity) &&
               take_time(&validity, &ret->not_before) && take_time(&validity, &ret->not_after);
}

int certificate_read_times(gnutls_x509_crt_t certificate, CertificateTimes *ret) {
        gnutls_datum_t der = { 0 };
        CertificateTimes times;
        bool is_read;

        if (gnutls_x509_crt_export2(certificate, GNUTLS_X509_FMT_DER, &der) < 0)
                return -EINVAL;
        is_read = take_validity(&(DerBytes){ der.data, der.size }, &times);
        gnutls_free(der.data);
        if (!is_read)
                return -EINVAL;
        *ret = times;
        return 0;
}

/* -1 is the year 9999. GnuTLS's own constant is in 2106, or in 1969 with a 32-bit time_t. */
static time_t library_time(int64_t seconds) {
        bool fits = sizeof(time_t) > sizeof(int32_t) ? seconds < CERTIFICATE_NEVER_EXPIRES
                                                     : seconds <= INT32_MAX;

        return fits ? (time_t) seconds : (time_t) -1;
}

int certificate_set_times(gnutls_x509_crt_t certificate, const CertificateTimes *times) {
        int code =
                gnutls_x509_crt_set_activation_time(certificate, library_time(times->not_before));

        return code < 0 ? code
                        : gnutls_x509_crt_set_expiration_time(certificate,
                                                              library_time(times->not_after));
}
