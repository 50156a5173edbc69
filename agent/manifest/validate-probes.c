/* SPDX-License-Identifier: Apache-2.0 */

/* Kubernetes' rules for probes and hooks. */

#include "agent/manifest/validate.h"
#include "agent/model/names.h"
#include "common/cleanup.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

static const char not_in_init[] = "may not be set for init containers without restartPolicy=Always";

/* Where we are: the container, and the path of what is looked at. */
typedef struct Place {
        const Rules *rules;
        const Container *container;
        char path[DECODE_PATH_SIZE];
} Place;

static int broken(const Place *place, const char *field, const char *format, ...) printf_like(3, 4);

static int broken(const Place *place, const char *field, const char *format, ...) {
        cleanup_free char *sentence = NULL;
        va_list ap;
        int r;

        va_start(ap, format);
        r = vasprintf(&sentence, format, ap);
        va_end(ap);
        if (r < 0)
                return -ENOMEM;
        return rules_at(place->rules, error_setf(place->rules->reterr, EINVAL, "%s", sentence),
                        "%s%s%s", place->path, field[0] ? "." : "", field);
}

static Place place_of(const Rules *rules, const Container *container, const char *path,
                      const char *field) {
        Place place = { .rules = rules, .container = container };

        (void) snprintf(place.path, sizeof(place.path), "%.400s.%s", path, field);
        return place;
}

/* A port that is named must be one of the container's, or nobody would ever be reached. */
static int check_port(const Place *place, const IntOrString *port, const char *field) {
        char text[EXCERPT_SIZE];

        if (!port->text)
                return 0;
        for (size_t i = 0; i < place->container->ports.n; i++)
                if (streq_ptr(place->container->ports.items[i].name, port->text))
                        return 0;
        return broken(place, field, "names no port of this container: '%s'",
                      excerpt(text, port->text));
}

static int check_sleep(const Place *place, const SleepAction *sleep) {
        int64_t grace = place->rules->pod->spec.termination_grace_period_seconds.value;

        if (sleep->seconds.value >= 0 && sleep->seconds.value <= grace)
                return 0;
        return broken(place, "sleep.seconds",
                      "must be non-negative and less than terminationGracePeriodSeconds (%" PRId64
                      ")",
                      grace);
}

/* One kind of handler, no more and no less. */
static int check_kinds(const Place *place, const Handler *handler) {
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
                        return broken(place, kinds[i].field,
                                      "may not specify more than 1 handler type");
        }
        return n == 0 ? broken(place, "", "must specify a handler type") : 0;
}

static int check_handler(const Place *place, const Handler *handler) {
        int r = check_kinds(place, handler);

        if (r >= 0 && handler->http_get)
                r = check_port(place, &handler->http_get->port, "httpGet.port");
        if (r >= 0 && handler->tcp_socket)
                r = check_port(place, &handler->tcp_socket->port, "tcpSocket.port");
        if (r >= 0 && handler->sleep)
                r = check_sleep(place, handler->sleep);
        return r;
}

static int check_probe(const Place *place, const Probe *probe, bool is_readiness) {
        const OptionalInt *grace = &probe->termination_grace_period_seconds;
        int r = check_handler(place, &probe->handler);

        if (r < 0)
                return r;
        if (!is_readiness && probe->success_threshold.value != 1)
                return broken(place, "successThreshold", "must be 1, not %" PRId64,
                              probe->success_threshold.value);
        if (is_readiness && grace->is_set)
                return broken(place, "terminationGracePeriodSeconds",
                              "must not be set for readinessProbes");
        if (grace->is_set && grace->value <= 0)
                return broken(place, "terminationGracePeriodSeconds",
                              "must be greater than 0, not %" PRId64, grace->value);
        return 0;
}

static int check_lifecycle(const Rules *rules, const ContainerAt *at) {
        const Container *container = at->container;
        const Lifecycle *lifecycle = container->lifecycle;
        const Place place = place_of(rules, container, at->path, "lifecycle");
        const Place start = place_of(rules, container, place.path, "postStart");
        const Place stop = place_of(rules, container, place.path, "preStop");
        int r = 0;

        if (at->role == ROLE_INIT)
                return broken(&place, "", "%s", not_in_init);
        if (lifecycle->post_start)
                r = check_handler(&start, lifecycle->post_start);
        if (r >= 0 && lifecycle->pre_stop)
                r = check_handler(&stop, lifecycle->pre_stop);
        if (r >= 0 && lifecycle->stop_signal && !rules->pod->spec.os)
                r = broken(&place, "stopSignal",
                           "may not be set for containers with empty `spec.os.name`");
        return r;
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
                const Place place = place_of(rules, container, at->path, probes[i].field);
                int r = 0;

                if (probes[i].probe && at->role == ROLE_INIT)
                        r = broken(&place, "", "%s", not_in_init);
                else if (probes[i].probe)
                        r = check_probe(&place, probes[i].probe,
                                        probes[i].probe == container->readiness_probe);
                if (r < 0)
                        return r;
        }
        return container->lifecycle ? check_lifecycle(rules, at) : 0;
}
