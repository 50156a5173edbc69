/* SPDX-License-Identifier: Apache-2.0 */

/* Kubernetes' defaults of probes and hooks. A number that is 0 counts as unset. */

#include "agent/manifest/pod-rules.h"

#include <errno.h>

enum {
        TIMEOUT_DEFAULT_SEC = 1,
        PERIOD_DEFAULT_SEC = 10,
        SUCCESS_THRESHOLD_DEFAULT = 1,
        FAILURE_THRESHOLD_DEFAULT = 3,
};

static void number_set_default(OptionalInt *number, int64_t value) {
        if (number->value == 0)
                *number = (OptionalInt){ .is_set = true, .value = value };
}

static int http_set_defaults(HttpGetAction *http) {
        if (http->scheme == URI_SCHEME_UNSET)
                http->scheme = URI_SCHEME_HTTP;
        if (!http->path)
                http->path = strdup("/");
        return http->path ? 0 : -ENOMEM;
}

static int probe_set_defaults(Probe *probe) {
        if (!probe)
                return 0;
        number_set_default(&probe->timeout_seconds, TIMEOUT_DEFAULT_SEC);
        number_set_default(&probe->period_seconds, PERIOD_DEFAULT_SEC);
        number_set_default(&probe->success_threshold, SUCCESS_THRESHOLD_DEFAULT);
        number_set_default(&probe->failure_threshold, FAILURE_THRESHOLD_DEFAULT);
        return probe->handler.http_get ? http_set_defaults(probe->handler.http_get) : 0;
}

static int hook_set_defaults(Handler *hook) {
        return hook && hook->http_get ? http_set_defaults(hook->http_get) : 0;
}

int probes_set_defaults(Container *container) {
        int r = probe_set_defaults(container->liveness_probe);

        if (r < 0)
                return r;
        r = probe_set_defaults(container->readiness_probe);
        if (r < 0)
                return r;
        r = probe_set_defaults(container->startup_probe);
        if (r < 0)
                return r;
        if (container->lifecycle)
                r = hook_set_defaults(container->lifecycle->post_start);
        if (r < 0 || !container->lifecycle)
                return r;
        return hook_set_defaults(container->lifecycle->pre_stop);
}
