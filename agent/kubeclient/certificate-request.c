/* SPDX-License-Identifier: Apache-2.0 */

/* The steps: write the key to disk, create the CertificateSigningRequest, wait for its approval,
 * write the new pair next to the old one, try it with a request, and replace the old pair. A failed
 * step is repeated after a back-off; after a denied request it starts again with a new key. Only a
 * certificate that was issued and accepted ends the back-off; a request that was created does not.
 */

#include "agent/kubeclient/certificate-request.h"

#include "agent/kubeclient/reflector.h"
#include "agent/kubeclient/request-back-off.h"
#include "agent/kubeclient/tls-config.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/durable-write.h"
#include "common/event-source.h"
#include "common/file.h"
#include "common/strv.h"
#include "common/text.h"

#include <fcntl.h>

#define REQUESTS "/apis/certificates.k8s.io/v1/certificatesigningrequests"

enum {
        PAIR_BYTES_MAX = 256 * 1024,
        TIMER_PRIORITY = SD_EVENT_PRIORITY_NORMAL + 20,
};

/* A refusal may be temporary, because the roles are missing at first while a control plane starts.
 */
static const BackOffLimits csr_back_off_refused = { 1 * USEC_PER_SEC, 300 * USEC_PER_SEC };

/* Without a certificate this is the node's only request, and nothing else detects the server. */
static const BackOffLimits csr_back_off_alone = { 800 * USEC_PER_MSEC, 5 * USEC_PER_SEC };

typedef struct PairFiles {
        const char *pending; /* the key of the pending request */
        const char *next;    /* the new pair, until it has been tried */
        const char *current;
} PairFiles;

static const PairFiles client_files = { "kubelet-client-pending.pem", "kubelet-client-next.pem",
                                        PAIR_FILE };
static const PairFiles server_files = { "kubelet-server-pending.pem", "kubelet-server-next.pem",
                                        SERVER_PAIR_FILE };

typedef void (*csr_step_t)(CertificateRequest *c);

struct CertificateRequest {
        CertificateRequestSpec spec; /* its strings are the ones below */
        Kubeconfig kubeconfig;
        char *node_name, *directory, *referring_path, *referring_text;
        CsrServer server;
        const CsrServer *requested_server; /* likewise; NULL: a client certificate is requested */
        const PairFiles *files;
        KubeClient *client;     /* the owner's, or the next member */
        KubeClient *own_client; /* NULL: the owner's is used */
        KubeClient *trial;
        KubeReconnectListener listener;
        KubeRequest *request;
        KubeReflector *reflector;
        ForkedTask *sync;
        sd_event_source *timer;
        csr_step_t step;                /* run by the timer, or after a write to disk */
        bool waits_for_server;          /* the timer waits for the server */
        KubeBackOff back_off;           /* until a certificate was issued and accepted */
        KubeBackOff unreached_back_off; /* while the server does not respond */
        char *key, *pair;
        char *name, *json; /* of the CertificateSigningRequest */
        bool is_seen;      /* the server has created it */
        char *last_error;
        unsigned held;
        bool is_doomed;
};

static void start_with_stored_key(CertificateRequest *c);
static void prepare_csr(CertificateRequest *c);
static void post_csr(CertificateRequest *c);
static void watch_csr(CertificateRequest *c);
static void try_issued_pair(CertificateRequest *c);
static void install_issued_pair(CertificateRequest *c);

/* ---- errors and retries ---- */

static void release_certificate_request(CertificateRequest *c) {
        if (--c->held == 0 && c->is_doomed)
                certificate_request_free(c);
}

static void report_certificate_request_error(CertificateRequest *c, const char *error) {
        if (c->is_doomed || streq_ptr(error, c->last_error))
                return;
        (void) text_replace(&c->last_error, error);
        c->held++;
        if (c->spec.on_error)
                c->spec.on_error(error, c->spec.userdata);
        release_certificate_request(c);
}

static void schedule_csr_step(CertificateRequest *c, csr_step_t step, KubeBackOff *back_off,
                              const BackOffLimits *limits) {
        c->step = step;
        c->waits_for_server = false;
        if (!c->timer)
                return;
        (void) event_timer_arm(c->timer, kube_back_off_next(back_off, limits, now_boottime_usec(),
                                                            0, back_off_random()));
}

