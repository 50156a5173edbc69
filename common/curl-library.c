/* SPDX-License-Identifier: Apache-2.0 */
#include "common/curl-library.h"

#include <dlfcn.h>
#include <errno.h>

/* The library with GnuTLS comes first, because GnuTLS is already loaded. */
static const char *const names[] = { "libcurl-gnutls.so.4", "libcurl.so.4" };

#define SYMBOL(name) \
        { offsetof(CurlLibrary, name), "curl_" #name }

static const struct {
        size_t offset;
        const char *name;
} symbols[] = {
        SYMBOL(global_init),         SYMBOL(version_info),        SYMBOL(easy_init),
        SYMBOL(easy_reset),          SYMBOL(easy_cleanup),        SYMBOL(easy_perform),
        SYMBOL(easy_setopt),         SYMBOL(easy_getinfo),        SYMBOL(easy_strerror),
        SYMBOL(multi_init),          SYMBOL(multi_cleanup),       SYMBOL(multi_setopt),
        SYMBOL(multi_add_handle),    SYMBOL(multi_remove_handle), SYMBOL(multi_assign),
        SYMBOL(multi_socket_action), SYMBOL(multi_info_read),     SYMBOL(slist_append),
        SYMBOL(slist_free_all),
};

_Static_assert(N_ELEMENTS(symbols) * sizeof(void *) == sizeof(CurlLibrary),
               "every member has its symbol");

static int find_symbols(void *handle, CurlLibrary *ret, Error *reterr) {
        for (size_t i = 0; i < N_ELEMENTS(symbols); i++) {
                void *symbol = dlsym(handle, symbols[i].name);

                if (!symbol)
                        return error_setf(reterr, ELIBBAD, "%s lacks %s()", "libcurl",
                                          symbols[i].name);
                memcpy((char *) ret + symbols[i].offset, &symbol, sizeof(symbol));
        }
        return 0;
}

static int load_libcurl(CurlLibrary *ret, Error *reterr) {
        void *handle = NULL;
        int r;

        for (size_t i = 0; !handle && i < N_ELEMENTS(names); i++)
                handle = dlopen(names[i], RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
        if (!handle)
                return error_setf(reterr, ELIBACC, "cannot load libcurl: %s", dlerror());
        r = find_symbols(handle, ret, reterr);
        if (r < 0)
                return r;
        if (ret->global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
                return error_setf(reterr, ELIBBAD, "cannot initialise libcurl");
        if (!(ret->version_info(CURLVERSION_NOW)->features & CURL_VERSION_HTTP2))
                return error_setf(reterr, ELIBBAD, "this libcurl does not support HTTP/2");
        return 0;
}

const CurlLibrary *curl_library(Error *reterr) {
        static CurlLibrary library;
        static bool is_loaded;

        if (!is_loaded && load_libcurl(&library, reterr) < 0)
                return NULL;
        is_loaded = true;
        return &library;
}
