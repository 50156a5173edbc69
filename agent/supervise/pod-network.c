/* SPDX-License-Identifier: Apache-2.0 */
/* The part of a pod's life that is about its network: between the mounts and the first container it
 * is attached, between the last container and the end of the shim it is detached. A pod in the
 * node's network passes through here without a stop. */

#include "agent/bundle/paths.h"
#include "agent/supervise/pod-internal.h"
#include "agent/supervise/tell.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/log.h"

#include <fcntl.h>

#define CHECK_USEC (50 * USEC_PER_MSEC) /* between the checks of two pods */

bool pod_life_has_network(const PodLife *life) {
        return life->attachment && attachment_is_known(life->attachment);
}

void pod_life_end_sandbox(PodLife *life) {
        if (pod_life_has_network(life)) {
                pod_life_set_phase(life, PHASE_DETACHING);
                attachment_detach(life->attachment, life->sandbox);
        } else {
                pod_life_set_phase(life, PHASE_ENDING);
                (void) sandbox_teardown(life->sandbox);
        }
}

/* ---- attached ---- */

static void fail_network(PodLife *life, const char *what, const char *why) {
        cleanup_free char *message = NULL;

        if (asprintf(&message, "failed to %s sandbox network: %s", what, why) < 0)
                message = NULL;
        pod_life_set_trouble(life, strna(message));
        pod_life_retry_later(life, PHASE_READY); /* its shim is there; see step_ready() */
}

static int write_hosts(const PodLife *life, Error *reterr) {
        const char *addresses[2];
        size_t n = 0;

        for (; n < N_ELEMENTS(addresses); n++) {
                addresses[n] = attachment_address(life->attachment, n);
                if (!addresses[n])
                        break;
        }
        return bundle_write_hosts(life->context->bundle, life->pod, addresses, n, reterr);
}

static void enter_ready(PodLife *life) {
        cleanup_error Error error = ERROR_NULL;
        int r = life->attachment ? write_hosts(life, &error) : 0;

        if (r < 0) {
                fail_network(life, "set up", error_message(&error, r));
                return;
        }
        pod_life_set_phase(life, PHASE_READY);
        life->retry_delay_usec = 0;
        pod_life_set_trouble(life, NULL);
}

void pod_life_on_ready(PodLife *life) {
        if (!life->is_wanted)
                pod_life_set_phase(life, PHASE_READY);
        else if (life->attachment && !attachment_is_attached(life->attachment)) {
                pod_life_set_phase(life, PHASE_ATTACHING);
                attachment_attach(life->attachment, life->sandbox, life->pod);
        } else
                enter_ready(life);
}

static void on_attachment_done(int r, const Error *error, void *userdata) {
        PodLife *life = userdata;
        bool was_attaching = life->phase == PHASE_ATTACHING;

        if (was_attaching && !life->is_wanted)
                pod_life_set_phase(life, PHASE_READY); /* from where it is detached */
        else if (r < 0)
                fail_network(life, was_attaching ? "set up" : "tear down", error_message(error, r));
        else if (was_attaching)
                enter_ready(life);
        else
                pod_life_end_sandbox(life);
        pod_life_mark(life);
}

int pod_life_make_attachment(PodLife *life) {
        int r;

        if (life->pod->spec.host_network)
                return 0;
        r = attachment_new(life->context->bundle, life->context->network, life->pod->metadata.uid,
                           on_attachment_done, life, &life->attachment);
        if (r >= 0)
                (void) attachment_load(life->attachment);
        return r;
}

/* ---- found ---- */

static void on_checked(int r, const Error *error, void *userdata) {
        PodLife *life = userdata;

        if (r >= 0)
                return;
        log_warning("The network of pod '%s' is not what it was: %s", life->description,
                    error_message(error, r));
        event_tell(life, NULL, POD_EVENT_WARNING, "NetworkNotReady", "network is not ready: %s",
                   error_message(error, r));
}

static int on_check_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        PodLife *life = userdata;

        life->check_timer = sd_event_source_disable_unref(life->check_timer);
        if (life->is_wanted && life->phase == PHASE_READY && life->attachment)
                attachment_check(life->attachment, life->sandbox, on_checked);
        return 0;
}

/* What held its rules and links may have gone while no agent looked. Nothing is mended by itself,
 * for connections would break: a person is told. One pod after another, so that an agent that comes
 * back costs its node little. */
static void look_at_network(PodLife *life) {
        uint64_t delay = CHECK_USEC * ++life->context->n_network_checks;

        if (!life->attachment || !attachment_is_attached(life->attachment) || life->check_timer)
                return;
        (void) sd_event_add_time_relative(life->context->event, &life->check_timer, CLOCK_BOOTTIME,
                                          delay, CHECK_USEC, on_check_timer, life);
}

bool pod_life_has_undertaker(const PodLife *life) {
        return life->attachment && !sandbox_has_network(life->sandbox);
}

static bool must_end(const PodLife *life, bool is_ready, bool has_run) {
        if (life->phase == PHASE_DETACHING || life->phase == PHASE_ENDING)
                return true;
        if (!life->attachment)
                return false;
        /* An earlier agent's, or ours; or what one had begun to end. */
        return pod_life_has_undertaker(life) ||
               (is_ready && has_run && attachment_is_deleting(life->attachment));
}

void pod_life_resume(PodLife *life, bool is_ready, bool has_run) {
        if (life->attachment)
                attachment_interrupt(life->attachment);
        if (pod_life_has_network(life))
                attachment_hold(life->attachment, life->sandbox);
        if (life->is_wanted && must_end(life, is_ready, has_run))
                pod_life_end_sandbox(life);
        else if (life->is_wanted && !is_ready)
                pod_life_ask_for_setup(life);
        else if (life->is_wanted && life->attachment && !has_run)
                pod_life_on_ready(life);
        else { /* who is not wanted is ended from there */
                pod_life_set_phase(life, PHASE_READY);
                if (life->is_wanted)
                        look_at_network(life);
        }
}

int pod_life_start_undertaker(PodLife *life, Error *reterr) {
        cleanup_free char *run_dir = pod_run_dir(life->context->bundle, life->pod->metadata.uid);
        int r = run_dir ? mkdir_parents_at(AT_FDCWD, run_dir, 0700) : -ENOMEM;

        if (r < 0)
                return r;
        return sandbox_start(life->sandbox,
                             &(SandboxStart){ .description = life->description,
                                              .host_network = true,
                                              .host_ipc = true },
                             reterr);
}