static int on_csr_step_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        CertificateRequest *c = userdata;

        c->waits_for_server = false;
        c->held++;
        c->step(c);
        release_certificate_request(c);
        return 0;
}

static void retry_csr_step(CertificateRequest *c, const char *why, csr_step_t step,
                           const BackOffLimits *limits) {
        schedule_csr_step(c, step, &c->back_off, limits);
        report_certificate_request_error(c, why);
}

static void retry_csr_step_once_reached(CertificateRequest *c, const char *why, csr_step_t step) {
        schedule_csr_step(c, step, &c->unreached_back_off,
                          c->own_client ? &csr_back_off_alone : &kube_back_off_default);
        c->waits_for_server = true;
        report_certificate_request_error(c, why);
}

/* The owner's client has reached the server again. */
static void on_csr_server_reached(bool was_down, void *userdata) {
        CertificateRequest *c = userdata;

        if (!c->waits_for_server || !c->timer)
                return;
        c->waits_for_server = false;
        kube_back_off_reset(&c->unreached_back_off);
        (void) sd_event_source_set_time_relative(c->timer, back_off_random() % (2 * USEC_PER_SEC));
}

static void retry_csr_step_after_response(CertificateRequest *c, const KubeResponse *response,
                                          csr_step_t step) {
        cleanup_free char *why = kube_response_describe_error(response);
        bool is_refused =
                response->status >= 400 && response->status < 500 && response->status != 429;

        if (response->error)
                retry_csr_step_once_reached(c, why ? why : "no memory", step);
        else
                retry_csr_step(c, why ? why : "no memory", step,
                               is_refused ? &csr_back_off_refused : &kube_back_off_default);
}

/* ---- the disk ---- */

static char *pair_file_path(const CertificateRequest *c, const char *name) {
        return path_join(c->directory, name);
}

static void remove_pair_file(const CertificateRequest *c, const char *name) {
        cleanup_free char *path = pair_file_path(c, name);

        if (path)
                (void) unlink(path);
}

static void on_pair_file_synced(int r, void *userdata) {
        CertificateRequest *c = userdata;
        cleanup_error Error error = ERROR_NULL;

        c->sync = NULL;
        c->held++;
        if (r >= 0) {
                c->step(c);
        } else {
                r = error_prefixf(&error, r, "cannot write the certificate of this node to disk");
                retry_csr_step(c, error_message(&error, r), start_with_stored_key,
                               &kube_back_off_slow);
        }
        release_certificate_request(c);
}

static void write_file_then(CertificateRequest *c, const char *directory, const DurableFile *file,
                            csr_step_t next) {
        int r;

        c->step = next;
        r = durable_write_start(c->spec.event, directory, file, 1, on_pair_file_synced, c,
                                &c->sync);
        if (r < 0)
                on_pair_file_synced(r, c);
}

/* ---- the key and the request ---- */

static void clear_csr(CertificateRequest *c) {
        c->key = secret_free(c->key);
        c->pair = secret_free(c->pair);
        free(c->name);
        free(c->json);
        c->name = c->json = NULL;
}

/* An earlier agent may have left a new pair that was not tried yet, or a key. */
static void start_with_stored_key(CertificateRequest *c) {
        cleanup_free char *next = pair_file_path(c, c->files->next),
                          *pending = pair_file_path(c, c->files->pending);
        size_t length;

        clear_csr(c);
        if (next && read_file_at(AT_FDCWD, next, PAIR_BYTES_MAX, &c->pair, &length) >= 0) {
                try_issued_pair(c);
                return;
        }
        if (pending)
                (void) read_file_at(AT_FDCWD, pending, PAIR_BYTES_MAX, &c->key, &length);
        prepare_csr(c);
}

static void prepare_csr(CertificateRequest *c) {
        cleanup_error Error error = ERROR_NULL;
        bool is_old = c->key && csr_build_object(c->node_name, c->requested_server, c->key,
                                                 &c->name, &c->json, NULL) >= 0;
        int r = 0;

        if (is_old) {
                post_csr(c);
                return;
        }
        c->key = secret_free(c->key);
        r = csr_generate_key(&c->key, &error);
        if (r >= 0)
                r = csr_build_object(c->node_name, c->requested_server, c->key, &c->name, &c->json,
                                     &error);
        if (r < 0) {
                retry_csr_step(c, error_message(&error, r), start_with_stored_key,
                               &kube_back_off_slow);
                return;
        }
        write_file_then(c, c->directory,
                        &(DurableFile){ .name = c->files->pending, .text = c->key, .mode = 0600 },
                        post_csr);
}

