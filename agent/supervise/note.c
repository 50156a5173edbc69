/* SPDX-License-Identifier: Apache-2.0 */
/* What must be known of an attempt by the next agent, as the shim keeps it: the back-off, the stop
 * signal, the image, what hooks and probes have said, and whether it was killed for that. */

#include "agent/supervise/pod-internal.h"

#include "agent/bundle/paths.h"
#include "common/log.h"

#include <inttypes.h>
#include <stdlib.h>

/* Each is a letter, if it is so. */
enum {
        FLAG_POST_STARTED = 'p',
        FLAG_STARTED = 's',
        FLAG_READY = 'r',
        FLAG_KILLED = 'k',
};

void pod_container_print_note(const PodContainer *c, char note[NOTE_MAX]) {
        char flags[5];
        size_t n = 0;

        if (container_has_post_started(c->life))
                flags[n++] = FLAG_POST_STARTED;
        /* Also of who is not probed: a probe may be added while it runs. */
        if (probers_have_started(c))
                flags[n++] = FLAG_STARTED;
        if (probers_are_passed(c))
                flags[n++] = FLAG_READY;
        if (container_is_killed(c->life))
                flags[n++] = FLAG_KILLED;
        flags[n] = '\0';
        (void) snprintf(note, NOTE_MAX, "%" PRIu64 " %d %s %u %s", container_next_delay(c->life),
                        c->stop_signal, strna(c->image_id), c->generation, flags);
}

void pod_container_read_note(PodContainer *c, const char *note, AttemptNote *ret) {
        const char *flags = "";
        char *rest;

        c->generation = 0;
        ret->next_delay_usec = strtoull(note, &rest, 10);
        c->stop_signal = (int) strtol(rest, &rest, 10);
        free(TAKE_PTR(c->image_id));
        if (*rest == ' ') {
                size_t length = strcspn(rest + 1, " ");

                c->image_id = strndup(rest + 1, length);
                /* An older agent did not write what follows. */
                c->generation = (unsigned) strtoul(rest + 1 + length, &rest, 10);
                flags = rest;
        }
        ret->has_post_started = strchr(flags, FLAG_POST_STARTED);
        ret->has_started = strchr(flags, FLAG_STARTED);
        ret->is_ready = strchr(flags, FLAG_READY);
        ret->is_killed = strchr(flags, FLAG_KILLED);
}

void pod_container_update_note(PodContainer *c) {
        char note[NOTE_MAX], id[65];
        int r;

        if (!c->pod->sandbox)
                return;
        pod_container_print_note(c, note);
        container_id(c->pod->pod->metadata.uid, c->spec->name, container_attempt(c->life), id);
        r = sandbox_set_note(c->pod->sandbox, id, note);
        if (r < 0)
                (void) log_warning_errno(r, "Cannot note how '%s/%s' is", c->pod->description,
                                         c->spec->name);
}
