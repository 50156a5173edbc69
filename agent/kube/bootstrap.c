/* SPDX-License-Identifier: Apache-2.0 */

/* Steps, one after another: a key, kept on disk before anybody is asked; the request; the wait; the
 * new pair, kept beside the old one; a question that is asked with it; and only when that was
 * answered the pair takes its place. A step that fails is taken again after a back-off; a request
 * that was refused begins anew, with another key. */

#include "agent/kube/bootstrap.h"

#include "agent/kube/backoff.h"
#include "agent/kube/csr.h"
#include "agent/kube/identity.h"
#include "agent/kube/reflector.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file-sync.h"
#include "common/file.h"

#include <fcntl.h>

#define PENDING_FILE "kubelet-client-pending.pem" /* the key that is asked for */
#define NEXT_FILE    "kubelet-client-next.pem"    /* the pair that is to be tried */
#define REQUESTS     "/apis/certificates.k8s.io/v1/certificatesigningrequests"

enum {
        PAIR_BYTES_MAX = 256 * 1024,
        TIMER_PRIORITY = SD_EVENT_PRIORITY_NORMAL + 20,
};

typedef void (*step_t)(KubeBootstrap *b);

struct KubeBootstrap {
        KubeBootstrapSpec spec; /* its texts are those below */
        Kubeconfig kubeconfig;
        char *node_name, *directory, *kubeconfig_path;
        KubeClient *client, *trial;
        KubeRequest *request;
        KubeReflector *reflector;
        Forked *sync;
        sd_event_source *timer;
        step_t step; /* that the timer takes, or that follows the disk */
        Backoff backoff;
        char *key, *pair;
        char *name, *json; /* of the request */
        bool is_seen;      /* the server has it */
        char *trouble;
        unsigned held;
        bool is_doomed;
};

static void take_first_step(KubeBootstrap *b);
static void make_request(KubeBootstrap *b);
static void post(KubeBootstrap *b);
static void wait_for_certificate(KubeBootstrap *b);
static void try_pair(KubeBootstrap *b);
static void finish(KubeBootstrap *b);

/* ---- telling and waiting ---- */

static void release(KubeBootstrap *b) {
        if (--b->held == 0 && b->is_doomed)
                kube_bootstrap_free(b);
}

static void tell(KubeBootstrap *b, const char *trouble) {
        if (b->is_doomed || streq_ptr(trouble, b->trouble))
                return;
        free(b->trouble);
        b->trouble = trouble ? strdup(trouble) : NULL;
        b->held++;
        if (b->spec.on_trouble)
                b->spec.on_trouble(trouble, b->spec.userdata);
        release(b);
}

static void take_step_after(KubeBootstrap *b, step_t step, const BackoffPace *pace) {
        b->step = step;
        if (!b->timer)
                return;
        (void) sd_event_source_set_time_relative(
                b->timer, backoff_next(&b->backoff, pace, now_boottime_usec(), 0, chance_now()));
        (void) sd_event_source_set_enabled(b->timer, SD_EVENT_ONESHOT);
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        KubeBootstrap *b = userdata;

        b->held++;
        b->step(b);
        release(b);
        return 0;
}

static void fail(KubeBootstrap *b, const char *why, step_t step, const BackoffPace *pace) {
        take_step_after(b, step, pace);
        tell(b, why);
}

static void fail_with_answer(KubeBootstrap *b, const KubeAnswer *answer, step_t step) {
        cleanup_free char *why = kube_answer_explain(answer);
        bool is_refused = !answer->error && answer->status >= 400 && answer->status < 500 &&
                          answer->status != 429;

        fail(b, why ? why : "no memory", step, is_refused ? &backoff_slow_pace : &backoff_pace);
}

/* ---- the disk ---- */

static char *path_of(const KubeBootstrap *b, const char *name) {
        return path_join(b->directory, name);
}

static void drop(const KubeBootstrap *b, const char *name) {
        cleanup_free char *path = path_of(b, name);

        if (path)
                (void) unlink(path);
}

static void on_synced(int r, void *userdata) {
        KubeBootstrap *b = userdata;
        cleanup_error Error error = ERROR_NULL;

        b->sync = NULL;
        b->held++;
        if (r >= 0) {
                b->step(b);
        } else {
                r = error_prefixf(&error, r, "cannot keep the certificate of this node");
                fail(b, error_message(&error, r), take_first_step, &backoff_slow_pace);
        }
        release(b);
}

static void write_then(KubeBootstrap *b, const char *directory, const FileText *file, step_t next) {
        int r;

        b->step = next;
        r = file_sync_start(b->spec.event, directory, file, 1, on_synced, b, &b->sync);
        if (r < 0)
                on_synced(r, b);
}

/* ---- a key, and what is asked for it ---- */

static void forget_request(KubeBootstrap *b) {
        b->key = secret_free(b->key);
        b->pair = secret_free(b->pair);
        free(b->name);
        free(b->json);
        b->name = b->json = NULL;
}

