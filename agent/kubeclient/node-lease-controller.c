/* SPDX-License-Identifier: Apache-2.0 */
/* Creates and renews the Lease of the node. */

#include "agent/kubeclient/node-lease-controller.h"

#include "agent/kubeclient/lease-object.h"
#include "agent/kubeclient/request-back-off.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/dump.h"
#include "common/event-source.h"
#include "common/text.h"

/* One request is sent at a time. The assumed state of the server's object determines it: if
 * unknown, the object is read; if absent, created; if present, renewed. If a response contradicts
 * the assumption, the assumption is changed and the next request follows at once; other failures
 * cause a delay. */

#define LEASES "/apis/coordination.k8s.io/v1/namespaces/" LEASE_NAMESPACE "/leases"

enum {
        DEADLINE_SEC = 10,
        REQUESTS_MAX = 4, /* consecutive requests: read, create, read, renew */
};

static const BackOffLimits lease_back_off = { 1 * USEC_PER_SEC, 4 * USEC_PER_SEC };

typedef enum LeaseState {
        LEASE_UNKNOWN,
        LEASE_ABSENT,
        LEASE_PRESENT,
} LeaseState;

struct KubeLeaseController {
        sd_event *event;
        KubeLeaseControllerSpec spec;
        char *node_name;
        char *path;
        char *node_uid; /* NULL: the Node does not exist */
        LeaseState state;
        char *server_lease; /* LEASE_PRESENT: the server's object */
        uint64_t version;
        uint64_t renewed; /* realtime */
        unsigned n_requests;
        KubeBackOff back_off;
        char *last_error; /* as last reported */
        KubeRequest *request;
        sd_event_source *timer;
};

static void sync_lease(KubeLeaseController *controller);

static int on_lease_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        KubeLeaseController *controller = userdata;

        controller->n_requests = 0;
        sync_lease(controller);
        return 0;
}

static void schedule_lease_sync(KubeLeaseController *controller, uint64_t usec) {
        (void) event_timer_arm_at(controller->timer, now_boottime_usec() + usec);
}

static void report_lease_error(KubeLeaseController *controller, const char *error,
                               unsigned status) {
        if (streq_ptr(error, controller->last_error))
                return;
        (void) text_replace(&controller->last_error, error);
        if (controller->spec.on_error)
                controller->spec.on_error(error, status, controller->spec.userdata);
}

static void retry_lease_later(KubeLeaseController *controller, const char *error, unsigned status,
                              uint64_t retry_after) {
        schedule_lease_sync(controller, kube_back_off_next(&controller->back_off, &lease_back_off,
                                                           now_boottime_usec(), retry_after,
                                                           back_off_random()));
        report_lease_error(controller, error, status);
}

static void set_lease_state(KubeLeaseController *controller, LeaseState state) {
        controller->state = state;
        if (state != LEASE_PRESENT) {
                free(controller->server_lease);
                controller->server_lease = NULL;
        }
        sync_lease(controller);
}

/* Stores the server's object. False: it is not a Lease, and is requested again later. */
static bool store_server_lease(KubeLeaseController *controller, const KubeResponse *response) {
        uint64_t version = lease_object_version(response->body), before = controller->version;
        char *known = strdup(response->body);

        if (!known || version == 0) {
                free(known);
                controller->state = LEASE_UNKNOWN;
                retry_lease_later(controller, "the response of the API server is not a Lease",
                                  response->status, 0);
                return false;
        }
        free(controller->server_lease);
        controller->server_lease = known;
        controller->version = version;
        controller->state = LEASE_PRESENT;
        kube_back_off_reset(&controller->back_off);
        if (version < before && controller->spec.on_history_lost)
                controller->spec.on_history_lost(controller->spec.userdata);
        return true;
}

static void on_lease_renewed(KubeLeaseController *controller, const KubeResponse *response) {
        if (!store_server_lease(controller, response))
                return;
        controller->renewed = now_realtime_usec();
        schedule_lease_sync(controller,
                            back_off_add_jitter(LEASE_PERIOD_SEC * USEC_PER_SEC,
                                                LEASE_JITTER_PERCENT, back_off_random()));
        report_lease_error(controller, NULL, response->status);
}

static void on_lease_response(const KubeResponse *response, void *userdata) {
        KubeLeaseController *controller = userdata;
        cleanup_free char *why = NULL;
        LeaseState asked = controller->state;

        controller->request = NULL;
        if (response->error) {
                retry_lease_later(controller, response->error, 0, 0);
                return;
        }
        switch (response->status) {
        case 200:
        case 201:
                if (asked != LEASE_UNKNOWN) {
                        on_lease_renewed(controller, response);
                        return;
                }
                store_server_lease(controller, response);
                if (controller->state == LEASE_PRESENT)
                        sync_lease(controller);
                return;
        case 404:
                if (asked != LEASE_ABSENT) {
                        set_lease_state(controller, LEASE_ABSENT);
                        return;
                }
                break; /* the namespace does not exist */
        case 409:
                set_lease_state(controller, LEASE_UNKNOWN);
                return;
        default:
                break;
        }
        why = kube_response_describe_error(response);
        controller->state = LEASE_UNKNOWN;
        retry_lease_later(controller, why ? why : "no memory", response->status,
                          response->retry_after_usec);
}

