/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/supervise/tell.h"

#include "agent/supervise/pod-internal.h"
#include "common/cleanup.h"

#include <stdarg.h>

void event_tell(const PodLife *life, const char *container, PodEventKind kind, const char *reason,
                const char *format, ...) {
        const PodContext *context = life->context;
        cleanup_free char *message = NULL;
        va_list ap;
        int r;

        if (!context->on_event)
                return;
        va_start(ap, format);
        r = vasprintf(&message, format, ap);
        va_end(ap);
        if (r < 0) {
                message = NULL;
                return;
        }
        context->on_event(&(PodEvent){ .pod = life->pod,
                                       .container = container,
                                       .kind = kind,
                                       .reason = reason,
                                       .message = message },
                          context->userdata);
}
