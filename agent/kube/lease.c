/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kube/lease.h"

#include "agent/kube/backoff.h"
#include "agent/kube/lease-object.h"
#include "common/cleanup.h"
#include "common/clock.h"

/* One request at a time. What we believe to be there decides which: nothing is known, it is read;
 * it is not there, it is created; it is there, it is renewed from what we know. What the server
 * says against that changes the belief, and the next request is due at once; what else goes wrong
 * waits a while. */

#define LEASES "/apis/coordination.k8s.io/v1/namespaces/" LEASE_NAMESPACE "/leases"

enum {
        DEADLINE_SEC = 10,
        TURNS_MAX = 4, /* requests without a pause: read, create, read, renew */
};

static const BackoffPace pace = { 1 * USEC_PER_SEC, 4 * USEC_PER_SEC };

typedef enum Belief {
        LEASE_UNKNOWN,
        LEASE_ABSENT,
        LEASE_PRESENT,
} Belief;

struct KubeLease {
        sd_event *event;
        KubeLeaseSpec spec;
        char *node_name;
        char *path;
        char *node_uid; /* NULL: there is no Node */
        Belief belief;
        char *known; /* LEASE_PRESENT: as the server has it */
        uint64_t version;
        uint64_t renewed; /* realtime */
        unsigned n_turns;
        Backoff backoff;
        char *trouble; /* that was told */
        KubeRequest *request;
        sd_event_source *timer;
};

static void turn(KubeLease *lease);

static int on_time(sd_event_source *source, uint64_t usec, void *userdata) {
        KubeLease *lease = userdata;

        lease->n_turns = 0;
        turn(lease);
        return 0;
}

static void wait_for(KubeLease *lease, uint64_t usec) {
        (void) sd_event_source_set_time(lease->timer, now_boottime_usec() + usec);
        (void) sd_event_source_set_enabled(lease->timer, SD_EVENT_ONESHOT);
}

static void tell(KubeLease *lease, const char *error, unsigned status) {
        if (streq_ptr(error, lease->trouble))
                return;
        free(lease->trouble);
        lease->trouble = error ? strdup(error) : NULL;
        if (lease->spec.on_trouble)
                lease->spec.on_trouble(error, status, lease->spec.userdata);
}

static void fail(KubeLease *lease, const char *error, unsigned status, uint64_t retry_after) {
        wait_for(lease, backoff_next(&lease->backoff, &pace, now_boottime_usec(), retry_after,
                                     chance_now()));
        tell(lease, error, status);
}

static void believe(KubeLease *lease, Belief belief) {
        lease->belief = belief;
        if (belief != LEASE_PRESENT) {
                free(lease->known);
                lease->known = NULL;
        }
        turn(lease);
}

/* The server's version of it. */
static void learn(KubeLease *lease, const KubeAnswer *answer) {
        uint64_t version = lease_object_version(answer->body), before = lease->version;
        char *known = strdup(answer->body);

        if (!known || version == 0) {
                free(known);
                fail(lease, "the server's answer is no Lease", answer->status, 0);
                return;
        }
        free(lease->known);
        lease->known = known;
        lease->version = version;
        lease->belief = LEASE_PRESENT;
        backoff_reset(&lease->backoff);
        if (version < before && lease->spec.on_history_lost)
                lease->spec.on_history_lost(lease->spec.userdata);
}

static void on_renewed(KubeLease *lease, const KubeAnswer *answer) {
        learn(lease, answer);
        if (lease->belief != LEASE_PRESENT)
                return;
        lease->renewed = now_realtime_usec();
        wait_for(lease,
                 jitter(LEASE_PERIOD_SEC * USEC_PER_SEC, LEASE_JITTER_PERCENT, chance_now()));
        tell(lease, NULL, answer->status);
}

static void on_done(const KubeAnswer *answer, void *userdata) {
        KubeLease *lease = userdata;
        cleanup_free char *why = NULL;
        Belief asked = lease->belief;

        lease->request = NULL;
        if (answer->error) {
                fail(lease, answer->error, 0, 0);
                return;
        }
        switch (answer->status) {
        case 200:
        case 201:
                if (asked != LEASE_UNKNOWN) {
                        on_renewed(lease, answer);
                        return;
                }
                learn(lease, answer);
                if (lease->belief == LEASE_PRESENT)
                        turn(lease);
                return;
        case 404:
                if (asked != LEASE_ABSENT) {
                        believe(lease, LEASE_ABSENT);
                        return;
                }
                break; /* the namespace is not there */
        case 409:
                believe(lease, LEASE_UNKNOWN);
                return;
        default:
                break;
        }
        why = kube_answer_explain(answer);
        lease->belief = LEASE_UNKNOWN;
        fail(lease, why ? why : "no memory", answer->status, answer->retry_after_usec);
}

