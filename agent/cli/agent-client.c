/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cli/agent-client.h"

#include "common/buffer.h"
#include "common/cleanup.h"
#include "common/curl-transfer.h"
#include "common/text.h"

enum {
        RESPONSE_BYTES_MAX = 64 * 1024 * 1024,
        ERROR_MESSAGE_MAX = 1024, /* of an error response */
        HEADER_BYTES_MAX = 64 * 1024,
};

static void curl_easy_cleanupp(CURL **easy) {
        if (*easy)
                curl_library(NULL)->easy_cleanup(*easy);
}

typedef struct ClientTransfer {
        CurlTransfer transfer;
        client_data_t on_data;
        void *userdata;
        bool is_ended; /* by the callback */
        char message[ERROR_MESSAGE_MAX];
        size_t message_length;
} ClientTransfer;

static int on_client_data(const char *data, size_t length, void *userdata) {
        ClientTransfer *transfer = userdata;
        int r;

        if (curl_transfer_status(&transfer->transfer) != 200) {
                size_t kept = MIN(length, ERROR_MESSAGE_MAX - 1 - transfer->message_length);

                memcpy(transfer->message + transfer->message_length, data, kept);
                transfer->message_length += kept;
                return 0;
        }
        r = transfer->on_data(data, length, transfer->userdata);
        transfer->is_ended = r > 0;
        return r > 0 ? -ECANCELED : r;
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

int client_explain_refusal(long status, char *text, Error *reterr) {
        text[strcspn(text, "\n")] = '\0';
        if (text[0] != '<') /* the agent's own messages are a line of text */
                return error_setf(reterr, EREMOTEIO, "%s", text);
        if (status == 413 || status == 414 || status == 431)
                return error_setf(reterr, E2BIG, "the arguments are too long for the agent");
        return error_setf(reterr, EREMOTEIO, "the agent does not accept the request: status %ld",
                          status);
}

static int explain_client_result(ClientTransfer *transfer, CURLcode code, const char *socket,
                                 Error *reterr) {
        long number = 0;

        if (transfer->is_ended)
                return 0;
        if (transfer->transfer.result < 0)
                return error_setf(reterr, -transfer->transfer.result, "%s",
                                  curl_transfer_explain(&transfer->transfer, code));
        if (code == CURLE_COULDNT_CONNECT) {
                curl_library(NULL)->easy_getinfo(transfer->transfer.easy, CURLINFO_OS_ERRNO,
                                                 &number);
                return client_explain_connection((int) number, socket, reterr);
        }
        if (code != CURLE_OK)
                return error_setf(reterr, EIO,
                                  "the agent at %s closed the connection within its response (%s)",
                                  socket, curl_transfer_explain(&transfer->transfer, code));
        if (curl_transfer_status(&transfer->transfer) == 200)
                return 0;
        transfer->message[transfer->message_length] = '\0';
        return client_explain_refusal(curl_transfer_status(&transfer->transfer), transfer->message,
                                      reterr);
}

static int perform_client_request(ClientTransfer *transfer, CURL *easy, const char *socket,
                                  const char *method, const char *url, Error *reterr) {
        int r = curl_transfer_init(&transfer->transfer, easy,
                                   &(CurlTransferSpec){ .url = url,
                                                        .protocols = "http",
                                                        .unix_socket = socket,
                                                        .method = method,
                                                        .tls = { -EBADF, -EBADF, -EBADF, false },
                                                        .http_version = CURL_HTTP_VERSION_1_1,
                                                        .header_max = HEADER_BYTES_MAX,
                                                        .on_data = on_client_data,
                                                        .userdata = transfer });

        if (r >= 0)
                r = explain_client_result(transfer, curl_library(NULL)->easy_perform(easy), socket,
                                          reterr);
        curl_transfer_done(&transfer->transfer);
        return r;
}

int client_request(const char *socket, const char *method, const char *path, client_data_t on_data,
                   void *userdata, Error *reterr) {
        ClientTransfer transfer = { .on_data = on_data, .userdata = userdata };
        cleanup_with(curl_easy_cleanupp) CURL *easy = NULL;
        const CurlLibrary *curl = curl_library(reterr);
        cleanup_free char *url = NULL;

        if (!curl)
                return -ELIBACC;
        easy = curl->easy_init();
        if (!easy)
                return -ENOMEM;
        url = text_format("http://mainstay%s", path);
        if (!url)
                return -ENOMEM;
        return perform_client_request(&transfer, easy, socket, method, url, reterr);
}

int client_stream(const char *socket, const char *path, client_data_t on_data, void *userdata,
                  Error *reterr) {
        return client_request(socket, "GET", path, on_data, userdata, reterr);
}

static int collect_response(const char *data, size_t length, void *userdata) {
        return buffer_append(userdata, data, length, RESPONSE_BYTES_MAX);
}

int client_get(const char *socket, const char *path, char **ret, Error *reterr) {
        cleanup_buffer Buffer body = { 0 };
        int r = client_stream(socket, path, collect_response, &body, reterr);

        if (r < 0)
                return r;
        *ret = body.data ? buffer_take(&body) : strdup("");
        return *ret ? 0 : -ENOMEM;
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
