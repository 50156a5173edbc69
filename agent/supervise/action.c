/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/supervise/action-internal.h"

#include "agent/model/schema.h"
#include "common/cleanup.h"
#include "common/clock.h"

#include <inttypes.h>
#include <stdarg.h>

/* An answer that is there is heard before its time is said to be over: timers come after sockets.
 */
enum {
        TIMER_PRIORITY = SD_EVENT_PRIORITY_NORMAL + 1,
};

/* The shim ends a program in time; this is for the case that it does not answer at all. */
#define EXEC_PATIENCE_USEC (10 * USEC_PER_SEC)

/* Who finds himself called later than this has no right to call others late. */
#define LATE_USEC (20 * USEC_PER_MSEC)

#define TIMER_ACCURACY_USEC (10 * USEC_PER_MSEC)

static void stop_all(Action *action) {
        action->timer = sd_event_source_disable_unref(action->timer);
        action->deferred = sd_event_source_disable_unref(action->deferred);
        action->connection = sd_event_source_disable_unref(action->connection);
        action->fd = close_fd(action->fd);
        action->request = http_cancel(action->request);
        free(TAKE_PTR(action->exec_id));
}

void action_finish(Action *action, ActionResult result, const char *format, ...) {
        cleanup_free char *message = NULL;
        va_list ap;

        va_start(ap, format);
        if (vasprintf(&message, format, ap) < 0)
                message = NULL;
        va_end(ap);
        stop_all(action);
        action->done(result, strna(message), action->userdata);
}

static int on_deferred(sd_event_source *source, void *userdata) {
        Action *action = userdata;
        cleanup_free char *message = TAKE_PTR(action->message);

        action_finish(action, action->result, "%s", strna(message));
        return 0;
}

void action_finish_soon(Action *action, ActionResult result, const char *format, ...) {
        va_list ap;

        free(TAKE_PTR(action->message));
        va_start(ap, format);
        if (vasprintf(&action->message, format, ap) < 0)
                action->message = NULL;
        va_end(ap);
        action->result = result;
        if (!action->deferred)
                (void) sd_event_add_defer(action->target.event, &action->deferred, on_deferred,
                                          action);
}

int64_t action_port(const Action *action, const IntOrString *port) {
        const Container *container = action->target.container;

        if (!port->text)
                return port->number.value;
        for (size_t i = 0; i < container->ports.n; i++)
                if (streq_ptr(container->ports.items[i].name, port->text))
                        return container->ports.items[i].container_port.value;
        return 0;
}

Http *action_http(Action *action) {
        cleanup_error Error error = ERROR_NULL;
        int r = *action->target.http ? 0
                                     : http_new(action->target.event, action->target.http, &error);

        if (r >= 0)
                return *action->target.http;
        action_finish_soon(action, ACTION_BROKEN, "%s", error_message(&error, r));
        return NULL;
}

/* What may not stand in a URL is written as Go writes it. */
static void write_path(FILE *out, const char *path) {
        if (path[0] != '/')
                (void) fputc('/', out);
        for (const char *p = path; *p; p++)
                if ((unsigned char) *p <= ' ' || (unsigned char) *p >= 0x7f)
                        (void) fprintf(out, "%%%02X", (unsigned char) *p);
                else
                        (void) fputc(*p, out);
}

char *action_url(const char *scheme, const char *host, int64_t port, const char *path) {
        bool is_ipv6 = strchr(host, ':');
        cleanup_free char *url = NULL;
        size_t length;
        FILE *out = open_memstream(&url, &length);

        if (!out)
                return NULL;
        (void) fprintf(out, "%s://%s%s%s:%" PRId64, scheme, is_ipv6 ? "[" : "", host,
                       is_ipv6 ? "]" : "", port);
        write_path(out, path);
        return fclose(out) == 0 ? TAKE_PTR(url) : NULL;
}

static void time_is_over(Action *action) {
        const Handler *handler = action->spec.handler;
        uint64_t seconds = action->spec.timeout_usec / USEC_PER_SEC;

        if (handler->sleep)
                action_finish(action, ACTION_SUCCEEDED, "%s", "");
        else if (handler->exec)
                action_finish(action, ACTION_BROKEN, "the shim does not answer");
        else if (handler->http_get)
                action_finish(action, ACTION_FAILED, "%s", action_http_late(action));
        else if (handler->grpc)
                action_finish(action, ACTION_FAILED,
                              "timeout: health rpc did not complete within %" PRIu64 "s", seconds);
        else
                action_finish(action, ACTION_FAILED, "dial tcp %s: i/o timeout", action->url);
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        Action *action = userdata;
        uint64_t now = now_boottime_usec(), late = now > usec ? now - usec : 0;

        if (late <= LATE_USEC || action->was_extended) {
                time_is_over(action);
                return 0;
        }
        action->was_extended = true;
        (void) sd_event_source_set_time_relative(source, late);
        (void) sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
        return 0;
}

/* 0: it may take as long as it likes. */
static uint64_t patience(const ActionSpec *spec) {
        const Handler *handler = spec->handler;

        if (handler->sleep) {
                uint64_t usec = (uint64_t) handler->sleep->seconds.value * USEC_PER_SEC;

                return spec->timeout_usec > 0 ? MIN(usec, spec->timeout_usec) : usec;
        }
        if (handler->exec && spec->timeout_usec > 0)
                return spec->timeout_usec + EXEC_PATIENCE_USEC;
        return spec->timeout_usec;
}

static int arm_timer(Action *action) {
        uint64_t usec = patience(&action->spec);
        int r;

        if (usec == 0 && !action->spec.handler->sleep)
                return 0;
        r = sd_event_add_time(action->target.event, &action->timer, CLOCK_BOOTTIME,
                              action->began_at + usec, TIMER_ACCURACY_USEC, on_timer, action);
        return r < 0 ? r : sd_event_source_set_priority(action->timer, TIMER_PRIORITY);
}

static void begin(Action *action) {
        const Handler *handler = action->spec.handler;

        if (handler->exec)
                action_begin_exec(action);
        else if (handler->http_get)
                action_begin_http(action);
        else if (handler->tcp_socket && !action->spec.is_hook)
                action_begin_tcp(action);
        else if (handler->grpc)
                action_begin_grpc(action);
        else if (!handler->sleep)
                /* Kubernetes' API takes such a hook, and its kubelet does not. */
                action_finish_soon(action, ACTION_FAILED, "invalid handler: tcpSocket");
}

int action_start(const ActionTarget *target, const ActionSpec *spec, action_done_t done,
                 void *userdata, Action **ret) {
        Action *action = calloc(1, sizeof(*action));
        int r;

        if (!action)
                return -ENOMEM;
        *action = (Action){
                .target = *target,
                .spec = *spec,
                .done = done,
                .userdata = userdata,
                .address = strdup(target->address),
                .began_at = now_boottime_usec(),
                .fd = -EBADF,
        };
        r = action->address ? schema_copy(&any_handler_schema, &action->handler, spec->handler)
                            : -ENOMEM;
        action->spec.handler = &action->handler;
        if (r >= 0)
                r = arm_timer(action);
        if (r < 0) {
                action_free(action);
                return r;
        }
        begin(action);
        action->target.id = action->target.address = NULL;
        action->target.container = NULL;
        *ret = action;
        return 0;
}

Action *action_free(Action *action) {
        if (!action)
                return NULL;
        stop_all(action);
        free(action->message);
        schema_done(&any_handler_schema, &action->handler);
        free(action->url);
        free(action->address);
        free(action);
        return NULL;
}
