/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pods/probe/handler-run-private.h"

#include "agent/model/schema.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/event-source.h"

#include <inttypes.h>
#include <stdarg.h>

/* A response that has arrived is processed before the timeout, because timers have a lower priority
 * than sockets. */
enum {
        HANDLER_TIMER_PRIORITY = SD_EVENT_PRIORITY_NORMAL + 1,
};

/* The shim kills a command in time; this limit is for a shim that does not respond at all. */
#define EXEC_ANSWER_TIMEOUT_USEC (10 * USEC_PER_SEC)

/* If the agent itself is delayed by more than this, the handler gets the same time again. */
#define LATE_USEC (20 * USEC_PER_MSEC)

#define HANDLER_TIMER_ACCURACY_USEC (10 * USEC_PER_MSEC)

static void stop_handler_sources(HandlerRun *run) {
        run->timer = sd_event_source_disable_unref(run->timer);
        run->deferred = sd_event_source_disable_unref(run->deferred);
        run->connection = sd_event_source_disable_unref(run->connection);
        run->fd = close_fd(run->fd);
        run->request = http_client_cancel(run->request);
        run->exec = sandbox_exec_cancel(run->exec);
}

void handler_run_finish(HandlerRun *run, HandlerResult result, const char *format, ...) {
        cleanup_free char *message = NULL;
        va_list ap;

        va_start(ap, format);
        message = format_message(format, ap);
        va_end(ap);
        stop_handler_sources(run);
        run->done(result, strna(message), run->userdata);
}

static int on_deferred_result(sd_event_source *source, void *userdata) {
        HandlerRun *run = userdata;
        cleanup_free char *message = TAKE_PTR(run->message);

        handler_run_finish(run, run->result, "%s", strna(message));
        return 0;
}

void handler_run_finish_deferred(HandlerRun *run, HandlerResult result, const char *format, ...) {
        va_list ap;

        free(TAKE_PTR(run->message));
        va_start(ap, format);
        run->message = format_message(format, ap);
        va_end(ap);
        run->result = result;
        if (!run->deferred)
                (void) sd_event_add_defer(run->target.event, &run->deferred, on_deferred_result,
                                          run);
}

int64_t handler_run_find_port(HandlerRun *run, const IntOrString *port) {
        const Container *container = run->target.container;

        if (!port->text)
                return port->number.value;
        for (size_t i = 0; i < container->ports.n; i++)
                if (streq_ptr(container->ports.items[i].name, port->text))
                        return container->ports.items[i].container_port.value;
        handler_run_finish_deferred(run, HANDLER_ERROR,
                                    "the container does not have a port of the name '%.64s'",
                                    port->text);
        return 0;
}

HttpClient *handler_run_http_client(HandlerRun *run) {
        cleanup_error Error error = ERROR_NULL;
        int r = *run->target.http ? 0
                                  : http_client_new(run->target.event, run->target.http, &error);

        if (r >= 0)
                return *run->target.http;
        handler_run_finish_deferred(run, HANDLER_ERROR, "%s", error_message(&error, r));
        return NULL;
}

/* Escapes characters that a URL must not contain, like Go. */
static void write_url_path(FILE *out, const char *path) {
        if (path[0] != '/')
                (void) fputc('/', out);
        for (const char *p = path; *p; p++)
                if ((unsigned char) *p <= ' ' || (unsigned char) *p >= 0x7f)
                        (void) fprintf(out, "%%%02X", (unsigned char) *p);
                else
                        (void) fputc(*p, out);
}

char *format_handler_url(const char *scheme, const char *host, int64_t port, const char *path) {
        bool is_ipv6 = strchr(host, ':');
        cleanup_free char *url = NULL;
        size_t length;
        FILE *out = open_memstream(&url, &length);

        if (!out)
                return NULL;
        (void) fprintf(out, "%s://%s%s%s:%" PRId64, scheme, is_ipv6 ? "[" : "", host,
                       is_ipv6 ? "]" : "", port);
        write_url_path(out, path);
        return fclose(out) == 0 ? TAKE_PTR(url) : NULL;
}