static void on_csr_posted(const KubeResponse *response, void *userdata) {
        CertificateRequest *c = userdata;

        c->request = NULL;
        c->held++;
        /* 409: it already exists, because it was created before this agent restarted. */
        if (!response->error && (response->status == 201 || response->status == 409)) {
                kube_back_off_reset(&c->unreached_back_off);
                watch_csr(c);
        } else {
                retry_csr_step_after_response(c, response, post_csr);
        }
        release_certificate_request(c);
}

static void post_csr(CertificateRequest *c) {
        cleanup_error Error error = ERROR_NULL;
        int r = kube_client_start_request(c->client,
                                          &(KubeRequestSpec){ .method = "POST",
                                                              .path = REQUESTS,
                                                              .body = c->json,
                                                              .body_length = strlen(c->json),
                                                              .on_done = on_csr_posted,
                                                              .userdata = c },
                                          &c->request, &error);

        if (r < 0)
                retry_csr_step(c, error_message(&error, r), post_csr, &kube_back_off_default);
}

/* ---- waiting for approval ---- */

static void stop_csr_watch(CertificateRequest *c) {
        c->reflector = kube_reflector_free(c->reflector);
}

static void store_issued_pair(CertificateRequest *c, const char *certificate) {
        size_t n = strlen(certificate);
        const char *newline = n > 0 && certificate[n - 1] == '\n' ? "" : "\n";

        c->pair = text_format("%s%s%s", certificate, newline, c->key);
        if (!c->pair) {
                retry_csr_step(c, "no memory", start_with_stored_key, &kube_back_off_default);
                return;
        }
        write_file_then(c, c->directory,
                        &(DurableFile){ .name = c->files->next, .text = c->pair, .mode = 0600 },
                        try_issued_pair);
}

static void restart_with_new_key(CertificateRequest *c, const char *why) {
        remove_pair_file(c, c->files->pending);
        remove_pair_file(c, c->files->next);
        retry_csr_step(c, why, start_with_stored_key, &kube_back_off_slow);
}

static void on_csr_object(KubeWatchEvent change, const char *json, size_t length, void *userdata) {
        CertificateRequest *c = userdata;
        cleanup_free char *text = NULL;
        CsrStatus verdict = csr_read_status(json, length, &text);

        c->held++;
        c->is_seen = change != KUBE_DELETED;
        if (change == KUBE_DELETED) {
                stop_csr_watch(c);
                retry_csr_step(c, "the certificate signing request was deleted", post_csr,
                               &kube_back_off_default);
        } else if (verdict == CSR_ISSUED) {
                stop_csr_watch(c);
                store_issued_pair(c, text);
        } else if (verdict == CSR_REFUSED) {
                stop_csr_watch(c);
                restart_with_new_key(c, text ? text : "the certificate signing request was denied");
        }
        release_certificate_request(c);
}

static void report_csr_pending(CertificateRequest *c) {
        cleanup_free char *message = text_format("waiting for the approval of %s", c->name);

        if (message)
                report_certificate_request_error(c, message);
}

static void on_csr_list_end(bool is_complete, void *userdata) {
        CertificateRequest *c = userdata;

        if (!is_complete || !c->reflector)
                return;
        c->held++;
        if (c->is_seen) {
                report_csr_pending(c);
        } else {
                stop_csr_watch(c);
                retry_csr_step(c, "the certificate signing request no longer exists", post_csr,
                               &kube_back_off_default);
        }
        release_certificate_request(c);
}

static void on_csr_watch_error(const char *error, unsigned status, void *userdata) {
        CertificateRequest *c = userdata;
        bool is_alone = error && status == 0 && c->own_client;

        c->held++;
        if (is_alone) {
                stop_csr_watch(c);
                retry_csr_step_once_reached(c, error, watch_csr);
        } else if (error) {
                report_certificate_request_error(c, error);
        } else if (c->is_seen) {
                report_csr_pending(c);
        }
        release_certificate_request(c);
}

