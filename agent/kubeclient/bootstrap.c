/* SPDX-License-Identifier: Apache-2.0 */

/* The steps of a certificate request: write the key to disk, create the CertificateSigningRequest,
 * wait for its approval, write the new pair beside the old one, try it with a request, and replace
 * the old pair. A failed step is repeated after a back-off; after a denied request it starts again
 * with a new key. */

#include "agent/kubeclient/bootstrap.h"

#include "agent/kubeclient/backoff.h"
#include "agent/kubeclient/csr.h"
#include "agent/kubeclient/reflector.h"
#include "agent/kubeclient/tls-config.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/durable-write.h"
#include "common/file.h"

#include <fcntl.h>

#define PENDING_FILE "kubelet-client-pending.pem" /* the key of the pending request */
#define NEXT_FILE    "kubelet-client-next.pem"    /* the new pair, until it was tried */
#define REQUESTS     "/apis/certificates.k8s.io/v1/certificatesigningrequests"

enum {
        PAIR_BYTES_MAX = 256 * 1024,
        TIMER_PRIORITY = SD_EVENT_PRIORITY_NORMAL + 20,
};

typedef void (*bootstrap_step_t)(KubeBootstrap *b);

struct KubeBootstrap {
        KubeBootstrapSpec spec; /* its strings are those below */
        Kubeconfig kubeconfig;
        char *node_name, *directory, *kubeconfig_path;
        KubeClient *client, *trial;
        KubeRequest *request;
        KubeReflector *reflector;
        ForkedTask *sync;
        sd_event_source *timer;
        bootstrap_step_t step; /* run by the timer, or after a write to disk */
        KubeBackoff backoff;
        char *key, *pair;
        char *name, *json; /* of the CertificateSigningRequest */
        bool is_seen;      /* the server has created it */
        char *last_error;
        unsigned held;
        bool is_doomed;
};

static void start_with_stored_key(KubeBootstrap *b);
static void prepare_csr(KubeBootstrap *b);
static void post_csr(KubeBootstrap *b);
static void watch_csr(KubeBootstrap *b);
static void try_issued_pair(KubeBootstrap *b);
static void install_issued_pair(KubeBootstrap *b);

/* ---- errors and retries ---- */

static void release_bootstrap(KubeBootstrap *b) {
        if (--b->held == 0 && b->is_doomed)
                kube_bootstrap_free(b);
}

static void report_bootstrap_error(KubeBootstrap *b, const char *error) {
        if (b->is_doomed || streq_ptr(error, b->last_error))
                return;
        free(b->last_error);
        b->last_error = error ? strdup(error) : NULL;
        b->held++;
        if (b->spec.on_error)
                b->spec.on_error(error, b->spec.userdata);
        release_bootstrap(b);
}

static void schedule_bootstrap_step(KubeBootstrap *b, bootstrap_step_t step,
                                    const BackOffLimits *limits) {
        b->step = step;
        if (!b->timer)
                return;
        (void) sd_event_source_set_time_relative(
                b->timer,
                kube_backoff_next(&b->backoff, limits, now_boottime_usec(), 0, back_off_random()));
        (void) sd_event_source_set_enabled(b->timer, SD_EVENT_ONESHOT);
}

static int on_bootstrap_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        KubeBootstrap *b = userdata;

        b->held++;
        b->step(b);
        release_bootstrap(b);
        return 0;
}

static void retry_bootstrap_step(KubeBootstrap *b, const char *why, bootstrap_step_t step,
                                 const BackOffLimits *limits) {
        schedule_bootstrap_step(b, step, limits);
        report_bootstrap_error(b, why);
}

static void retry_step_after_response(KubeBootstrap *b, const KubeResponse *response,
                                      bootstrap_step_t step) {
        cleanup_free char *why = kube_response_describe_error(response);
        bool is_refused = !response->error && response->status >= 400 && response->status < 500 &&
                          response->status != 429;

        retry_bootstrap_step(b, why ? why : "no memory", step,
                             is_refused ? &kube_backoff_slow : &kube_backoff_default);
}

/* ---- the disk ---- */

static char *bootstrap_file_path(const KubeBootstrap *b, const char *name) {
        return path_join(b->directory, name);
}

static void remove_bootstrap_file(const KubeBootstrap *b, const char *name) {
        cleanup_free char *path = bootstrap_file_path(b, name);

        if (path)
                (void) unlink(path);
}

