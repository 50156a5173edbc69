/* SPDX-License-Identifier: Apache-2.0 */

/* Prints a reflector for `mainstay debug dump`. */

#include "agent/kubeclient/reflector-private.h"

#include "common/clock.h"
#include "common/dump.h"

#include <inttypes.h>

void kube_reflector_dump(const KubeReflector *r, FILE *out) {
        static const char *const phases[] = {
                [REFLECTOR_WAITING] = "waiting",
                [REFLECTOR_LISTING] = "listing",
                [REFLECTOR_WATCHING] = "watching",
        };
        char age[DUMP_DURATION_SIZE];

        dump_line(out, 1, "reflector: %s%s%s, %s, resourceVersion %s, %s", r->path,
                  r->query[0] ? "?" : "", r->query, phases[r->phase],
                  r->resource_version ? r->resource_version : "none",
                  r->is_synced ? "synced" : "not synced");
        if (r->phase == REFLECTOR_WATCHING)
                dump_line(out, 2, "watch: %s for %s", r->is_open ? "open" : "requested",
                          dump_format_duration(age, now_boottime_usec() - r->started_at));
        if (r->last_error)
                dump_line(out, 2, "last error: %s", r->last_error);
        if (r->back_off.n_failures > 0)
                dump_line(out, 2, "failures: %u", r->back_off.n_failures);
        if (r->waits_for_server)
                dump_line(out, 2, "waits for the server");
        dump_timer(out, 2, "next request", r->timer);
        dump_timer(out, 2, "next list", r->relist_timer);
}