static int make_body(KubeLease *lease, char **ret) {
        uint64_t now = now_realtime_usec();

        if (lease->belief == LEASE_PRESENT)
                return lease_object_renew(lease->known, lease->node_name, now, ret);
        if (lease->belief == LEASE_ABSENT) {
                *ret = lease_object_new(lease->node_name, lease->node_uid, now);
                return *ret ? 0 : -ENOMEM;
        }
        return 0;
}

static int ask(KubeLease *lease, Error *reterr) {
        static const char *const methods[] = {
                [LEASE_UNKNOWN] = "GET",
                [LEASE_ABSENT] = "POST",
                [LEASE_PRESENT] = "PUT",
        };
        cleanup_free char *body = NULL;
        KubeCall call = {
                .method = methods[lease->belief],
                .path = lease->belief == LEASE_ABSENT ? LEASES : lease->path,
                .deadline_usec = DEADLINE_SEC * USEC_PER_SEC,
                .on_done = on_done,
                .userdata = lease,
        };
        int r = make_body(lease, &body);

        if (r < 0)
                return error_setf(reterr, -r, "no Lease can be made");
        call.body = body;
        call.body_length = body ? strlen(body) : 0;
        return kube_client_call(lease->spec.client, &call, &lease->request, reterr);
}

static void turn(KubeLease *lease) {
        cleanup_error Error error = ERROR_NULL;
        int r;

        if (lease->request || (!lease->node_uid && lease->belief != LEASE_PRESENT))
                return;
        if (lease->n_turns++ >= TURNS_MAX) {
                fail(lease, "the Lease changes while we renew it", 409, 0);
                return;
        }
        r = ask(lease, &error);
        if (r >= 0)
                return;
        lease->belief = LEASE_UNKNOWN;
        fail(lease, error_message(&error, r), 0, 0);
}

int kube_lease_new(sd_event *event, const KubeLeaseSpec *spec, KubeLease **ret) {
        cleanup_with(kube_lease_freep) KubeLease *lease = calloc(1, sizeof(*lease));
        int r;

        if (!lease)
                return -ENOMEM;
        lease->spec = *spec;
        lease->event = sd_event_ref(event);
        lease->node_name = strdup(spec->node_name);
        if (!lease->node_name || asprintf(&lease->path, LEASES "/%s", spec->node_name) < 0) {
                lease->path = NULL;
                return -ENOMEM;
        }
        r = sd_event_add_time(event, &lease->timer, CLOCK_BOOTTIME, 0, USEC_PER_SEC / 4, on_time,
                              lease);
        if (r < 0)
                return r;
        (void) sd_event_source_set_description(lease->timer, "lease");
        (void) sd_event_source_set_enabled(lease->timer, SD_EVENT_OFF);
        *ret = TAKE_PTR(lease);
        return 0;
}

KubeLease *kube_lease_free(KubeLease *lease) {
        if (!lease)
                return NULL;
        kube_request_cancel(lease->request);
        sd_event_source_disable_unref(lease->timer);
        sd_event_unref(lease->event);
        free(lease->trouble);
        free(lease->known);
        free(lease->node_uid);
        free(lease->node_name);
        free(lease->path);
        free(lease);
        return NULL;
}

int kube_lease_set_node(KubeLease *lease, const char *uid) {
        char *copy = uid ? strdup(uid) : NULL;

        if (uid && !copy)
                return -ENOMEM;
        if (uid && lease->node_uid && streq(uid, lease->node_uid)) {
                free(copy);
                return 0;
        }
        free(lease->node_uid);
        lease->node_uid = copy;
        /* One that belonged to another Node goes with it: what is there is asked again. */
        if (uid && !lease->request)
                wait_for(lease, 0);
        return 0;
}

uint64_t kube_lease_renewed(const KubeLease *lease) {
        return lease->renewed;
}
