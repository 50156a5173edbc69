/* SPDX-License-Identifier: Apache-2.0 */

/* Kubernetes' rules for probes and hooks. */

#include "agent/manifest/validate-pod.h"
#include "agent/model/names.h"
#include "common/cleanup.h"
#include "common/strv.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

enum {
        EXEC_JSON_MAX = 60 * 1024
};

static const char not_in_init[] = "may not be set for init containers without restartPolicy=Always";

/* The current container, and the path of the current field. */
typedef struct ProbePosition {
        const Rules *rules;
        const Container *container;
        char path[DECODE_PATH_SIZE];
} ProbePosition;

static int probe_error(const ProbePosition *position, const char *field, const char *format, ...)
        printf_like(3, 4);

static int probe_error(const ProbePosition *position, const char *field, const char *format, ...) {
        cleanup_free char *sentence = NULL;
        va_list ap;

        va_start(ap, format);
        sentence = format_message(format, ap);
        va_end(ap);
        if (!sentence)
                return -ENOMEM;
        return rules_at(position->rules,
                        error_setf(position->rules->reterr, EINVAL, "%s", sentence), "%s%s%s",
                        position->path, field[0] ? "." : "", field);
}

static ProbePosition make_probe_position(const Rules *rules, const Container *container,
                                         const char *path, const char *field) {
        ProbePosition position = { .rules = rules, .container = container };

        (void) snprintf(position.path, sizeof(position.path), "%.400s.%s", path, field);
        return position;
}

/* A named port must be a port of the container, because otherwise the probe could never connect. An
 * API server accepts other names; the probe then returns an error, which does not affect the
 * container. */
static int check_named_port(const ProbePosition *position, const IntOrString *port,
                            const char *field) {
        char text[EXCERPT_SIZE];

        if (!port->text || rules_are_of_api(position->rules))
                return 0;
        for (size_t i = 0; i < position->container->ports.n; i++)
                if (streq_ptr(position->container->ports.items[i].name, port->text))
                        return 0;
        return probe_error(position, field, "must name a port of this container, not '%s'",
                           excerpt(text, port->text));
}

static int check_sleep(const ProbePosition *position, const SleepAction *sleep) {
        int64_t grace = position->rules->pod->spec.termination_grace_period_seconds.value;

        if (sleep->seconds.value >= 0 && sleep->seconds.value <= grace)
                return 0;
        return probe_error(
                position, "sleep.seconds",
                "must be non-negative and less than terminationGracePeriodSeconds (%" PRId64 ")",
                grace);
}

static size_t length_as_json(const char *text) {
        size_t n = sizeof("\"\",") - 1;

        for (; *text; text++)
                n += (unsigned char) *text < ' ' ? sizeof("\\u0000") - 1
                     : strchr("\"\\", *text)     ? 2
                                                 : 1;
        return n;
}

/* The shim gets the command in one packet. In a pod of an API server, a longer command fails when
 * it is run. */
static int check_exec(const ProbePosition *position, const ExecAction *exec) {
        size_t n = 0;

        strv_foreach(argument, exec->command)
                n += length_as_json(*argument);
        if (n <= EXEC_JSON_MAX || rules_are_of_api(position->rules))
                return 0;
        return probe_error(position, "exec.command",
                           "must be at most %d bytes together as JSON, not %zu", EXEC_JSON_MAX, n);
}

/* Exactly one kind of handler. */
static int check_handler_kinds(const ProbePosition *position, const Handler *handler) {
        const struct {
                const char *field;
                bool is_there;
        } kinds[] = {
                { "exec", handler->exec },
                { "httpGet", handler->http_get },
                { "tcpSocket", handler->tcp_socket },
                { "grpc", handler->grpc },
                { "sleep", handler->sleep },
        };
        size_t n = 0;

        for (size_t i = 0; i < N_ELEMENTS(kinds); i++) {
                n += kinds[i].is_there;
                if (kinds[i].is_there && n > 1)
                        return probe_error(position, kinds[i].field,
                                           "may not specify more than 1 handler type");
        }
        /* A newer API server may support other kinds: the handler fails. */
        return n == 0 && !rules_are_of_api(position->rules)
                       ? probe_error(position, "", "must specify a handler type")
                       : 0;
}

static int check_handler(const ProbePosition *position, const Handler *handler) {
        int r = check_handler_kinds(position, handler);

        if (r < 0)
                return r;
        if (handler->exec)
                r = check_exec(position, handler->exec);
        if (r < 0)
                return r;
        if (handler->http_get)
                r = check_named_port(position, &handler->http_get->port, "httpGet.port");
        if (r < 0)
                return r;
        if (handler->tcp_socket)
                r = check_named_port(position, &handler->tcp_socket->port, "tcpSocket.port");
        if (r < 0 || !handler->sleep)
                return r;
        return check_sleep(position, handler->sleep);
}

static int check_probe(const ProbePosition *position, const Probe *probe, bool is_readiness) {
        const OptionalInt *grace = &probe->termination_grace_period_seconds;
        int r = check_handler(position, &probe->handler);

        if (r < 0)
                return r;
        if (!is_readiness && probe->success_threshold.value != 1)
                return probe_error(position, "successThreshold", "must be 1, not %" PRId64,
                                   probe->success_threshold.value);
        if (is_readiness && grace->is_set)
                return probe_error(position, "terminationGracePeriodSeconds",
                                   "must not be set for readinessProbes");
        if (grace->is_set && grace->value <= 0)
                return probe_error(position, "terminationGracePeriodSeconds",
                                   "must be greater than 0, not %" PRId64, grace->value);
        return 0;
}

static int check_lifecycle(const Rules *rules, const ContainerAt *at) {
        const Container *container = at->container;
        const Lifecycle *lifecycle = container->lifecycle;
        const ProbePosition position = make_probe_position(rules, container, at->path, "lifecycle");
        const ProbePosition start =
                make_probe_position(rules, container, position.path, "postStart");
        const ProbePosition stop = make_probe_position(rules, container, position.path, "preStop");
        int r = 0;

        if (at->role == ROLE_INIT)
                return probe_error(&position, "", "%s", not_in_init);
        if (lifecycle->post_start)
                r = check_handler(&start, lifecycle->post_start);
        if (r < 0)
                return r;
        if (lifecycle->pre_stop)
                r = check_handler(&stop, lifecycle->pre_stop);
        if (r < 0)
                return r;
        if (lifecycle->stop_signal && !rules->pod->spec.os)
                return probe_error(&position, "stopSignal",
                                   "may not be set for containers with empty `spec.os.name`");
        return 0;
}

int check_probes(const Rules *rules, const ContainerAt *at) {
        const Container *container = at->container;
        const struct {
                const char *field;
                const Probe *probe;
        } probes[] = {
                { "livenessProbe", container->liveness_probe },
                { "readinessProbe", container->readiness_probe },
                { "startupProbe", container->startup_probe },
        };

        for (size_t i = 0; i < N_ELEMENTS(probes); i++) {
                const ProbePosition position =
                        make_probe_position(rules, container, at->path, probes[i].field);
                int r = 0;

                if (probes[i].probe && at->role == ROLE_INIT)
                        r = probe_error(&position, "", "%s", not_in_init);
                else if (probes[i].probe)
                        r = check_probe(&position, probes[i].probe,
                                        probes[i].probe == container->readiness_probe);
                r = rules_keep(rules, r);
                if (r < 0)
                        return r;
        }
        return container->lifecycle ? check_lifecycle(rules, at) : 0;
}