static void watch_csr(CertificateRequest *c) {
        int r;

        c->is_seen = false;
        r = kube_reflector_new(c->spec.event,
                               &(KubeReflectorSpec){ .client = c->client,
                                                     .path = REQUESTS,
                                                     .field_selector = { "metadata.name", c->name },
                                                     .on_object = on_csr_object,
                                                     .on_list_end = on_csr_list_end,
                                                     .on_error = on_csr_watch_error,
                                                     .userdata = c },
                               &c->reflector);
        if (r < 0)
                retry_csr_step(c, strerror(-r), post_csr, &kube_back_off_default);
}

/* ---- trying the new pair ---- */

/* Uses the pair of this request, not the one in the file, which a request with another credential
 * may have replaced or removed. */
static int trial_kubeconfig(const CertificateRequest *c, Kubeconfig *ret) {
        Kubeconfig trial = { 0 };

        if (kubeconfig_copy(&c->kubeconfig, &trial) < 0)
                return -ENOMEM;
        free(trial.certificate_data);
        trial.key_data = secret_free(trial.key_data);
        trial.token = secret_free(trial.token);
        free(trial.token_file);
        trial.token_file = NULL;
        trial.certificate_data = strdup(c->pair);
        trial.key_data = strdup(c->pair);
        if (trial.certificate_data && trial.key_data) {
                *ret = trial;
                return 0;
        }
        kubeconfig_done(&trial);
        return -ENOMEM;
}

/* Any response except 401 shows that the server accepts the certificate. */
static void on_issued_pair_tried(const KubeResponse *response, void *userdata) {
        CertificateRequest *c = userdata;

        c->request = NULL;
        c->held++;
        c->trial = kube_client_free(c->trial);
        if (response->error || response->status >= 500 || response->status == 429)
                retry_csr_step_after_response(c, response, try_issued_pair);
        else if (response->status == 401)
                restart_with_new_key(c, "the API server rejects the certificate that it has issued "
                                        "(401 Unauthorized)");
        else
                install_issued_pair(c);
        release_certificate_request(c);
}

static int send_request_with_pair(CertificateRequest *c, Error *reterr) {
        cleanup_with(kubeconfig_done) Kubeconfig trial = { 0 };
        cleanup_free char *path = NULL;
        int r = trial_kubeconfig(c, &trial);

        if (r < 0)
                return r;
        r = kube_client_new(c->spec.event, &trial, &c->trial, reterr);
        if (r < 0)
                return r;
        path = text_format("/api/v1/nodes/%s", c->node_name);
        if (!path)
                return -ENOMEM;
        return kube_client_start_request(c->trial,
                                         &(KubeRequestSpec){ .method = "GET",
                                                             .path = path,
                                                             .on_done = on_issued_pair_tried,
                                                             .userdata = c },
                                         &c->request, reterr);
}

/* A serving certificate cannot be tried with a request, so only its key is compared. */
static int check_server_pair(CertificateRequest *c, Error *reterr) {
        uint64_t not_before, not_after;
        int r = kube_pair_check(c->pair, &not_before, &not_after, reterr);

        if (r < 0)
                return r;
        install_issued_pair(c);
        return 0;
}

static void try_issued_pair(CertificateRequest *c) {
        cleanup_error Error error = ERROR_NULL;
        int r = c->requested_server ? check_server_pair(c, &error)
                                    : send_request_with_pair(c, &error);

        if (r >= 0)
                return;
        c->trial = kube_client_free(c->trial);
        if (r == -EINVAL) /* it is not for this key, or not a certificate */
                restart_with_new_key(c, error_message(&error, r));
        else
                retry_csr_step(c, error_message(&error, r), try_issued_pair,
                               &kube_back_off_default);
}

/* ---- replacing the old pair ---- */

static void finish_certificate_request(CertificateRequest *c) {
        remove_pair_file(c, c->files->next);
        remove_pair_file(c, c->files->pending);
        report_certificate_request_error(c, NULL);
        if (!c->is_doomed && c->spec.on_done)
                c->spec.on_done(c->spec.userdata);
}