static void finish_timed_out_handler(HandlerRun *run) {
        const Handler *handler = run->spec.handler;
        uint64_t seconds = run->spec.timeout_usec / USEC_PER_SEC;

        if (handler->sleep)
                handler_run_finish(run, HANDLER_SUCCEEDED, "%s", "");
        else if (handler->exec)
                handler_run_finish(run, HANDLER_ERROR, "the shim does not answer");
        else if (handler->http_get)
                handler_run_finish(run, HANDLER_FAILED, "%s", http_timeout_message(run));
        else if (handler->grpc)
                handler_run_finish(run, HANDLER_FAILED,
                                   "timeout: health rpc did not complete within %" PRIu64 "s",
                                   seconds);
        else
                handler_run_finish(run, HANDLER_FAILED, "dial tcp %s: i/o timeout", run->url);
}

static int on_handler_timeout(sd_event_source *source, uint64_t usec, void *userdata) {
        HandlerRun *run = userdata;
        uint64_t now = now_awake_usec(), late = now > usec ? now - usec : 0;

        if (late <= LATE_USEC || run->was_extended) {
                finish_timed_out_handler(run);
                return 0;
        }
        run->was_extended = true;
        (void) event_timer_arm(source, late);
        return 0;
}

/* 0: no limit. */
static uint64_t handler_timeout_usec(const HandlerRunSpec *spec) {
        const Handler *handler = spec->handler;

        if (handler->sleep) {
                uint64_t usec = (uint64_t) handler->sleep->seconds.value * USEC_PER_SEC;

                return spec->timeout_usec > 0 ? MIN(usec, spec->timeout_usec) : usec;
        }
        if (handler->exec && spec->timeout_usec > 0)
                return spec->timeout_usec + EXEC_ANSWER_TIMEOUT_USEC;
        return spec->timeout_usec;
}

static int arm_handler_timer(HandlerRun *run) {
        uint64_t usec = handler_timeout_usec(&run->spec);
        int r;

        if (usec == 0 && !run->spec.handler->sleep)
                return 0;
        r = sd_event_add_time(run->target.event, &run->timer, CLOCK_AWAKE, run->began_at + usec,
                              HANDLER_TIMER_ACCURACY_USEC, on_handler_timeout, run);
        return r < 0 ? r : sd_event_source_set_priority(run->timer, HANDLER_TIMER_PRIORITY);
}

static void begin_handler(HandlerRun *run) {
        const Handler *handler = run->spec.handler;

        if (handler->exec)
                handler_begin_exec(run);
        else if (handler->http_get)
                handler_begin_http(run);
        else if (handler->tcp_socket && !run->spec.is_hook)
                handler_begin_tcp(run);
        else if (handler->grpc)
                handler_begin_grpc(run);
        else if (handler->tcp_socket)
                /* The API server accepts such a hook, but the kubelet does not. */
                handler_run_finish_deferred(run, HANDLER_FAILED, "invalid handler: tcpSocket");
        else if (!handler->sleep) /* a kind of handler that only a newer API server supports */
                handler_run_finish_deferred(run, run->spec.is_hook ? HANDLER_FAILED : HANDLER_ERROR,
                                            "missing handler: this version of Mainstay does not "
                                            "know its kind");
}

int handler_run_start(const HandlerTarget *target, const HandlerRunSpec *spec, handler_done_t done,
                      void *userdata, HandlerRun **ret) {
        HandlerRun *run = calloc(1, sizeof(*run));
        int r;

        if (!run)
                return -ENOMEM;
        *run = (HandlerRun){
                .target = *target,
                .spec = *spec,
                .done = done,
                .userdata = userdata,
                .address = strdup(target->address),
                .began_at = now_awake_usec(),
                .fd = -EBADF,
        };
        r = run->address ? schema_copy(&any_handler_schema, &run->handler, spec->handler) : -ENOMEM;
        run->spec.handler = &run->handler;
        if (r >= 0)
                r = arm_handler_timer(run);
        if (r < 0) {
                handler_run_free(run);
                return r;
        }
        begin_handler(run);
        run->target.id = run->target.address = NULL;
        run->target.container = NULL;
        *ret = run;
        return 0;
}

HandlerRun *handler_run_free(HandlerRun *run) {
        if (!run)
                return NULL;
        stop_handler_sources(run);
        free(run->message);
        schema_done(&any_handler_schema, &run->handler);
        free(run->url);
        free(run->address);
        free(run);
        return NULL;
}
