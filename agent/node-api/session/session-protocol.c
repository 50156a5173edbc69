/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node-api/session/session-protocol.h"

static const SessionProtocol session_protocols[] = {
        { .transport = SESSION_OVER_SPDY,
          .name = "v4.channel.k8s.io",
          .has_resize_stream = true,
          .has_json_status = true },
        { .transport = SESSION_OVER_SPDY, .name = "v3.channel.k8s.io", .has_resize_stream = true },
        { .transport = SESSION_OVER_SPDY, .name = "v2.channel.k8s.io" },
        { .transport = SESSION_OVER_SPDY, .name = "channel.k8s.io", .has_no_input_end = true },

        { .transport = SESSION_OVER_WEBSOCKET,
          .name = "v5.channel.k8s.io",
          .has_close_signal = true,
          .has_json_status = true },
        { .transport = SESSION_OVER_WEBSOCKET,
          .name = "v4.channel.k8s.io",
          .has_json_status = true },
        { .transport = SESSION_OVER_WEBSOCKET,
          .name = "v4.base64.channel.k8s.io",
          .is_base64 = true,
          .has_json_status = true },
        { .transport = SESSION_OVER_WEBSOCKET, .name = "channel.k8s.io" },
        { .transport = SESSION_OVER_WEBSOCKET, .name = "base64.channel.k8s.io", .is_base64 = true },
        { .transport = SESSION_OVER_WEBSOCKET, .name = "" },
};

int next_protocol_word(const char **list, const char **ret, size_t *ret_length) {
        static const char separators[] = ", \t";
        const char *start = *list + strspn(*list, separators);

        *ret = start;
        *ret_length = strcspn(start, separators);
        *list = start + *ret_length;
        return *ret_length > 0;
}

static const SessionProtocol *find_session_protocol(SessionTransport transport, const char *name,
                                                    size_t length) {
        for (size_t i = 0; i < N_ELEMENTS(session_protocols); i++) {
                const SessionProtocol *protocol = &session_protocols[i];

                if (protocol->transport == transport && strlen(protocol->name) == length &&
                    memcmp(protocol->name, name, length) == 0)
                        return protocol;
        }
        return NULL;
}

static const SessionProtocol *find_first_offered(SessionTransport transport, const char *offered) {
        const SessionProtocol *protocol = NULL;
        const char *word;
        size_t length;

        while (!protocol && next_protocol_word(&offered, &word, &length))
                protocol = find_session_protocol(transport, word, length);
        return protocol;
}

const SessionProtocol *session_protocol_of_spdy(const char *offered) {
        return find_first_offered(SESSION_OVER_SPDY, offered);
}

bool is_protocol_offered(const char *offered, const char *name) {
        const char *word;
        size_t length;

        while (next_protocol_word(&offered, &word, &length))
                if (length == strlen(name) && memcmp(word, name, length) == 0)
                        return true;
        return false;
}

const SessionProtocol *session_protocol_of_websocket(const char *offered) {
        static const char latest[] = "v5.channel.k8s.io";

        if (!offered)
                return find_session_protocol(SESSION_OVER_WEBSOCKET, "", 0);
        /* As in the kubelet, the protocol may be at any position in the list. */
        if (is_protocol_offered(offered, latest))
                return find_session_protocol(SESSION_OVER_WEBSOCKET, latest, strlen(latest));
        return find_first_offered(SESSION_OVER_WEBSOCKET, offered);
}

const char *session_spdy_protocol_name(size_t n) {
        if (n >= N_ELEMENTS(session_protocols) ||
            session_protocols[n].transport != SESSION_OVER_SPDY)
                return NULL;
        return session_protocols[n].name;
}