static void on_bootstrap_file_synced(int r, void *userdata) {
        KubeBootstrap *b = userdata;
        cleanup_error Error error = ERROR_NULL;

        b->sync = NULL;
        b->held++;
        if (r >= 0) {
                b->step(b);
        } else {
                r = error_prefixf(&error, r, "cannot write the certificate of this node to disk");
                retry_bootstrap_step(b, error_message(&error, r), start_with_stored_key,
                                     &kube_backoff_slow);
        }
        release_bootstrap(b);
}

static void write_file_then(KubeBootstrap *b, const char *directory, const DurableFile *file,
                            bootstrap_step_t next) {
        int r;

        b->step = next;
        r = durable_write_start(b->spec.event, directory, file, 1, on_bootstrap_file_synced, b,
                                &b->sync);
        if (r < 0)
                on_bootstrap_file_synced(r, b);
}

/* ---- the key and the request ---- */

static void clear_csr(KubeBootstrap *b) {
        b->key = secret_free(b->key);
        b->pair = secret_free(b->pair);
        free(b->name);
        free(b->json);
        b->name = b->json = NULL;
}

/* An earlier agent may have left a new pair that was not tried yet, or a key. */
static void start_with_stored_key(KubeBootstrap *b) {
        cleanup_free char *next = bootstrap_file_path(b, NEXT_FILE),
                          *pending = bootstrap_file_path(b, PENDING_FILE);
        size_t length;

        clear_csr(b);
        if (next && read_file_at(AT_FDCWD, next, PAIR_BYTES_MAX, &b->pair, &length) >= 0) {
                try_issued_pair(b);
                return;
        }
        if (pending)
                (void) read_file_at(AT_FDCWD, pending, PAIR_BYTES_MAX, &b->key, &length);
        prepare_csr(b);
}

static void prepare_csr(KubeBootstrap *b) {
        cleanup_error Error error = ERROR_NULL;
        bool is_old =
                b->key && csr_build_object(b->node_name, b->key, &b->name, &b->json, NULL) >= 0;
        int r = 0;

        if (is_old) {
                post_csr(b);
                return;
        }
        b->key = secret_free(b->key);
        r = csr_generate_key(&b->key, &error);
        if (r >= 0)
                r = csr_build_object(b->node_name, b->key, &b->name, &b->json, &error);
        if (r < 0) {
                retry_bootstrap_step(b, error_message(&error, r), start_with_stored_key,
                                     &kube_backoff_slow);
                return;
        }
        write_file_then(b, b->directory,
                        &(DurableFile){ .name = PENDING_FILE, .text = b->key, .mode = 0600 },
                        post_csr);
}

static void on_csr_posted(const KubeResponse *response, void *userdata) {
        KubeBootstrap *b = userdata;

        b->request = NULL;
        b->held++;
        /* 409: it exists already, because it was created before this agent was restarted. */
        if (!response->error && (response->status == 201 || response->status == 409)) {
                kube_backoff_reset(&b->backoff);
                watch_csr(b);
        } else {
                retry_step_after_response(b, response, post_csr);
        }
        release_bootstrap(b);
}

static void post_csr(KubeBootstrap *b) {
        cleanup_error Error error = ERROR_NULL;
        int r = kube_client_start_request(b->client,
                                          &(KubeRequestSpec){ .method = "POST",
                                                              .path = REQUESTS,
                                                              .body = b->json,
                                                              .body_length = strlen(b->json),
                                                              .on_done = on_csr_posted,
                                                              .userdata = b },
                                          &b->request, &error);

        if (r < 0)
                retry_bootstrap_step(b, error_message(&error, r), post_csr, &kube_backoff_default);
}

/* ---- waiting for approval ---- */

static void stop_csr_watch(KubeBootstrap *b) {
        b->reflector = kube_reflector_free(b->reflector);
}

static void store_issued_pair(KubeBootstrap *b, const char *certificate) {
        size_t n = strlen(certificate);
        const char *newline = n > 0 && certificate[n - 1] == '\n' ? "" : "\n";

        if (asprintf(&b->pair, "%s%s%s", certificate, newline, b->key) < 0) {
                b->pair = NULL;
                retry_bootstrap_step(b, "no memory", start_with_stored_key, &kube_backoff_default);
                return;
        }
        write_file_then(b, b->directory,
                        &(DurableFile){ .name = NEXT_FILE, .text = b->pair, .mode = 0600 },
                        try_issued_pair);
}

static void restart_with_new_key(KubeBootstrap *b, const char *why) {
        remove_bootstrap_file(b, PENDING_FILE);
        remove_bootstrap_file(b, NEXT_FILE);
        retry_bootstrap_step(b, why, start_with_stored_key, &kube_backoff_slow);
}

