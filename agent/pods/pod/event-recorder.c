/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pods/pod/event-recorder.h"

#include "common/cleanup.h"

#include <stdarg.h>

void record_pod_event(const PodInstance *instance, const char *container, PodEventKind kind,
                      const char *reason, const char *format, ...) {
        const PodContext *context = instance->context;
        cleanup_free char *message = NULL;
        va_list ap;

        if (!context->on_event)
                return;
        va_start(ap, format);
        message = format_message(format, ap);
        va_end(ap);
        if (!message)
                return;
        context->on_event(&(PodEvent){ .pod = instance->pod,
                                       .container = container,
                                       .kind = kind,
                                       .reason = reason,
                                       .message = message },
                          context->userdata);
}
