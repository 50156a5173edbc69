/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Requests to the API server: one libcurl multi handle on the agent's loop, HTTP/2 where the server
 * speaks it, so that all watches share a connection. Nothing here waits, and nothing is tried
 * again: that is for the reflector and the writer. A server that is gone without a word is noticed
 * by the kernel (keep-alive, user timeout), so an idle watch wakes nobody. One that is there and
 * says nothing any more is noticed by whoever waits for an answer; streams that have not been heard
 * since then end with it. */

#include "agent/model/kubeconfig.h"
#include "common/error.h"

#include <stdint.h>
#include <stdio.h>
#include <systemd/sd-event.h>

typedef struct KubeClient KubeClient;
typedef struct KubeRequest KubeRequest;

enum {
        KUBE_RESPONSE_MAX = 4 * 1024 * 1024, /* of what is not a stream; an object has 1.5 MiB */
        KUBE_DEADLINE_SEC = 60,              /* of a request that says no other */
};

/* What was said, or why nothing was. */
typedef struct KubeResponse {
        const char *error; /* a sentence: there is no answer. NULL: there is */
        unsigned status;   /* of HTTP; 0 without an answer */
        const char *body;  /* a NUL follows; "" of a stream that succeeded */
        size_t length;
        uint64_t retry_after_usec; /* Retry-After; 0: none */
} KubeResponse;

/* Why an answer is no success, for a person: in memory that the caller frees, NULL where there is
 * none. */
char *kube_response_describe_error(const KubeResponse *response);

typedef struct KubeRequestSpec {
        const char *method;       /* "GET", "POST", "PUT", "PATCH", "DELETE" */
        const char *path;         /* with its query: "/api/v1/nodes/node1", escaped */
        const char *content_type; /* of the body; NULL: JSON */
        const char *body;         /* NULL: none; copied */
        size_t body_length;
        uint64_t deadline_usec;         /* for all of it; 0: KUBE_DEADLINE_SEC; UINT64_MAX: none */
        uint64_t response_timeout_usec; /* until the answer begins; 0: no such limit */
        uint64_t idle_timeout_usec;     /* the longest that nothing may come; 0: no such limit */

        bool is_mostly_idle; /* a stream that says little for long: it costs little memory */
        /* A stream: its 200 is there, though nothing of its body may be for long. */
        void (*on_open)(void *userdata);
        /* A stream: told of each piece of a 200's body. < 0 ends the request, which is then done
         * with an error. NULL: the body is in the answer. */
        int (*on_data)(const char *data, size_t length, void *userdata);
        /* Once, from the loop; the request is gone after it. */
        void (*on_done)(const KubeResponse *response, void *userdata);
        void *userdata;
} KubeRequestSpec;

/* Loads libcurl. The kubeconfig is copied, its files are read. 0; -errno with a sentence. */
int kube_client_new(sd_event *event, const Kubeconfig *kubeconfig, KubeClient **ret, Error *reterr);

/* Freed after all its requests are done or cancelled. */
KubeClient *kube_client_free(KubeClient *client);
DEFINE_CLEANUP(KubeClient *, kube_client_free)

/* Certificates, keys or tokens may be others. What verifies is used from the next request on (those
 * under way go on); what does not, leaves the old in place. 1 where anything is another, 0, -errno
 * with a sentence. */
int kube_client_reload(KubeClient *client, const Kubeconfig *kubeconfig, Error *reterr);

/* Begins; what is pointed to need not outlive the call. 0 or -errno with a sentence. */
int kube_client_start_request(KubeClient *client, const KubeRequestSpec *spec, KubeRequest **ret,
                              Error *reterr);

/* Ends it without calling back. NULL is fine; returns NULL. */
KubeRequest *kube_request_cancel(KubeRequest *request);
DEFINE_CLEANUP(KubeRequest *, kube_request_cancel)

/* For `describe node`. Times are realtime microseconds; strings are the client's. */
typedef struct KubeClientState {
        const char *server;
        bool is_reached;        /* the last request was answered, whatever the answer */
        uint64_t since;         /* when that became so; 0: nothing was asked yet */
        const char *last_error; /* why not; NULL where it is reached */
        const char
                *last_unreachable_error; /* that, or why it was not before; NULL: it always was */
        /* Of our own files, though what they held before is still used; NULL: none. */
        const char *credentials_error;
        uint64_t n_requests;      /* begun */
        uint64_t begins, expires; /* our certificate; 0: we have none */
} KubeClientState;

KubeClientState kube_client_state(const KubeClient *client);

/* Prints the connection and the requests in flight for `mainstay debug dump`. */
void kube_client_dump(const KubeClient *client, FILE *out);

/* Told when is_reached or one of the troubles becomes another. */
void kube_client_set_state_callback(KubeClient *client, void (*on_state)(void *userdata),
                                    void *userdata);

/* No certificate means anything to a machine that believes to live before this was written. */
bool kube_clock_is_set(uint64_t realtime_usec);

/* "the clock of this machine says 2036-01-31", for who wonders at a certificate's time. The day is
 * enough, and the words are the same until it is over. Returns the buffer. */
enum {
        CLOCK_DESCRIPTION_SIZE = 80
};
const char *kube_clock_describe(char buffer[CLOCK_DESCRIPTION_SIZE], uint64_t realtime_usec);

/* Somebody who waits for the server to be there again, and is told once each time that it is. */
typedef struct KubeReconnectListener KubeReconnectListener;
struct KubeReconnectListener {
        KubeReconnectListener *next; /* the client's */
        void (*on_reached)(void *userdata);
        void *userdata;
};

/* The listener is borrowed until it is removed, which may be done from within any callback. */
void kube_client_add_listener(KubeClient *client, KubeReconnectListener *listener);
void kube_client_remove_listener(KubeClient *client, KubeReconnectListener *listener);

/* While the server is not reached, whoever would try it again asks for the turn: one has it, and
 * the others wait for what comes of that, so that many cost no more connections than one. How long
 * to wait before asking once more; 0: it is the caller's turn. */
uint64_t kube_client_claim_retry(KubeClient *client);