static int build_lease_body(KubeLeaseController *controller, char **ret) {
        uint64_t now = now_realtime_usec();

        if (controller->state == LEASE_PRESENT)
                return lease_object_renew(controller->server_lease, controller->node_name, now,
                                          ret);
        if (controller->state == LEASE_ABSENT) {
                *ret = lease_object_new(controller->node_name, controller->node_uid, now);
                return *ret ? 0 : -ENOMEM;
        }
        return 0;
}

static int renew_node_lease(KubeLeaseController *controller, Error *reterr) {
        static const char *const methods[] = {
                [LEASE_UNKNOWN] = "GET",
                [LEASE_ABSENT] = "POST",
                [LEASE_PRESENT] = "PUT",
        };
        cleanup_free char *body = NULL;
        KubeRequestSpec call = {
                .method = methods[controller->state],
                .path = controller->state == LEASE_ABSENT ? LEASES : controller->path,
                .deadline_usec = DEADLINE_SEC * USEC_PER_SEC,
                .on_done = on_lease_response,
                .userdata = controller,
        };
        int r = build_lease_body(controller, &body);

        if (r < 0)
                return error_setf(reterr, -r, "cannot build a Lease");
        call.body = body;
        call.body_length = body ? strlen(body) : 0;
        return kube_client_start_request(controller->spec.client, &call, &controller->request,
                                         reterr);
}

static void sync_lease(KubeLeaseController *controller) {
        cleanup_error Error error = ERROR_NULL;
        int r;

        if (controller->request || (!controller->node_uid && controller->state != LEASE_PRESENT))
                return;
        if (controller->n_requests++ >= REQUESTS_MAX) {
                retry_lease_later(controller, "the Lease changes while it is being renewed", 409,
                                  0);
                return;
        }
        r = renew_node_lease(controller, &error);
        if (r >= 0)
                return;
        controller->state = LEASE_UNKNOWN;
        retry_lease_later(controller, error_message(&error, r), 0, 0);
}

int kube_lease_controller_new(sd_event *event, const KubeLeaseControllerSpec *spec,
                              KubeLeaseController **ret) {
        cleanup_with(kube_lease_controller_freep) KubeLeaseController *controller =
                calloc(1, sizeof(*controller));
        int r;

        if (!controller)
                return -ENOMEM;
        controller->spec = *spec;
        controller->event = sd_event_ref(event);
        controller->node_name = strdup(spec->node_name);
        controller->path =
                controller->node_name ? text_format(LEASES "/%s", spec->node_name) : NULL;
        if (!controller->path)
                return -ENOMEM;
        r = event_add_disabled_timer(event, &controller->timer, CLOCK_BOOTTIME, USEC_PER_SEC / 4,
                                     on_lease_timer, controller);
        if (r < 0)
                return r;
        (void) sd_event_source_set_description(controller->timer, "lease");
        *ret = TAKE_PTR(controller);
        return 0;
}

KubeLeaseController *kube_lease_controller_free(KubeLeaseController *controller) {
        if (!controller)
                return NULL;
        kube_request_cancel(controller->request);
        sd_event_source_disable_unref(controller->timer);
        sd_event_unref(controller->event);
        free(controller->last_error);
        free(controller->server_lease);
        free(controller->node_uid);
        free(controller->node_name);
        free(controller->path);
        free(controller);
        return NULL;
}

int kube_lease_controller_set_node(KubeLeaseController *controller, const char *uid) {
        char *copy = uid ? strdup(uid) : NULL;

        if (uid && !copy)
                return -ENOMEM;
        if (uid && controller->node_uid && streq(uid, controller->node_uid)) {
                free(copy);
                return 0;
        }
        free(controller->node_uid);
        controller->node_uid = copy;
        /* The Lease of an earlier Node is deleted with that Node, so the Lease is read again. */
        if (uid && !controller->request)
                schedule_lease_sync(controller, 0);
        return 0;
}

void kube_lease_controller_dump(const KubeLeaseController *controller, FILE *out) {
        static const char *const states[] = {
                [LEASE_UNKNOWN] = "unknown",
                [LEASE_ABSENT] = "absent",
                [LEASE_PRESENT] = "present",
        };
        char renewed[RFC3339_SIZE];

        dump_line(out, 1, "Lease: %s, %s%s", states[controller->state],
                  controller->renewed > 0 ? "renewed " : "never renewed",
                  controller->renewed > 0 ? format_rfc3339(renewed, controller->renewed) : "");
        if (controller->request)
                dump_line(out, 2, "request: in flight");
        if (controller->last_error)
                dump_line(out, 2, "last error: %s", controller->last_error);
        dump_timer(out, 2, "next renewal", controller->timer);
}
