/* SPDX-License-Identifier: Apache-2.0 */

/* Rotates the client certificate with certificate-request.c. The new pair changes a file; the watch
 * of the kubeconfig detects this and calls certificate_manager_set_certificate() with the content.
 * If the certificate is due for rotation immediately, because a clock is wrong or the signer issues
 * something else, the next request is delayed, because otherwise each issued certificate would
 * cause another request. */

#include "agent/kubeclient/certificate-manager.h"

#include "agent/kubeclient/certificate-expiry.h"
#include "agent/kubeclient/request-back-off.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/dump.h"
#include "common/event-source.h"
#include "common/text.h"

enum {
        LOOK_ACCURACY_SEC = 1,
};

static const char due_when_issued[] =
        "the certificate that the API server has just issued is due for rotation already: the "
        "clock of this node may be wrong, or the signer issues something else than was requested; "
        "further ones are requested more and more rarely";

static const BackOffLimits due_again_back_off = { 60 * USEC_PER_SEC, 3600 * USEC_PER_SEC };

struct CertificateManager {
        CertificateManagerSpec spec;
        char *node_name, *directory;
        Kubeconfig kubeconfig;
        uint64_t not_before, not_after, rotation_deadline; /* realtime */
        sd_event_source *timer;
        sd_event_source *hold_timer; /* while it is armed, no request starts */
        KubeBackOff back_off;        /* counts consecutive certificates that were due when issued */
        bool is_issued;              /* a new certificate was issued, but has not been set yet */
        CertificateRequest *request;
        char *rotation_error; /* why it has not been rotated yet */
        char *reported_error;
};

static bool is_rotation_due(const CertificateManager *manager) {
        uint64_t now = now_realtime_usec();

        return manager->rotation_deadline > 0 && now >= manager->rotation_deadline &&
               now >= manager->not_before;
}

static void report_certificate_error(CertificateManager *manager) {
        cleanup_free char *own = NULL, *both = NULL;
        const char *why = manager->rotation_error;
        bool is_due_again = manager->back_off.n_failures > 0 &&
                            (manager->is_issued || is_rotation_due(manager));

        if (!why && is_due_again)
                why = due_when_issued;
        if (manager->not_after > 0)
                own = certificate_describe_problem(manager->not_before, manager->not_after,
                                                   now_realtime_usec());
        if (own && why)
                both = text_format("%s; %s", own, why);
        why = both ? both : own ? own : why;
        if (streq_ptr(why, manager->reported_error))
                return;
        (void) text_replace(&manager->reported_error, why);
        if (manager->spec.on_error)
                manager->spec.on_error(manager->reported_error, manager->spec.userdata);
}

static void set_rotation_error(CertificateManager *manager, const char *error) {
        (void) text_replace(&manager->rotation_error, error);
        report_certificate_error(manager);
}

static void on_rotation_error(const char *error, void *userdata) {
        set_rotation_error(userdata, error);
}

static void on_rotation_done(void *userdata) {
        CertificateManager *manager = userdata;

        manager->request = certificate_request_free(manager->request);
        manager->rotation_deadline = 0; /* not known until the new one is set */
        manager->is_issued = true;
        set_rotation_error(manager, NULL);
        if (manager->spec.on_rotated)
                manager->spec.on_rotated(manager->spec.userdata);
}

static void start_rotation(CertificateManager *manager) {
        cleanup_error Error error = ERROR_NULL;
        int r;

        if (manager->request)
                return;
        r = certificate_request_new(&(CertificateRequestSpec){ .event = manager->spec.event,
                                                               .kubeconfig = &manager->kubeconfig,
                                                               .client = manager->spec.client,
                                                               .node_name = manager->node_name,
                                                               .directory = manager->directory,
                                                               .server = manager->spec.server,
                                                               .on_error = on_rotation_error,
                                                               .on_done = on_rotation_done,
                                                               .userdata = manager },
                                    &manager->request, &error);
        if (r < 0)
                set_rotation_error(manager, error_message(&error, r));
}

static void arm_certificate_timer(CertificateManager *manager) {
        uint64_t now = now_realtime_usec();
        uint64_t next = manager->not_after > 0 ? certificate_next_check(manager->not_before,
                                                                        manager->not_after, now)
                                               : UINT64_MAX;

        if (manager->rotation_deadline > now)
                next = MIN(next, manager->rotation_deadline);
        (void) sd_event_source_set_enabled(manager->timer, SD_EVENT_OFF);
        if (next == UINT64_MAX)
                return;
        (void) event_timer_arm_at(manager->timer, next);
}

static bool is_rotation_held(const CertificateManager *manager) {
        int state = SD_EVENT_OFF;

        (void) sd_event_source_get_enabled(manager->hold_timer, &state);
        return state != SD_EVENT_OFF;
}

