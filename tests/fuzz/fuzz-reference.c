/* SPDX-License-Identifier: Apache-2.0 */
/* An image reference, the name of a registry, a prefix of references, or the name of an image in an
 * archive: normalising a normalised name does not change it, and libcurl and the C library connect
 * only to the host in the name. */

#include "tests/fuzz/fuzz.h"

#include "agent/image/archive-names.h"
#include "common/cleanup.h"
#include "common/image-reference.h"
#include "common/registry-name.h"
#include "common/strv.h"

#include <arpa/inet.h>
#include <curl/curl.h>

static void check_normalised(const char *name) {
        cleanup_free char *again = NULL;
        const char *digest = image_reference_digest(name);

        assert(image_reference_normalise(name, &again, NULL) >= 0 && streq(again, name));
        assert(image_reference_equals(name, name));
        assert(!digest || strlen(digest) == strlen("sha256:") + 64);
}

static void check_part(CURLU *url, CURLUPart which, const char *expected) {
        char *part = NULL;

        assert(curl_url_get(url, which, &part, CURLU_DEFAULT_PORT) == CURLUE_OK);
        assert(streq(part, expected));
        curl_free(part);
}

static void check_registry(const char *registry) {
        cleanup_free char *again = NULL, *text = NULL, *host = strdup(registry);
        char *port = strrchr(host, ':');
        struct in_addr address;
        CURLU *url = curl_url();

        assert(registry_name_normalise(registry, &again, NULL) >= 0 && streq(again, registry));
        if (port && !strchr(port, ']'))
                *port++ = '\0';
        else
                port = NULL;
        assert(asprintf(&text, "https://%s/v2/", registry) > 0);
        assert(curl_url_set(url, CURLUPART_URL, text, 0) == CURLUE_OK);
        check_part(url, CURLUPART_HOST, host);
        check_part(url, CURLUPART_PORT, port ? port : "443");
        curl_url_cleanup(url);
        assert(!inet_aton(host, &address) || streq(inet_ntoa(address), host));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        cleanup_free char *text = strndup((const char *) data, size), *name = NULL, *stem = NULL,
                          *registry = NULL, *prefix = NULL, *repository = NULL;
        cleanup_strv char **names = NULL;
        cleanup_error Error error = ERROR_NULL;

        assert(text);
        if (image_reference_normalise(text, &name, &error) >= 0)
                check_normalised(name);
        else
                assert(error.message);
        if (registry_name_normalise(text, &registry, NULL) >= 0)
                check_registry(registry);
        if (image_reference_normalise_prefix(text, &prefix, NULL) >= 0) {
                cleanup_free char *again = NULL;

                assert(image_reference_normalise_prefix(prefix, &again, NULL) >= 0);
                assert(streq(again, prefix));
        }
        if (name) {
                assert(image_reference_repository(name, &repository, NULL) >= 0);
                repository[strcspn(repository, "/")] = '\0';
                check_registry(repository);
        }
        (void) registry_is_loopback(text);
        stem = image_archive_stem(text);
        assert(archive_names_add(text, stem, &names) >= 0);
        strv_foreach(one, names)
                check_normalised(*one);
        return 0;
}