/* What an agent before us began: a pair that only has to be tried, or a key. */
static void take_first_step(KubeBootstrap *b) {
        cleanup_free char *next = path_of(b, NEXT_FILE), *pending = path_of(b, PENDING_FILE);
        size_t length;

        forget_request(b);
        if (next && read_file_at(AT_FDCWD, next, PAIR_BYTES_MAX, &b->pair, &length) >= 0) {
                try_pair(b);
                return;
        }
        if (pending)
                (void) read_file_at(AT_FDCWD, pending, PAIR_BYTES_MAX, &b->key, &length);
        make_request(b);
}

static void make_request(KubeBootstrap *b) {
        cleanup_error Error error = ERROR_NULL;
        bool is_old = b->key && csr_make(b->node_name, b->key, &b->name, &b->json, NULL) >= 0;
        int r = 0;

        if (is_old) {
                post(b);
                return;
        }
        b->key = secret_free(b->key);
        r = csr_make_key(&b->key, &error);
        if (r >= 0)
                r = csr_make(b->node_name, b->key, &b->name, &b->json, &error);
        if (r < 0) {
                fail(b, error_message(&error, r), take_first_step, &backoff_slow_pace);
                return;
        }
        write_then(b, b->directory,
                   &(FileText){ .name = PENDING_FILE, .text = b->key, .mode = 0600 }, post);
}

static void on_posted(const KubeAnswer *answer, void *userdata) {
        KubeBootstrap *b = userdata;

        b->request = NULL;
        b->held++;
        /* It is there already: we asked for it before we were started anew. */
        if (!answer->error && (answer->status == 201 || answer->status == 409)) {
                backoff_reset(&b->backoff);
                wait_for_certificate(b);
        } else {
                fail_with_answer(b, answer, post);
        }
        release(b);
}

static void post(KubeBootstrap *b) {
        cleanup_error Error error = ERROR_NULL;
        int r = kube_client_call(b->client,
                                 &(KubeCall){ .method = "POST",
                                              .path = REQUESTS,
                                              .body = b->json,
                                              .body_length = strlen(b->json),
                                              .on_done = on_posted,
                                              .userdata = b },
                                 &b->request, &error);

        if (r < 0)
                fail(b, error_message(&error, r), post, &backoff_pace);
}

/* ---- the wait ---- */

static void stop_waiting(KubeBootstrap *b) {
        b->reflector = kube_reflector_free(b->reflector);
}

static void store_next(KubeBootstrap *b, const char *certificate) {
        size_t n = strlen(certificate);
        const char *newline = n > 0 && certificate[n - 1] == '\n' ? "" : "\n";

        if (asprintf(&b->pair, "%s%s%s", certificate, newline, b->key) < 0) {
                b->pair = NULL;
                fail(b, "no memory", take_first_step, &backoff_pace);
                return;
        }
        write_then(b, b->directory, &(FileText){ .name = NEXT_FILE, .text = b->pair, .mode = 0600 },
                   try_pair);
}

static void begin_anew(KubeBootstrap *b, const char *why) {
        drop(b, PENDING_FILE);
        drop(b, NEXT_FILE);
        fail(b, why, take_first_step, &backoff_slow_pace);
}

static void on_request_object(KubeChange change, const char *json, size_t length, void *userdata) {
        KubeBootstrap *b = userdata;
        cleanup_free char *text = NULL;
        CsrVerdict verdict = csr_judge(json, length, &text);

        b->held++;
        b->is_seen = change != KUBE_DELETED;
        if (change == KUBE_DELETED) {
                stop_waiting(b);
                fail(b, "the certificate signing request was deleted", post, &backoff_pace);
        } else if (verdict == CSR_ISSUED) {
                stop_waiting(b);
                store_next(b, text);
        } else if (verdict == CSR_REFUSED) {
                stop_waiting(b);
                begin_anew(b, text ? text : "the certificate signing request was refused");
        }
        release(b);
}

static void tell_waiting(KubeBootstrap *b) {
        cleanup_free char *sentence = NULL;

        if (asprintf(&sentence, "waiting for the approval of %s", b->name) < 0)
                sentence = NULL;
        else
                tell(b, sentence);
}

static void on_requests_listed(bool is_complete, void *userdata) {
        KubeBootstrap *b = userdata;

        if (!is_complete || !b->reflector)
                return;
        b->held++;
        if (b->is_seen) {
                tell_waiting(b);
        } else {
                stop_waiting(b);
                fail(b, "the certificate signing request is gone", post, &backoff_pace);
        }
        release(b);
}

static void on_wait_trouble(const char *error, unsigned status, void *userdata) {
        KubeBootstrap *b = userdata;

        if (error)
                tell(b, error);
        else if (b->is_seen)
                tell_waiting(b);
}

static void wait_for_certificate(KubeBootstrap *b) {
        cleanup_free char *query = NULL;
        int r;

        b->is_seen = false;
        if (asprintf(&query, "fieldSelector=metadata.name%%3D%s", b->name) < 0) {
                query = NULL;
                fail(b, "no memory", post, &backoff_pace);
                return;
        }
        r = kube_reflector_new(b->spec.event,
                               &(KubeReflectorSpec){ .client = b->client,
                                                     .path = REQUESTS,
                                                     .query = query,
                                                     .on_object = on_request_object,
                                                     .on_list_end = on_requests_listed,
                                                     .on_trouble = on_wait_trouble,
                                                     .userdata = b },
                               &b->reflector);
        if (r < 0)
                fail(b, strerror(-r), post, &backoff_pace);
}