/* An expired certificate cannot request its successor, unless the server's clock is behind. */
static void check_certificate(CertificateManager *manager) {
        bool is_held = is_rotation_held(manager);
        bool is_expired = manager->not_after > 0 &&
                          certificate_health(manager->not_before, manager->not_after,
                                             now_realtime_usec()) == CERTIFICATE_EXPIRED;

        if (is_rotation_due(manager) && !is_held)
                start_rotation(manager);
        report_certificate_error(manager);
        if (is_expired && !is_held && manager->spec.on_expired)
                manager->spec.on_expired(manager->spec.userdata);
        arm_certificate_timer(manager);
}

static int on_certificate_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        check_certificate(userdata);
        return 0;
}

static void hold_rotation_if_due_again(CertificateManager *manager) {
        if (!manager->is_issued)
                return;
        manager->is_issued = false;
        if (!is_rotation_due(manager)) {
                kube_back_off_reset(&manager->back_off);
                return;
        }
        (void) event_timer_arm(manager->hold_timer,
                               kube_back_off_next(&manager->back_off, &due_again_back_off,
                                                  now_boottime_usec(), 0, back_off_random()));
}

static uint64_t choose_rotation_deadline(const CertificateManager *manager) {
        if (!manager->directory)
                return 0;
        if (manager->not_after == 0)
                return manager->spec.server ? 1 : 0;
        if (!manager->spec.server && manager->kubeconfig.certificate_data)
                return MAX(manager->not_before, 1U);
        return certificate_rotation_deadline(manager->not_before, manager->not_after,
                                             back_off_random());
}

int certificate_manager_set_certificate(CertificateManager *manager, const Kubeconfig *kubeconfig,
                                        uint64_t not_before, uint64_t not_after) {
        Kubeconfig copy = { 0 };

        if (kubeconfig_copy(kubeconfig, &copy) < 0)
                return -ENOMEM;
        kubeconfig_done(&manager->kubeconfig);
        manager->kubeconfig = copy;
        if (manager->spec.server)
                manager->request = certificate_request_free(manager->request);
        /* It is the same certificate again, or one that a request has just installed. */
        if (not_before != manager->not_before || not_after != manager->not_after ||
            (manager->spec.server && manager->rotation_deadline == 0)) {
                manager->not_before = not_before;
                manager->not_after = not_after;
                manager->rotation_deadline = choose_rotation_deadline(manager);
                hold_rotation_if_due_again(manager);
        }
        check_certificate(manager);
        return 0;
}

void certificate_manager_note_issued(CertificateManager *manager) {
        manager->is_issued = true;
}

int certificate_manager_new(const CertificateManagerSpec *spec, CertificateManager **ret) {
        cleanup_with(certificate_manager_freep) CertificateManager *manager =
                calloc(1, sizeof(*manager));
        int r;

        if (!manager)
                return -ENOMEM;
        manager->spec = *spec;
        manager->node_name = strdup(spec->node_name);
        manager->directory = spec->directory ? strdup(spec->directory) : NULL;
        if (!manager->node_name || (spec->directory && !manager->directory))
                return -ENOMEM;
        r = event_add_disabled_timer(spec->event, &manager->timer, CLOCK_REALTIME,
                                     LOOK_ACCURACY_SEC * USEC_PER_SEC, on_certificate_timer,
                                     manager);
        if (r < 0)
                return r;
        r = event_add_disabled_timer(spec->event, &manager->hold_timer, CLOCK_BOOTTIME,
                                     LOOK_ACCURACY_SEC * USEC_PER_SEC, on_certificate_timer,
                                     manager);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(manager);
        return 0;
}

CertificateManager *certificate_manager_free(CertificateManager *manager) {
        if (!manager)
                return NULL;
        certificate_request_free(manager->request);
        sd_event_source_disable_unref(manager->timer);
        sd_event_source_disable_unref(manager->hold_timer);
        kubeconfig_done(&manager->kubeconfig);
        free(manager->node_name);
        free(manager->directory);
        free(manager->rotation_error);
        free(manager->reported_error);
        free(manager);
        return NULL;
}

void certificate_manager_dump(const CertificateManager *manager, FILE *out) {
        char time[RFC3339_SIZE];

        if (manager->not_after == 0)
                return;
        dump_line(out, 1, "certificate: expires %s, %s", format_rfc3339(time, manager->not_after),
                  !manager->directory ? "is not rotated by this agent"
                  : manager->request  ? "is being rotated"
                                      : "is rotated in time");
        if (manager->rotation_deadline > 0)
                dump_line(out, 2, "rotation is due: %s",
                          format_rfc3339(time, manager->rotation_deadline));
        if (manager->rotation_error)
                dump_line(out, 2, "last error: %s", manager->rotation_error);
        dump_timer(out, 2, "next check", manager->timer);
        dump_timer(out, 2, "next rotation at the earliest", manager->hold_timer);
}
