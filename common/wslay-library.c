/* SPDX-License-Identifier: Apache-2.0 */
#include "common/wslay-library.h"

#include <dlfcn.h>

#define SYMBOL(name) \
        { offsetof(WslayLibrary, name), "wslay_" #name }

static const struct {
        size_t offset;
        const char *name;
} symbols[] = {
        SYMBOL(event_context_client_init),
        SYMBOL(event_context_server_init),
        SYMBOL(event_context_free),
        SYMBOL(event_config_set_max_recv_msg_length),
        SYMBOL(event_recv),
        SYMBOL(event_send),
        SYMBOL(event_queue_msg),
        SYMBOL(event_queue_close),
        SYMBOL(event_set_error),
        SYMBOL(event_want_read),
        SYMBOL(event_want_write),
        SYMBOL(event_get_queued_msg_count),
        SYMBOL(event_get_queued_msg_length),
        SYMBOL(event_get_close_received),
        SYMBOL(event_get_close_sent),
};

_Static_assert(N_ELEMENTS(symbols) * sizeof(void *) == sizeof(WslayLibrary),
               "every member has its symbol");

const WslayLibrary *wslay_library(void) {
        static WslayLibrary library;
        static void *handle;

        if (handle)
                return &library;
        handle = dlopen("libwslay.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
        for (size_t i = 0; handle && i < N_ELEMENTS(symbols); i++) {
                void *symbol = dlsym(handle, symbols[i].name);

                if (symbol)
                        memcpy((char *) &library + symbols[i].offset, &symbol, sizeof(symbol));
                else
                        handle = NULL;
        }
        return handle ? &library : NULL;
}
