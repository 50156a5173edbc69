/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Requests to the API server: one libcurl multi handle on the agent's loop, with HTTP/2 if the
 * server supports it, so that all watches share a connection. Nothing blocks, and nothing is
 * retried here: see reflector.h and work-queue.h. The kernel detects a lost server (TCP keep-alive
 * and user timeout), so idle watches cause no wake-ups. A server that accepts requests but does not
 * respond is detected by the response timeout; the streams that have been silent since then are
 * also ended. */

#include "agent/model/kubeconfig.h"
#include "common/error.h"

#include <stdint.h>
#include <stdio.h>
#include <systemd/sd-event.h>

typedef struct KubeClient KubeClient;
typedef struct KubeRequest KubeRequest;

enum {
        KUBE_RESPONSE_MAX =
                4 * 1024 *
                1024, /* limit of a response that is not a stream; an object has at most 1.5 MiB */
        KUBE_DEADLINE_SEC = 60, /* for requests that do not set one */
};

/* The response, or the reason why there is none. */
typedef struct KubeResponse {
        const char *error; /* why there was no response; NULL: there was one */
        unsigned status;   /* HTTP status; 0 without a response */
        const char *body;  /* NUL-terminated; "" for a successful stream */
        size_t length;
        uint64_t retry_after_usec; /* Retry-After; 0: none */
} KubeResponse;

/* "403 Forbidden: pods is forbidden: …": the reason why the request failed. The caller frees it;
 * NULL: out of memory. */
char *kube_response_describe_error(const KubeResponse *response);

typedef struct KubeRequestSpec {
        const char *method;       /* "GET", "POST", "PUT", "PATCH", "DELETE" */
        const char *path;         /* with its query: "/api/v1/nodes/node1", escaped */
        const char *content_type; /* content type of the body; NULL: JSON */
        const char *body;         /* NULL: none; copied */
        size_t body_length;
        uint64_t deadline_usec;         /* for the whole request; 0: KUBE_DEADLINE_SEC; UINT64_MAX:
                                         * none */
        uint64_t response_timeout_usec; /* until the response starts; 0: no limit */
        uint64_t idle_timeout_usec;     /* between two reads; 0: no limit */

        bool is_mostly_idle; /* a watch: gets small buffers */
        /* A stream has started with status 200; its body may follow much later. */
        void (*on_open)(void *userdata);
        /* For a stream: each piece of the body of a 200. A result < 0 ends the request, which is
         * then done with an error. NULL: the body is in the response. */
        int (*on_data)(const char *data, size_t length, void *userdata);
        /* Called once, from the loop; the request is freed afterwards. */
        void (*on_done)(const KubeResponse *response, void *userdata);
        void *userdata;
} KubeRequestSpec;

/* Loads libcurl. The kubeconfig is copied and its files are read. 0, or -errno with a message. */
int kube_client_new(sd_event *event, const Kubeconfig *kubeconfig, KubeClient **ret, Error *reterr);

/* To be freed after all its requests are done or cancelled. */
KubeClient *kube_client_free(KubeClient *client);
DEFINE_CLEANUP(KubeClient *, kube_client_free)

/* Certificates, keys or tokens may have changed. Valid ones are used starting with the next
 * request; if they are invalid, the old ones stay in use. 1 if anything has changed, 0, or -errno
 * with a message. */
int kube_client_reload(KubeClient *client, const Kubeconfig *kubeconfig, Error *reterr);

typedef enum KubeGateVerdict {
        KUBE_GATE_PASSES,  /* requests are sent until the server is unreachable again */
        KUBE_GATE_FAILS,   /* no valid response: waiting requests fail like this one, and the next
                            * request tries again */
        KUBE_GATE_REJECTS, /* waiting requests fail, because they belong to another server; later
                            * ones are sent */
} KubeGateVerdict;

/* A request that is sent before any other: initially, and again when a connection to the server has
 * failed, because the server may have been replaced. The others wait for its response; if there is
 * none, they fail for the same reason. */
typedef struct KubeGate {
        const char *path; /* path of a GET; static */
        KubeGateVerdict (*on_response)(const KubeResponse *response, void *userdata);
        void *userdata;
} KubeGate;

/* Must be called once, before the first request. The callback must not free the client. */
int kube_client_set_gate(KubeClient *client, const KubeGate *gate);

/* Starts a request; the memory that 'spec' points to may be freed after the call. 0, or -errno with
 * a message. */
int kube_client_start_request(KubeClient *client, const KubeRequestSpec *spec, KubeRequest **ret,
                              Error *reterr);

/* Cancels it without a callback. NULL is allowed; returns NULL. */
KubeRequest *kube_request_cancel(KubeRequest *request);
DEFINE_CLEANUP(KubeRequest *, kube_request_cancel)

/* For `describe node`. Times are realtime microseconds; strings belong to the client. */
typedef struct KubeClientState {
        const char *server;
        bool is_reached;                    /* the last request got a response, with any status */
        uint64_t since;                     /* time of the last change of is_reached; 0: nothing has
                                             * been sent yet */
        const char *last_error;             /* the reason if it is not reached; otherwise NULL */
        const char *last_unreachable_error; /* the last error, kept after the server is reached
                                             * again; NULL: it was never unreachable */
        /* The error of the kubeconfig's files, whose last valid content is in use; NULL: none. */
        const char *credentials_error;
        uint64_t n_requests;            /* started */
        uint64_t not_before, not_after; /* of the client certificate; 0: there is none */
} KubeClientState;

KubeClientState kube_client_state(const KubeClient *client);

/* Prints the connection and the requests in flight for `mainstay debug dump`. */
void kube_client_dump(const KubeClient *client, FILE *out);

/* Called when is_reached or one of the errors has changed. */
void kube_client_set_state_callback(KubeClient *client, void (*on_state)(void *userdata),
                                    void *userdata);

/* Called each time the server is reachable again, or may be reachable because the clock was set.
 * 'was_down': no server was listening, so the one that responds now may have an older state of
 * etcd, and earlier resourceVersions must not be used. */
typedef struct KubeReconnectListener KubeReconnectListener;
struct KubeReconnectListener {
        KubeReconnectListener *next; /* owned by the client */
        void (*on_reached)(bool was_down, void *userdata);
        void *userdata;
};

/* The listener is borrowed until it is removed, which is allowed from any callback. */
void kube_client_add_listener(KubeClient *client, KubeReconnectListener *listener);
void kube_client_remove_listener(KubeClient *client, KubeReconnectListener *listener);

/* Notifies the listeners that the server has an older state, as the caller has detected. */
void kube_client_discard_versions(KubeClient *client);

/* While the server is unreachable, one caller at a time may try to connect, and the others wait for
 * its result, so that many reflectors cause only one connection attempt. Returns how long to wait
 * before calling again; 0: the caller may try. */
uint64_t kube_client_claim_retry(KubeClient *client);