static void write_referring_file(CertificateRequest *c) {
        const char *slash = strrchr(c->referring_path, '/');
        cleanup_free char *directory =
                slash ? strndup(c->referring_path, (size_t) MAX(slash - c->referring_path, 1))
                      : strdup(".");

        if (!directory)
                retry_csr_step(c, "no memory", start_with_stored_key, &kube_back_off_default);
        else
                write_file_then(c, directory,
                                &(DurableFile){ .name = slash ? slash + 1 : c->referring_path,
                                                .text = c->referring_text,
                                                .mode = 0600 },
                                finish_certificate_request);
}

static void install_issued_pair(CertificateRequest *c) {
        write_file_then(c, c->directory,
                        &(DurableFile){ .name = c->files->current, .text = c->pair, .mode = 0600 },
                        c->referring_path ? write_referring_file : finish_certificate_request);
}

/* ---- construction ---- */

static int copy_certificate_request_spec(CertificateRequest *c,
                                         const CertificateRequestSpec *spec) {
        c->spec = *spec;
        c->files = spec->server ? &server_files : &client_files;
        c->requested_server = spec->server ? &c->server : NULL;
        c->node_name = strdup(spec->node_name);
        c->directory = strdup(spec->directory);
        c->referring_path = spec->referring_path ? strdup(spec->referring_path) : NULL;
        c->referring_text = spec->referring_path ? strdup(spec->referring_text) : NULL;
        if (!c->node_name || !c->directory ||
            (spec->referring_path && (!c->referring_path || !c->referring_text)))
                return -ENOMEM;
        if (spec->server && (strv_extend(&c->server.names, spec->server->names) < 0 ||
                             strv_extend(&c->server.addresses, spec->server->addresses) < 0))
                return -ENOMEM;
        return kubeconfig_copy(spec->kubeconfig, &c->kubeconfig);
}

static int connect_certificate_request(CertificateRequest *c, const CertificateRequestSpec *spec,
                                       Error *reterr) {
        int r = spec->client
                        ? 0
                        : kube_client_new(spec->event, spec->kubeconfig, &c->own_client, reterr);

        if (r < 0)
                return r;
        c->listener = (KubeReconnectListener){ .on_reached = on_csr_server_reached, .userdata = c };
        c->client = spec->client ? spec->client : c->own_client;
        kube_client_add_listener(c->client, &c->listener);
        return 0;
}

int certificate_request_new(const CertificateRequestSpec *spec, CertificateRequest **ret,
                            Error *reterr) {
        cleanup_with(certificate_request_freep) CertificateRequest *c = calloc(1, sizeof(*c));
        int r;

        if (!c)
                return -ENOMEM;
        c->step = start_with_stored_key;
        r = copy_certificate_request_spec(c, spec);
        if (r < 0)
                return r;
        r = connect_certificate_request(c, spec, reterr);
        if (r < 0)
                return r;
        r = sd_event_add_time_relative(spec->event, &c->timer, CLOCK_BOOTTIME, 0,
                                       10 * USEC_PER_MSEC, on_csr_step_timer, c);
        if (r < 0)
                return r;
        r = sd_event_source_set_priority(c->timer, TIMER_PRIORITY);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(c);
        return 0;
}

static void stop_certificate_request(CertificateRequest *c) {
        c->timer = sd_event_source_disable_unref(c->timer);
        c->request = kube_request_cancel(c->request);
        c->sync = forked_task_free(c->sync);
        stop_csr_watch(c);
        c->trial = kube_client_free(c->trial);
        if (c->client)
                kube_client_remove_listener(c->client, &c->listener);
        c->own_client = kube_client_free(c->own_client);
        c->client = NULL;
}

CertificateRequest *certificate_request_free(CertificateRequest *c) {
        if (!c)
                return NULL;
        if (!c->is_doomed)
                stop_certificate_request(c);
        c->is_doomed = true;
        if (c->held > 0)
                return NULL;
        clear_csr(c);
        kubeconfig_done(&c->kubeconfig);
        free(c->node_name);
        free(c->directory);
        free(c->referring_path);
        free(c->referring_text);
        strv_free(c->server.names);
        strv_free(c->server.addresses);
        free(c->last_error);
        free(c);
        return NULL;
}
