/* SPDX-License-Identifier: Apache-2.0 */
#include "common/curl-transfer.h"

#include "common/clock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum {
        FD_PATH_SIZE = sizeof("/proc/self/fd/2147483647"),
};

/* ---- the response ---- */

static size_t on_curl_header(char *data, size_t size, size_t n, void *userdata) {
        CurlTransfer *transfer = userdata;
        size_t length = size * n;

        transfer->header_length += length;
        if (transfer->header_length > transfer->header_max)
                transfer->result = -EMSGSIZE;
        else if (transfer->on_header)
                transfer->result = transfer->on_header(data, length, transfer->userdata);
        return transfer->result < 0 ? 0 : length;
}

static size_t on_curl_data(char *data, size_t size, size_t n, void *userdata) {
        CurlTransfer *transfer = userdata;

        transfer->result = transfer->on_data(data, size * n, transfer->userdata);
        return transfer->result < 0 ? 0 : size * n;
}

long curl_transfer_status(const CurlTransfer *transfer) {
        long status = 0;

        curl_library(NULL)->easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &status);
        return status;
}

/* ---- causes of failures ---- */

/* Removes the differences between two equal failures: the duration, and the name of a CA file,
 * which refers to a descriptor. */
static void trim_curl_error(char *text) {
        static const char *const units[] = { " milliseconds", " ms" };
        char *file = strstr(text, " CAfile: "), *after = strstr(text, " after "), *end;

        if (file)
                *file = '\0';
        end = text + strlen(text);
        while (end > text && strchr(". \n", end[-1]))
                *--end = '\0';
        if (!after || after >= end)
                return;
        end = after + strlen(" after ");
        end += strspn(end, "0123456789");
        for (size_t i = 0; i < N_ELEMENTS(units); i++) {
                size_t length = strlen(units[i]);

                if (strncmp(end, units[i], length) != 0)
                        continue;
                memmove(after, end + length, strlen(end + length) + 1);
                return;
        }
}

/* Replaces messages of libcurl that are empty or describe only libcurl's internals. */
static const char *reword_curl_error(CURLcode code) {
        switch (code) {
        case CURLE_COULDNT_RESOLVE_PROXY:
                return "the name of the proxy cannot be resolved";
        case CURLE_SSL_CACERT_BADFILE:
                return "cannot read the file of certificate authorities";
        case CURLE_GOT_NOTHING:
                return "the server closed the connection without a response";
        case CURLE_PARTIAL_FILE:
                return "the server closed the connection in the middle of the response";
        case CURLE_UNSUPPORTED_PROTOCOL:
        case CURLE_WEIRD_SERVER_REPLY:
                return "the response is not HTTP";
        case CURLE_OUT_OF_MEMORY:
                return "not enough memory";
        default:
                return NULL;
        }
}

static const char *explain_curl_result(CurlTransfer *transfer) {
        if (transfer->result == -EFBIG)
                return "the response is too long";
        if (transfer->result != -EMSGSIZE)
                return strerror(-transfer->result);
        (void) snprintf(transfer->error, sizeof(transfer->error),
                        "the header of the response is larger than %zu KiB",
                        transfer->header_max / KIB);
        return transfer->error;
}

/* The result of the verification is a bit mask from GnuTLS, in which failures have the second bit
 * set, or an OpenSSL number. NULL: the time is not the cause, or not the only one. */
static const char *describe_certificate_time(long result) {
        enum {
                GNUTLS_INVALID = 1 << 1,
                GNUTLS_NOT_ACTIVATED = 1 << 9,
                GNUTLS_EXPIRED = 1 << 10,
                OPENSSL_NOT_YET_VALID = 9,
                OPENSSL_EXPIRED = 10,
        };

        switch (result) {
        case GNUTLS_INVALID | GNUTLS_NOT_ACTIVATED:
        case OPENSSL_NOT_YET_VALID:
                return "is not valid yet";
        case GNUTLS_INVALID | GNUTLS_EXPIRED:
        case OPENSSL_EXPIRED:
                return "has expired";
        default:
                return NULL;
        }
}

static const char *find_certificate_time_fault(const CurlTransfer *transfer, CURLcode code) {
        long result = 0;

        if (code != CURLE_PEER_FAILED_VERIFICATION)
                return NULL;
        curl_library(NULL)->easy_getinfo(transfer->easy, CURLINFO_SSL_VERIFYRESULT, &result);
        return describe_certificate_time(result);
}

bool curl_transfer_failed_for_time(const CurlTransfer *transfer, CURLcode code) {
        return find_certificate_time_fault(transfer, code) != NULL;
}

static const char *explain_certificate_time(CurlTransfer *transfer, CURLcode code) {
        const char *words = find_certificate_time_fault(transfer, code);
        char clock[CLOCK_DESCRIPTION_SIZE];

        if (!words)
                return NULL;
        (void) snprintf(transfer->error, sizeof(transfer->error),
                        "the certificate of the server %s; %s; " CLOCK_RETRY_HINT, words,
                        clock_describe(clock, now_realtime_usec()));
        return transfer->error;
}

const char *curl_transfer_explain(CurlTransfer *transfer, CURLcode code) {
        const char *words = reword_curl_error(code);

        if (transfer->result < 0)
                return explain_curl_result(transfer);
        if (!words)
                words = explain_certificate_time(transfer, code);
        if (words)
                return words;
        trim_curl_error(transfer->error);
        return transfer->error[0] ? transfer->error : curl_library(NULL)->easy_strerror(code);
}

