/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* libwslay, which is loaded when the first WebSocket is needed. Each pod has a shim, which needs
 * the library only in the processes of its sessions. */

#include "common/macros.h"

#include <wslay/wslay.h>

#define WSLAY_FUNCTION(name) __typeof__(wslay_##name) *(name)

typedef struct WslayLibrary {
        WSLAY_FUNCTION(event_context_client_init);
        WSLAY_FUNCTION(event_context_server_init);
        WSLAY_FUNCTION(event_context_free);
        WSLAY_FUNCTION(event_config_set_max_recv_msg_length);
        WSLAY_FUNCTION(event_recv);
        WSLAY_FUNCTION(event_send);
        WSLAY_FUNCTION(event_queue_msg);
        WSLAY_FUNCTION(event_queue_close);
        WSLAY_FUNCTION(event_set_error);
        WSLAY_FUNCTION(event_want_read);
        WSLAY_FUNCTION(event_want_write);
        WSLAY_FUNCTION(event_get_queued_msg_count);
        WSLAY_FUNCTION(event_get_queued_msg_length);
        WSLAY_FUNCTION(event_get_close_received);
        WSLAY_FUNCTION(event_get_close_sent);
} WslayLibrary;

/* NULL if it cannot be loaded. */
const WslayLibrary *wslay_library(void);
