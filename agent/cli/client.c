/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cli/client.h"

#include "common/cleanup.h"

#include <curl/curl.h>

enum {
        RESPONSE_BYTES_MAX = 64 * 1024 * 1024,
        ERROR_MESSAGE_MAX = 1024, /* of an error response */
};

static void curl_easy_cleanupp(CURL **curl) {
        curl_easy_cleanup(*curl);
}

typedef struct ClientTransfer {
        CURL *curl;
        client_data_t on_data;
        void *userdata;
        int result; /* the result of on_data */
        char message[ERROR_MESSAGE_MAX];
        size_t message_length;
} ClientTransfer;

static long http_status_of_transfer(CURL *curl) {
        long status = 0;

        (void) curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
        return status;
}

static size_t on_response_data(char *data, size_t size, size_t n, void *userdata) {
        ClientTransfer *transfer = userdata;
        size_t length = size * n;

        if (http_status_of_transfer(transfer->curl) != 200) {
                size_t kept = MIN(length, ERROR_MESSAGE_MAX - 1 - transfer->message_length);

                memcpy(transfer->message + transfer->message_length, data, kept);
                transfer->message_length += kept;
                return length;
        }
        transfer->result = transfer->on_data(data, length, transfer->userdata);
        return transfer->result == 0 ? length : 0;
}

int client_explain_connection(int code, const char *socket, Error *reterr) {
        if (code == EACCES || code == EPERM)
                return error_setf(
                        reterr, EACCES,
                        "no permission for the agent's socket %s; only root and the socket's "
                        "group may",
                        socket);
        if (code == ENOENT || code == 0)
                return error_setf(reterr, ENOENT,
                                  "no agent at %s; start mainstayd, or set its socket with "
                                  "--socket",
                                  socket);
        return error_setf(reterr, code,
                          "cannot reach the agent at %s (%s); start mainstayd, or set its "
                          "socket with --socket",
                          socket, strerror(code));
}

static int explain_curl_error(ClientTransfer *transfer, CURLcode code, const char *socket,
                              Error *reterr) {
        long number = 0;

        if (transfer->result < 0)
                return transfer->result;
        if (transfer->result > 0)
                return 0; /* the callback ended it */
        if (code == CURLE_COULDNT_CONNECT) {
                (void) curl_easy_getinfo(transfer->curl, CURLINFO_OS_ERRNO, &number);
                return client_explain_connection((int) number, socket, reterr);
        }
        if (code != CURLE_OK)
                return error_setf(reterr, EIO,
                                  "the agent at %s closed the connection within its response (%s)",
                                  socket, curl_easy_strerror(code));
        if (http_status_of_transfer(transfer->curl) == 200)
                return 0;
        transfer->message[transfer->message_length] = '\0';
        transfer->message[strcspn(transfer->message, "\n")] = '\0';
        return error_setf(reterr, EREMOTEIO, "%s", transfer->message);
}

static int set_transfer_options(ClientTransfer *transfer, const char *socket, const char *url) {
        CURL *curl = transfer->curl;

        if (curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, socket) != CURLE_OK ||
            curl_easy_setopt(curl, CURLOPT_URL, url) != CURLE_OK ||
            curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http") != CURLE_OK ||
            curl_easy_setopt(curl, CURLOPT_PROXY, "") != CURLE_OK ||
            curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L) != CURLE_OK ||
            curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L) != CURLE_OK ||
            curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L) != CURLE_OK ||
            curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_response_data) != CURLE_OK ||
            curl_easy_setopt(curl, CURLOPT_WRITEDATA, transfer) != CURLE_OK)
                return -ENOMEM;
        return 0;
}

int client_request(const char *socket, const char *method, const char *path, client_data_t on_data,
                   void *userdata, Error *reterr) {
        cleanup_with(curl_easy_cleanupp) CURL *curl = curl_easy_init();
        cleanup_free char *url = NULL;
        ClientTransfer transfer = { .curl = curl, .on_data = on_data, .userdata = userdata };
        int r;

        if (!curl)
                return -ENOMEM;
        if (asprintf(&url, "http://mainstay%s", path) < 0) {
                url = NULL;
                return -ENOMEM;
        }
        r = set_transfer_options(&transfer, socket, url);
        if (r >= 0 && curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, method) != CURLE_OK)
                r = -ENOMEM;
        if (r < 0)
                return r;
        return explain_curl_error(&transfer, curl_easy_perform(curl), socket, reterr);
}

int client_stream(const char *socket, const char *path, client_data_t on_data, void *userdata,
                  Error *reterr) {
        return client_request(socket, "GET", path, on_data, userdata, reterr);
}

static int collect_response(const char *data, size_t length, void *userdata) {
        FILE *out = userdata;

        if ((size_t) ftell(out) + length > RESPONSE_BYTES_MAX)
                return -EFBIG;
        return fwrite(data, 1, length, out) == length ? 0 : -ENOMEM;
}

int client_get(const char *socket, const char *path, char **ret, Error *reterr) {
        cleanup_free char *text = NULL;
        size_t length;
        FILE *out = open_memstream(&text, &length);
        int r;

        if (!out)
                return -ENOMEM;
        r = client_stream(socket, path, collect_response, out, reterr);
        if (fclose(out) != 0 && r >= 0)
                r = -ENOMEM;
        if (r < 0)
                return r;
        *ret = TAKE_PTR(text);
        return 0;
}

int client_get_json(const char *socket, const char *path, json_t **ret, Error *reterr) {
        cleanup_free char *text = NULL;
        json_error_t error;
        json_t *json;
        int r;

        r = client_get(socket, path, &text, reterr);
        if (r < 0)
                return r;
        json = json_loads(text, 0, &error);
        if (!json)
                return error_setf(reterr, EBADMSG,
                                  "the agent's response to %s is not valid JSON: %s", path,
                                  error.text);
        *ret = json;
        return 0;
}

char *client_escape(const char *text) {
        char *escaped = curl_easy_escape(NULL, text, 0);
        char *copy = escaped ? strdup(escaped) : NULL;

        curl_free(escaped);
        return copy;
}