/* ---- the request ---- */

static void set_curl_file(CURL *easy, CURLoption option, int fd) {
        char path[FD_PATH_SIZE];

        if (fd < 0)
                return;
        (void) snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        curl_library(NULL)->easy_setopt(easy, option, path); /* copied */
}

void curl_transfer_set_tls(const CurlTransfer *transfer, const CurlTls *tls) {
        const CurlLibrary *curl = curl_library(NULL);
        CURL *easy = transfer->easy;

        curl->easy_setopt(easy, CURLOPT_SSLVERSION, (long) CURL_SSLVERSION_TLSv1_2);
        curl->easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, tls->is_unverified ? 0L : 1L);
        curl->easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, tls->is_unverified ? 0L : 2L);
        curl->easy_setopt(easy, CURLOPT_SSL_SESSIONID_CACHE, 0L);
        if (tls->authority_fd >= 0 || tls->is_unverified)
                curl->easy_setopt(easy, CURLOPT_CAPATH, NULL);
        /* Without this, each connection of a probe would read all CA certificates of the system. */
        if (tls->is_unverified)
                curl->easy_setopt(easy, CURLOPT_CAINFO, NULL);
        set_curl_file(easy, CURLOPT_CAINFO, tls->authority_fd);
        set_curl_file(easy, CURLOPT_SSLCERT, tls->certificate_fd);
        set_curl_file(easy, CURLOPT_SSLKEY, tls->key_fd);
}

/* NULL keeps libcurl's default. */
static int set_curl_text(CURL *easy, CURLoption option, const char *text) {
        if (!text)
                return 0;
        return curl_library(NULL)->easy_setopt(easy, option, text) == CURLE_OK ? 0 : -ENOMEM;
}

/* An empty proxy prevents libcurl from reading the environment. */
static int set_curl_texts(CURL *easy, const CurlTransferSpec *spec) {
        const struct {
                CURLoption option;
                const char *text;
        } texts[] = {
                { CURLOPT_URL, spec->url },
                { CURLOPT_PROTOCOLS_STR, spec->protocols },
                { CURLOPT_UNIX_SOCKET_PATH, spec->unix_socket },
                { CURLOPT_USERAGENT, spec->user_agent },
                { CURLOPT_PROXY, strna(spec->proxy) },
                { CURLOPT_NOPROXY, strna(spec->no_proxy) },
        };

        for (size_t i = 0; i < N_ELEMENTS(texts); i++)
                if (set_curl_text(easy, texts[i].option, texts[i].text) < 0)
                        return -ENOMEM;
        if (!spec->body)
                return set_curl_text(easy, CURLOPT_CUSTOMREQUEST, spec->method);
        curl_library(NULL)->easy_setopt(easy, CURLOPT_POSTFIELDSIZE, (long) spec->body_length);
        if (set_curl_text(easy, CURLOPT_COPYPOSTFIELDS, spec->body) < 0)
                return -ENOMEM;
        return set_curl_text(easy, CURLOPT_CUSTOMREQUEST, spec->method);
}

static void set_curl_numbers(CURL *easy, const CurlTransferSpec *spec) {
        const CurlLibrary *curl = curl_library(NULL);

        curl->easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
        /* A thread resolves names, and nothing waits for its end. */
        curl->easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
        curl->easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
        curl->easy_setopt(easy, CURLOPT_HTTP09_ALLOWED, 0L);
        curl->easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
        curl->easy_setopt(easy, CURLOPT_HTTP_VERSION, spec->http_version);
        if (spec->connect_timeout_msec > 0)
                curl->easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, spec->connect_timeout_msec);
        if (spec->buffer_size > 0)
                curl->easy_setopt(easy, CURLOPT_BUFFERSIZE, spec->buffer_size);
}

int curl_transfer_init(CurlTransfer *transfer, CURL *easy, const CurlTransferSpec *spec) {
        const CurlLibrary *curl = curl_library(NULL);

        *transfer = (CurlTransfer){ .easy = easy,
                                    .on_header = spec->on_header,
                                    .on_data = spec->on_data,
                                    .userdata = spec->userdata,
                                    .header_max = spec->header_max };
        set_curl_numbers(easy, spec);
        curl_transfer_set_tls(transfer, &spec->tls);
        curl->easy_setopt(easy, CURLOPT_ERRORBUFFER, transfer->error);
        curl->easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_curl_header);
        curl->easy_setopt(easy, CURLOPT_HEADERDATA, transfer);
        curl->easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_curl_data);
        curl->easy_setopt(easy, CURLOPT_WRITEDATA, transfer);
        return set_curl_texts(easy, spec);
}

int curl_transfer_add_header(CurlTransfer *transfer, const char *line) {
        const CurlLibrary *curl = curl_library(NULL);
        struct curl_slist *longer;

        if (line[strcspn(line, "\r\n")])
                return -EINVAL;
        longer = curl->slist_append(transfer->headers, line);
        if (!longer)
                return -ENOMEM;
        transfer->headers = longer;
        curl->easy_setopt(transfer->easy, CURLOPT_HTTPHEADER, longer);
        return 0;
}

void curl_transfer_done(CurlTransfer *transfer) {
        for (struct curl_slist *header = transfer->headers; header; header = header->next)
                explicit_bzero(header->data, strlen(header->data));
        if (transfer->headers)
                curl_library(NULL)->slist_free_all(transfer->headers);
        transfer->headers = NULL;
}