/* ---- the trial ---- */

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
        trial.certificate_file = path_of(b, NEXT_FILE);
        trial.key_file = path_of(b, NEXT_FILE);
        if (trial.certificate_file && trial.key_file) {
                *ret = trial;
                return 0;
        }
        kubeconfig_done(&trial);
        return -ENOMEM;
}

/* Whatever the answer is, it is one to us: but not where the server does not know who we are. */
static void on_tried(const KubeAnswer *answer, void *userdata) {
        KubeBootstrap *b = userdata;

        b->request = NULL;
        b->held++;
        b->trial = kube_client_free(b->trial);
        if (answer->error || answer->status >= 500 || answer->status == 429)
                fail_with_answer(b, answer, try_pair);
        else if (answer->status == 401)
                begin_anew(b, "the server does not know the certificate that it issued");
        else
                finish(b);
        release(b);
}

static int ask_with_pair(KubeBootstrap *b, Error *reterr) {
        cleanup_with(kubeconfig_done) Kubeconfig trial = { 0 };
        cleanup_free char *path = NULL;
        int r = trial_kubeconfig(b, &trial);

        if (r >= 0)
                r = kube_client_new(b->spec.event, &trial, &b->trial, reterr);
        if (r < 0)
                return r;
        if (asprintf(&path, "/api/v1/nodes/%s", b->node_name) < 0) {
                path = NULL;
                return -ENOMEM;
        }
        return kube_client_call(
                b->trial,
                &(KubeCall){ .method = "GET", .path = path, .on_done = on_tried, .userdata = b },
                &b->request, reterr);
}

static void try_pair(KubeBootstrap *b) {
        cleanup_error Error error = ERROR_NULL;
        int r = ask_with_pair(b, &error);

        if (r >= 0)
                return;
        b->trial = kube_client_free(b->trial);
        if (r == -EINVAL) /* not for our key, or no certificate */
                begin_anew(b, error_message(&error, r));
        else
                fail(b, error_message(&error, r), try_pair, &backoff_pace);
}

/* ---- the end ---- */

static void tell_done(KubeBootstrap *b) {
        drop(b, NEXT_FILE);
        drop(b, PENDING_FILE);
        tell(b, NULL);
        if (!b->is_doomed && b->spec.on_done)
                b->spec.on_done(b->spec.userdata);
}

static void write_kubeconfig(KubeBootstrap *b) {
        const char *slash = strrchr(b->kubeconfig_path, '/');
        cleanup_free char *path = path_of(b, PAIR_FILE);
        cleanup_free char *text = path ? kubeconfig_for_pair(&b->kubeconfig, path) : NULL;
        cleanup_free char *directory =
                slash ? strndup(b->kubeconfig_path, (size_t) MAX(slash - b->kubeconfig_path, 1))
                      : strdup(".");

        if (!text || !directory)
                fail(b, "no memory", take_first_step, &backoff_pace);
        else
                write_then(b, directory,
                           &(FileText){ .name = slash ? slash + 1 : b->kubeconfig_path,
                                        .text = text,
                                        .mode = 0600 },
                           tell_done);
}

static void finish(KubeBootstrap *b) {
        write_then(b, b->directory, &(FileText){ .name = PAIR_FILE, .text = b->pair, .mode = 0600 },
                   b->kubeconfig_path ? write_kubeconfig : tell_done);
}

/* ---- life ---- */

static int take_texts(KubeBootstrap *b, const KubeBootstrapSpec *spec) {
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
        b->step = take_first_step;
        r = take_texts(b, spec);
        if (r >= 0)
                r = kube_client_new(spec->event, spec->kubeconfig, &b->client, reterr);
        if (r >= 0) /* at once */
                r = sd_event_add_time_relative(spec->event, &b->timer, CLOCK_BOOTTIME, 0,
                                               10 * USEC_PER_MSEC, on_timer, b);
        if (r >= 0)
                r = sd_event_source_set_priority(b->timer, TIMER_PRIORITY);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(b);
        return 0;
}

static void stop(KubeBootstrap *b) {
        b->timer = sd_event_source_disable_unref(b->timer);
        b->request = kube_request_cancel(b->request);
        b->sync = forked_free(b->sync);
        stop_waiting(b);
        b->trial = kube_client_free(b->trial);
        b->client = kube_client_free(b->client);
}

KubeBootstrap *kube_bootstrap_free(KubeBootstrap *b) {
        if (!b)
                return NULL;
        if (!b->is_doomed)
                stop(b);
        b->is_doomed = true;
        if (b->held > 0)
                return NULL;
        forget_request(b);
        kubeconfig_done(&b->kubeconfig);
        free(b->node_name);
        free(b->directory);
        free(b->kubeconfig_path);
        free(b->trouble);
        free(b);
        return NULL;
}
