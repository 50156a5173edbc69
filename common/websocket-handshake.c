/* SPDX-License-Identifier: Apache-2.0 */
#include "common/websocket-handshake.h"

#include "common/base64.h"
#include "common/hash.h"

#include <errno.h>
#include <stdio.h>
#include <sys/random.h>

char *websocket_accept_key(const char *key, char ret[WEBSOCKET_ACCEPT_SIZE]) {
        static const char guid[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
        uint8_t digest[SHA1_SIZE];
        char text[256];

        (void) snprintf(text, sizeof(text), "%s%s", key, guid);
        sha1(text, strlen(text), digest);
        base64_encode(digest, sizeof(digest), ret);
        return ret;
}

char *websocket_new_key(char ret[WEBSOCKET_ACCEPT_SIZE]) {
        uint8_t bytes[16] = { 0 };

        /* The key only proves that the peer implements the protocol, so any bytes would do. */
        (void) !getrandom(bytes, sizeof(bytes), 0);
        base64_encode(bytes, sizeof(bytes), ret);
        return ret;
}
