/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Loads libcurl when it is first used, because it takes more memory than an idle agent itself. In a
 * program that is linked with libcurl, it is already loaded. All callers use one table of symbols,
 * which contains only documented functions of the library. */

#include "common/error.h"

#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>

/* Each member is the libcurl function with the same name, prefixed with "curl_". */
typedef struct CurlLibrary {
        __typeof__(curl_global_init) *global_init;
        __typeof__(curl_version_info) *version_info;
        __typeof__(curl_easy_init) *easy_init;
        __typeof__(curl_easy_reset) *easy_reset;
        __typeof__(curl_easy_cleanup) *easy_cleanup;
        __typeof__(curl_easy_perform) *easy_perform;
        __typeof__(curl_easy_setopt) *easy_setopt;
        __typeof__(curl_easy_getinfo) *easy_getinfo;
        __typeof__(curl_easy_strerror) *easy_strerror;
        __typeof__(curl_multi_init) *multi_init;
        __typeof__(curl_multi_cleanup) *multi_cleanup;
        __typeof__(curl_multi_setopt) *multi_setopt;
        __typeof__(curl_multi_add_handle) *multi_add_handle;
        __typeof__(curl_multi_remove_handle) *multi_remove_handle;
        __typeof__(curl_multi_assign) *multi_assign;
        __typeof__(curl_multi_socket_action) *multi_socket_action;
        __typeof__(curl_multi_info_read) *multi_info_read;
        __typeof__(curl_slist_append) *slist_append;
        __typeof__(curl_slist_free_all) *slist_free_all;
} CurlLibrary;

/* Loads the library once. NULL, with the reason, if it is missing or does not support HTTP/2. */
const CurlLibrary *curl_library(Error *reterr);
