/* SPDX-License-Identifier: Apache-2.0 */
/* What must be known of an attempt by the next agent, as the shim keeps it: the back-off, the stop
 * signal, the image, what hooks and probes have said, and whether it was killed for that. */

#include "agent/pods/pod-worker-private.h"

#include "agent/bundle/paths.h"
#include "common/log.h"

#include <inttypes.h>
#include <stdlib.h>

/* Each is a letter, if it is so. */
enum {
        CHECKPOINT_POST_STARTED = 'p',
        CHECKPOINT_STARTED = 's',
        CHECKPOINT_READY = 'r',
        CHECKPOINT_KILLED = 'k',
};

void pod_container_print_checkpoint(const PodContainer *c,
                                    char checkpoint[ATTEMPT_CHECKPOINT_MAX]) {
        char flags[5];
        size_t n = 0;

        if (container_machine_has_post_started(c->machine))
                flags[n++] = CHECKPOINT_POST_STARTED;
        /* Also of who is not probed: a probe may be added while it runs. */
        if (container_probes_have_started(c))
                flags[n++] = CHECKPOINT_STARTED;
        if (container_probes_readiness_passed(c))
                flags[n++] = CHECKPOINT_READY;
        if (container_machine_is_killed(c->machine))
                flags[n++] = CHECKPOINT_KILLED;
        flags[n] = '\0';
        (void) snprintf(checkpoint, ATTEMPT_CHECKPOINT_MAX, "%" PRIu64 " %d %s %u %s",
                        container_machine_next_delay(c->machine), c->stop_signal,
                        strna(c->image_id), c->generation, flags);
}

void pod_container_parse_checkpoint(PodContainer *c, const char *checkpoint,
                                    AttemptCheckpoint *ret) {
        const char *flags = "";
        char *rest;

        c->generation = 0;
        ret->next_delay_usec = strtoull(checkpoint, &rest, 10);
        c->stop_signal = (int) strtol(rest, &rest, 10);
        free(TAKE_PTR(c->image_id));
        if (*rest == ' ') {
                size_t length = strcspn(rest + 1, " ");

                c->image_id = strndup(rest + 1, length);
                /* An older agent did not write what follows. */
                c->generation = (unsigned) strtoul(rest + 1 + length, &rest, 10);
                flags = rest;
        }
        ret->has_post_started = strchr(flags, CHECKPOINT_POST_STARTED);
        ret->has_started = strchr(flags, CHECKPOINT_STARTED);
        ret->is_ready = strchr(flags, CHECKPOINT_READY);
        ret->is_killed = strchr(flags, CHECKPOINT_KILLED);
}

void pod_container_update_checkpoint(PodContainer *c) {
        char checkpoint[ATTEMPT_CHECKPOINT_MAX], id[65];
        int r;

        if (!c->pod->sandbox)
                return;
        pod_container_print_checkpoint(c, checkpoint);
        container_id(c->pod->pod->metadata.uid, c->spec->name,
                     container_machine_attempt(c->machine), id);
        r = sandbox_set_container_note(c->pod->sandbox, id, checkpoint);
        if (r < 0)
                (void) log_warning_errno(r, "Cannot note how '%s/%s' is", c->pod->description,
                                         c->spec->name);
}
