/* SPDX-License-Identifier: Apache-2.0 */

/* URLs are parsed with curl's own parser, so that decisions about a URL match what curl does with
 * it. */

#include "agent/image-helper/registry/http-transport.h"

#include "common/cleanup.h"
#include "common/registry-name.h"
#include "common/url-escape.h"

#include <curl/curl.h>

static inline void url_cleanupp(CURLU **url) {
        curl_url_cleanup(*url);
}

/* A part of the URL in curl's memory, or NULL. The port is the scheme's default if none is
 * given. */
static char *get_url_part(CURLU *url, CURLUPart which) {
        char *text = NULL;

        unsigned flags = which == CURLUPART_PORT ? CURLU_DEFAULT_PORT : 0;

        return curl_url_get(url, which, &text, flags) == CURLUE_OK ? text : NULL;
}

static CURLU *parse_url(const char *text) {
        CURLU *url = curl_url();

        if (url && curl_url_set(url, CURLUPART_URL, text, 0) == CURLUE_OK)
                return url;
        curl_url_cleanup(url);
        return NULL;
}

int url_resolve_location(const char *base, const char *location, bool may_be_plain, char **ret,
                         Error *reterr) {
        cleanup_with(url_cleanupp) CURLU *url = parse_url(base);
        cleanup_free char *shown = url_mask_secrets(location);
        char *scheme, *whole;
        bool is_fine;

        if (!url ||
            curl_url_set(url, CURLUPART_URL, location, CURLU_NON_SUPPORT_SCHEME) != CURLUE_OK)
                return error_setf(reterr, EINVAL,
                                  "it redirects to '%.256s', which is not a valid URL",
                                  strna(shown));
        scheme = get_url_part(url, CURLUPART_SCHEME);
        is_fine = scheme && (streq(scheme, "https") || (may_be_plain && streq(scheme, "http")));
        curl_free(scheme);
        if (!is_fine)
                return error_setf(reterr, EPROTO, "it redirects to '%.256s', which is not https",
                                  strna(shown));
        /* Otherwise curl would send a user and password that are part of the URL. */
        (void) curl_url_set(url, CURLUPART_USER, NULL, 0);
        (void) curl_url_set(url, CURLUPART_PASSWORD, NULL, 0);
        (void) curl_url_set(url, CURLUPART_FRAGMENT, NULL, 0);
        whole = get_url_part(url, CURLUPART_URL);
        *ret = whole ? strdup(whole) : NULL;
        curl_free(whole);
        return *ret ? 0 : -ENOMEM;
}

bool url_same_origin(const char *a, const char *b) {
        static const CURLUPart parts[] = { CURLUPART_SCHEME, CURLUPART_HOST, CURLUPART_PORT };
        cleanup_with(url_cleanupp) CURLU *one = parse_url(a), *other = parse_url(b);
        bool same = one && other;

        for (size_t i = 0; same && i < N_ELEMENTS(parts); i++) {
                char *x = get_url_part(one, parts[i]), *y = get_url_part(other, parts[i]);

                same = x && y && strcasecmp(x, y) == 0;
                curl_free(x);
                curl_free(y);
        }
        return same;
}

char *url_get_host(const char *text) {
        cleanup_with(url_cleanupp) CURLU *url = parse_url(text);
        char *host = url ? get_url_part(url, CURLUPART_HOST) : NULL,
             *copy = host ? strdup(host) : NULL;

        curl_free(host);
        return copy;
}

int url_resolve_for_endpoint(const Endpoint *endpoint, const char *base, const char *location,
                             char **ret, Error *reterr) {
        cleanup_free char *url = NULL, *host = NULL;
        int r = url_resolve_location(base, location, endpoint->may_be_plain, &url, reterr);

        if (r < 0)
                return r;
        if (endpoint->is_loopback && strncmp(url, "http:", 5) == 0) {
                cleanup_free char *shown = url_mask_secrets(location);

                host = url_get_host(url);
                if (!host || !registry_is_loopback(host))
                        return error_setf(reterr, EPROTO,
                                          "it redirects to '%.256s', which is not https",
                                          strna(shown));
        }
        *ret = TAKE_PTR(url);
        return 0;
}