static void on_csr_object(KubeWatchEvent change, const char *json, size_t length, void *userdata) {
        KubeBootstrap *b = userdata;
        cleanup_free char *text = NULL;
        CsrStatus verdict = csr_read_status(json, length, &text);

        b->held++;
        b->is_seen = change != KUBE_DELETED;
        if (change == KUBE_DELETED) {
                stop_csr_watch(b);
                retry_bootstrap_step(b, "the certificate signing request was deleted", post_csr,
                                     &kube_backoff_default);
        } else if (verdict == CSR_ISSUED) {
                stop_csr_watch(b);
                store_issued_pair(b, text);
        } else if (verdict == CSR_REFUSED) {
                stop_csr_watch(b);
                restart_with_new_key(b, text ? text : "the certificate signing request was denied");
        }
        release_bootstrap(b);
}

static void report_csr_pending(KubeBootstrap *b) {
        cleanup_free char *message = NULL;

        if (asprintf(&message, "waiting for the approval of %s", b->name) < 0)
                message = NULL;
        else
                report_bootstrap_error(b, message);
}

static void on_csr_list_end(bool is_complete, void *userdata) {
        KubeBootstrap *b = userdata;

        if (!is_complete || !b->reflector)
                return;
        b->held++;
        if (b->is_seen) {
                report_csr_pending(b);
        } else {
                stop_csr_watch(b);
                retry_bootstrap_step(b, "the certificate signing request no longer exists",
                                     post_csr, &kube_backoff_default);
        }
        release_bootstrap(b);
}

static void on_csr_watch_error(const char *error, unsigned status, void *userdata) {
        KubeBootstrap *b = userdata;

        if (error)
                report_bootstrap_error(b, error);
        else if (b->is_seen)
                report_csr_pending(b);
}

static void watch_csr(KubeBootstrap *b) {
        cleanup_free char *query = NULL;
        int r;

        b->is_seen = false;
        if (asprintf(&query, "fieldSelector=metadata.name%%3D%s", b->name) < 0) {
                query = NULL;
                retry_bootstrap_step(b, "no memory", post_csr, &kube_backoff_default);
                return;
        }
        r = kube_reflector_new(b->spec.event,
                               &(KubeReflectorSpec){ .client = b->client,
                                                     .path = REQUESTS,
                                                     .query = query,
                                                     .on_object = on_csr_object,
                                                     .on_list_end = on_csr_list_end,
                                                     .on_error = on_csr_watch_error,
                                                     .userdata = b },
                               &b->reflector);
        if (r < 0)
                retry_bootstrap_step(b, strerror(-r), post_csr, &kube_backoff_default);
}

/* ---- trying the new pair ---- */

static int trial_kubeconfig(const KubeBootstrap *b, Kubeconfig *ret) {
        Kubeconfig trial = { 0 };

        if (kubeconfig_copy(&b->kubeconfig, &trial) < 0)
                return -ENOMEM;
        free(trial.certificate_data);
        trial.key_data = secret_free(trial.key_data);
        trial.token = secret_free(trial.token);
        free(trial.token_file);
        free(trial.certificate_file);
        free(trial.key_file);
        trial.certificate_data = trial.token_file = NULL;
        trial.certificate_file = bootstrap_file_path(b, NEXT_FILE);
        trial.key_file = bootstrap_file_path(b, NEXT_FILE);
        if (trial.certificate_file && trial.key_file) {
                *ret = trial;
                return 0;
        }
        kubeconfig_done(&trial);
        return -ENOMEM;
}

/* Any response but 401 shows that the server accepts the certificate. */
static void on_issued_pair_tried(const KubeResponse *response, void *userdata) {
        KubeBootstrap *b = userdata;

        b->request = NULL;
        b->held++;
        b->trial = kube_client_free(b->trial);
        if (response->error || response->status >= 500 || response->status == 429)
                retry_step_after_response(b, response, try_issued_pair);
        else if (response->status == 401)
                restart_with_new_key(b, "the API server rejects the certificate that it has issued "
                                        "(401 Unauthorized)");
        else
                install_issued_pair(b);
        release_bootstrap(b);
}

static int send_request_with_pair(KubeBootstrap *b, Error *reterr) {
        cleanup_with(kubeconfig_done) Kubeconfig trial = { 0 };
        cleanup_free char *path = NULL;
        int r = trial_kubeconfig(b, &trial);

        if (r < 0)
                return r;
        r = kube_client_new(b->spec.event, &trial, &b->trial, reterr);
        if (r < 0)
                return r;
        if (asprintf(&path, "/api/v1/nodes/%s", b->node_name) < 0) {
                path = NULL;
                return -ENOMEM;
        }
        return kube_client_start_request(b->trial,
                                         &(KubeRequestSpec){ .method = "GET",
                                                             .path = path,
                                                             .on_done = on_issued_pair_tried,
                                                             .userdata = b },
                                         &b->request, reterr);
}

