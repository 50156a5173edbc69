/* SPDX-License-Identifier: Apache-2.0 */

/* The new pair comes to us as it comes to everybody: somebody sees that its file is another, and
 * kube_renewer_set() is called with what is in it. */

#include "agent/kube/renewer.h"

#include "agent/kube/backoff.h"
#include "agent/kube/renewal.h"
#include "common/cleanup.h"
#include "common/clock.h"

enum {
        LOOK_ACCURACY_SEC = 1,
};

struct KubeRenewer {
        KubeRenewerSpec spec;
        char *node_name, *directory;
        Kubeconfig kubeconfig;
        uint64_t begins, expires, due; /* realtime */
        sd_event_source *timer;
        KubeBootstrap *bootstrap;
        char *renewal_trouble; /* why the next one is not there yet */
        char *told;
};

static void tell(KubeRenewer *renewer) {
        cleanup_free char *own = NULL, *both = NULL;
        const char *why = renewer->renewal_trouble;

        if (renewer->expires > 0)
                own = certificate_trouble(renewer->begins, renewer->expires, now_realtime_usec());
        if (own && why && asprintf(&both, "%s; %s", own, why) < 0)
                both = NULL;
        why = both ? both : own ? own : why;
        if (streq_ptr(why, renewer->told))
                return;
        free(renewer->told);
        renewer->told = why ? strdup(why) : NULL;
        if (renewer->spec.on_trouble)
                renewer->spec.on_trouble(renewer->told, renewer->spec.userdata);
}

static void set_renewal_trouble(KubeRenewer *renewer, const char *trouble) {
        free(renewer->renewal_trouble);
        renewer->renewal_trouble = trouble ? strdup(trouble) : NULL;
        tell(renewer);
}

static void on_bootstrap_trouble(const char *trouble, void *userdata) {
        set_renewal_trouble(userdata, trouble);
}

static void on_bootstrap_done(void *userdata) {
        KubeRenewer *renewer = userdata;

        renewer->bootstrap = kube_bootstrap_free(renewer->bootstrap);
        renewer->due = 0; /* until the new one is set */
        set_renewal_trouble(renewer, NULL);
}

static void renew(KubeRenewer *renewer) {
        cleanup_error Error error = ERROR_NULL;
        int r;

        if (renewer->bootstrap)
                return;
        r = kube_bootstrap_new(&(KubeBootstrapSpec){ .event = renewer->spec.event,
                                                     .kubeconfig = &renewer->kubeconfig,
                                                     .node_name = renewer->node_name,
                                                     .directory = renewer->directory,
                                                     .on_trouble = on_bootstrap_trouble,
                                                     .on_done = on_bootstrap_done,
                                                     .userdata = renewer },
                               &renewer->bootstrap, &error);
        if (r < 0)
                set_renewal_trouble(renewer, error_message(&error, r));
}

static void arm(KubeRenewer *renewer) {
        uint64_t now = now_realtime_usec();
        uint64_t next = renewer->expires > 0
                                ? certificate_next_look(renewer->begins, renewer->expires, now)
                                : UINT64_MAX;

        if (renewer->due > now)
                next = MIN(next, renewer->due);
        (void) sd_event_source_set_enabled(renewer->timer, SD_EVENT_OFF);
        if (next == UINT64_MAX)
                return;
        (void) sd_event_source_set_time(renewer->timer, next);
        (void) sd_event_source_set_enabled(renewer->timer, SD_EVENT_ONESHOT);
}

/* An expired one cannot ask for its successor, but a server may be behind the times as well. */
static void look(KubeRenewer *renewer) {
        uint64_t now = now_realtime_usec();

        if (renewer->due > 0 && now >= renewer->due && now >= renewer->begins)
                renew(renewer);
        tell(renewer);
        arm(renewer);
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        look(userdata);
        return 0;
}

int kube_renewer_set(KubeRenewer *renewer, const Kubeconfig *kubeconfig, uint64_t begins,
                     uint64_t expires) {
        Kubeconfig copy = { 0 };

        if (kubeconfig_copy(kubeconfig, &copy) < 0)
                return -ENOMEM;
        kubeconfig_done(&renewer->kubeconfig);
        renewer->kubeconfig = copy;
        /* The same one again, or what a bootstrap has just brought. */
        if (begins != renewer->begins || expires != renewer->expires) {
                renewer->begins = begins;
                renewer->expires = expires;
                renewer->due = renewer->directory && expires > 0
                                       ? renewal_due(begins, expires, chance_now())
                                       : 0;
        }
        look(renewer);
        return 0;
}

int kube_renewer_new(const KubeRenewerSpec *spec, KubeRenewer **ret) {
        cleanup_with(kube_renewer_freep) KubeRenewer *renewer = calloc(1, sizeof(*renewer));
        int r;

        if (!renewer)
                return -ENOMEM;
        renewer->spec = *spec;
        renewer->node_name = strdup(spec->node_name);
        renewer->directory = spec->directory ? strdup(spec->directory) : NULL;
        if (!renewer->node_name || (spec->directory && !renewer->directory))
                return -ENOMEM;
        r = sd_event_add_time(spec->event, &renewer->timer, CLOCK_REALTIME, 0,
                              LOOK_ACCURACY_SEC * USEC_PER_SEC, on_timer, renewer);
        if (r >= 0)
                r = sd_event_source_set_enabled(renewer->timer, SD_EVENT_OFF);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(renewer);
        return 0;
}

KubeRenewer *kube_renewer_free(KubeRenewer *renewer) {
        if (!renewer)
                return NULL;
        kube_bootstrap_free(renewer->bootstrap);
        sd_event_source_disable_unref(renewer->timer);
        kubeconfig_done(&renewer->kubeconfig);
        free(renewer->node_name);
        free(renewer->directory);
        free(renewer->renewal_trouble);
        free(renewer->told);
        free(renewer);
        return NULL;
}