static void try_issued_pair(KubeBootstrap *b) {
        cleanup_error Error error = ERROR_NULL;
        int r = send_request_with_pair(b, &error);

        if (r >= 0)
                return;
        b->trial = kube_client_free(b->trial);
        if (r == -EINVAL) /* not for this key, or not a certificate */
                restart_with_new_key(b, error_message(&error, r));
        else
                retry_bootstrap_step(b, error_message(&error, r), try_issued_pair,
                                     &kube_backoff_default);
}

/* ---- replacing the old pair ---- */

static void report_bootstrap_done(KubeBootstrap *b) {
        remove_bootstrap_file(b, NEXT_FILE);
        remove_bootstrap_file(b, PENDING_FILE);
        report_bootstrap_error(b, NULL);
        if (!b->is_doomed && b->spec.on_done)
                b->spec.on_done(b->spec.userdata);
}

static void write_node_kubeconfig(KubeBootstrap *b) {
        const char *slash = strrchr(b->kubeconfig_path, '/');
        cleanup_free char *path = bootstrap_file_path(b, PAIR_FILE);
        cleanup_free char *text = path ? kubeconfig_for_pair(&b->kubeconfig, path) : NULL;
        cleanup_free char *directory =
                slash ? strndup(b->kubeconfig_path, (size_t) MAX(slash - b->kubeconfig_path, 1))
                      : strdup(".");

        if (!text || !directory)
                retry_bootstrap_step(b, "no memory", start_with_stored_key, &kube_backoff_default);
        else
                write_file_then(b, directory,
                                &(DurableFile){ .name = slash ? slash + 1 : b->kubeconfig_path,
                                                .text = text,
                                                .mode = 0600 },
                                report_bootstrap_done);
}

static void install_issued_pair(KubeBootstrap *b) {
        write_file_then(b, b->directory,
                        &(DurableFile){ .name = PAIR_FILE, .text = b->pair, .mode = 0600 },
                        b->kubeconfig_path ? write_node_kubeconfig : report_bootstrap_done);
}

/* ---- construction ---- */

static int copy_bootstrap_spec(KubeBootstrap *b, const KubeBootstrapSpec *spec) {
        b->spec = *spec;
        b->node_name = strdup(spec->node_name);
        b->directory = strdup(spec->directory);
        b->kubeconfig_path = spec->write_kubeconfig ? strdup(spec->write_kubeconfig) : NULL;
        if (!b->node_name || !b->directory || (spec->write_kubeconfig && !b->kubeconfig_path))
                return -ENOMEM;
        return kubeconfig_copy(spec->kubeconfig, &b->kubeconfig);
}

int kube_bootstrap_new(const KubeBootstrapSpec *spec, KubeBootstrap **ret, Error *reterr) {
        cleanup_with(kube_bootstrap_freep) KubeBootstrap *b = calloc(1, sizeof(*b));
        int r;

        if (!b)
                return -ENOMEM;
        b->step = start_with_stored_key;
        r = copy_bootstrap_spec(b, spec);
        if (r < 0)
                return r;
        r = kube_client_new(spec->event, spec->kubeconfig, &b->client, reterr);
        if (r < 0)
                return r;
        r = sd_event_add_time_relative(spec->event, &b->timer, CLOCK_BOOTTIME, 0,
                                       10 * USEC_PER_MSEC, on_bootstrap_timer, b);
        if (r < 0)
                return r;
        r = sd_event_source_set_priority(b->timer, TIMER_PRIORITY);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(b);
        return 0;
}

static void stop_bootstrap(KubeBootstrap *b) {
        b->timer = sd_event_source_disable_unref(b->timer);
        b->request = kube_request_cancel(b->request);
        b->sync = forked_task_free(b->sync);
        stop_csr_watch(b);
        b->trial = kube_client_free(b->trial);
        b->client = kube_client_free(b->client);
}

KubeBootstrap *kube_bootstrap_free(KubeBootstrap *b) {
        if (!b)
                return NULL;
        if (!b->is_doomed)
                stop_bootstrap(b);
        b->is_doomed = true;
        if (b->held > 0)
                return NULL;
        clear_csr(b);
        kubeconfig_done(&b->kubeconfig);
        free(b->node_name);
        free(b->directory);
        free(b->kubeconfig_path);
        free(b->last_error);
        free(b);
        return NULL;
}
