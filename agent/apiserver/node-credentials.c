/* SPDX-License-Identifier: Apache-2.0 */
/* Loads the kubeconfig, bootstraps and rotates the client certificate. A kubeconfig with an
 * embedded certificate is not changed: the successor's file is used instead, as in the
 * kubelet. */

#include "agent/apiserver/node-credentials.h"

#include "agent/apiserver/serving-certificate.h"
#include "agent/kubeclient/certificate-manager.h"
#include "agent/kubeclient/tls-bootstrap.h"
#include "agent/kubeclient/tls-config.h"
#include "agent/manifest/kubeconfig-watch.h"
#include "agent/manifest/read-kubeconfig.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/dump.h"
#include "common/file.h"
#include "common/log.h"
#include "common/strv.h"

#include <errno.h>
#include <unistd.h>

#define APISERVER_START_DELAY_USEC    USEC_PER_SEC
#define APISERVER_START_ACCURACY_USEC (10 * USEC_PER_MSEC)

struct ApiServerCredentials {
        ApiServerCredentialsSpec spec;
        Kubeconfig kubeconfig; /* in use */
        char *directory;       /* for certificates that are issued to this agent */
        sd_event_source *start_timer;
        KubeconfigWatch *kubeconfig_watch;
        KubeconfigWatch *bootstrap_watch; /* while the first certificate is needed */
        CertificateRequest *bootstrap;    /* with a bootstrap token; NULL: there is none yet */
        CertificateManager *certificate_manager;
        ServingCertificate *serving; /* NULL: none is requested */
};

static void start_tls_bootstrap(ApiServerCredentials *credentials);

static KubeClient *get_server_client(const ApiServerCredentials *credentials) {
        return credentials->spec.get_client(credentials->spec.userdata);
}

static KubeClientState get_client_state(const ApiServerCredentials *credentials) {
        const KubeClient *client = get_server_client(credentials);

        return client ? kube_client_state(client) : (KubeClientState){ 0 };
}

static bool is_certificate_managed(const ApiServerCredentials *credentials) {
        const Kubeconfig *kubeconfig = &credentials->kubeconfig;
        size_t n = strlen(credentials->directory);

        if (kubeconfig->certificate_data)
                return credentials->spec.rotates_embedded;
        return kubeconfig->certificate_file &&
               strncmp(kubeconfig->certificate_file, credentials->directory, n) == 0 &&
               streq(kubeconfig->certificate_file + n, "/" PAIR_FILE);
}

/* ---- the certificate ---- */

static void on_certificate_error(const char *error, void *userdata) {
        ApiServerCredentials *credentials = userdata;
        bool is_changed = connection_status_set_error(credentials->spec.connection,
                                                      CONNECTION_CERTIFICATE_ERROR, error);

        if (is_changed && error)
                log_warning("Client certificate of %s: %s", credentials->spec.kubeconfig, error);
        else if (is_changed)
                log_info("The client certificate of kubeconfig %s is valid",
                         credentials->spec.kubeconfig);
}

/* Only a bootstrap token can request the successor. */
static void on_certificate_expired(void *userdata) {
        ApiServerCredentials *credentials = userdata;

        if (is_certificate_managed(credentials))
                start_tls_bootstrap(credentials);
}

/* This is needed because nothing watches the file of a certificate that the kubeconfig does not
 * name. */
static void on_certificate_rotated(void *userdata) {
        ApiServerCredentials *credentials = userdata;

        kubeconfig_watch_reload(credentials->kubeconfig_watch);
}

static int update_certificate_rotation(ApiServerCredentials *credentials) {
        const char *directory = is_certificate_managed(credentials) ? credentials->directory : NULL;
        KubeClientState state = get_client_state(credentials);
        int r = 0;

        if (!credentials->certificate_manager)
                r = certificate_manager_new(
                        &(CertificateManagerSpec){ .event = credentials->spec.event,
                                                   .node_name = credentials->spec.node_name,
                                                   .directory = directory,
                                                   .client = get_server_client(credentials),
                                                   .on_error = on_certificate_error,
                                                   .on_expired = on_certificate_expired,
                                                   .on_rotated = on_certificate_rotated,
                                                   .userdata = credentials },
                        &credentials->certificate_manager);
        if (r < 0)
                return r;
        return certificate_manager_set_certificate(credentials->certificate_manager,
                                                   &credentials->kubeconfig, state.not_before,
                                                   state.not_after);
}

/* ---- the kubeconfig ---- */

static void replace_string(char **string, char *value_consume) {
        free(*string);
        *string = value_consume;
}

/* The same server, with the certificate that was issued to this agent. */
static int set_issued_certificate(const ApiServerCredentials *credentials, Kubeconfig *kubeconfig) {
        char *certificate = path_join(credentials->directory, PAIR_FILE);
        char *key = path_join(credentials->directory, PAIR_FILE);

        replace_string(&kubeconfig->certificate_file, certificate);
        replace_string(&kubeconfig->key_file, key);
        replace_string(&kubeconfig->certificate_data, NULL);
        kubeconfig->key_data = secret_free(kubeconfig->key_data);
        return certificate && key ? 0 : -ENOMEM;
}

/* The time at which the client certificate became valid; 0: there is no usable one. */
static uint64_t read_certificate_begin(const Kubeconfig *kubeconfig) {
        cleanup_with(kube_tls_config_done) KubeTlsConfig tls_config = KUBE_TLS_CONFIG_NULL;

        if (kube_tls_config_load(kubeconfig, &tls_config, NULL) < 0)
                return 0;
        return tls_config.not_before;
}

/* The successor of an embedded certificate is used if there is one; a kubeconfig that was written
 * later, possibly for another cluster, takes precedence. */
static int prefer_issued_certificate(const ApiServerCredentials *credentials,
                                     Kubeconfig *kubeconfig) {
        cleanup_with(kubeconfig_done) Kubeconfig issued = { 0 };
        int r;

        if (!kubeconfig->certificate_data || !credentials->spec.rotates_embedded)
                return 0;
        r = kubeconfig_copy(kubeconfig, &issued);
        if (r < 0)
                return r;
        r = set_issued_certificate(credentials, &issued);
        if (r < 0)
                return r;
        if (read_certificate_begin(&issued) <= read_certificate_begin(kubeconfig))
                return 0;
        kubeconfig_done(kubeconfig);
        *kubeconfig = issued;
        issued = (Kubeconfig){ 0 };
        return 0;
}

static int use_watched_kubeconfig(const Kubeconfig *kubeconfig, void *userdata, Error *reterr) {
        ApiServerCredentials *credentials = userdata;
        bool was_managed = credentials->certificate_manager && is_certificate_managed(credentials);
        cleanup_with(kubeconfig_done) Kubeconfig copy = { 0 };
        int r = kubeconfig_copy(kubeconfig, &copy);

        if (r < 0)
                return r;
        r = prefer_issued_certificate(credentials, &copy);
        if (r < 0)
                return r;
        r = credentials->spec.use_kubeconfig(&copy, credentials->spec.userdata, reterr);
        if (r < 0)
                return r;
        kubeconfig_done(&credentials->kubeconfig);
        credentials->kubeconfig = copy;
        copy = (Kubeconfig){ 0 };
        if (was_managed != is_certificate_managed(credentials))
                credentials->certificate_manager =
                        certificate_manager_free(credentials->certificate_manager);
        if (credentials->serving) {
                r = serving_certificate_set_kubeconfig(credentials->serving,
                                                       &credentials->kubeconfig,
                                                       get_server_client(credentials));
                if (r < 0)
                        return r;
        }
        return update_certificate_rotation(credentials);
}

static void on_kubeconfig_error(const char *error, char *const *warnings, void *userdata) {
        ApiServerCredentials *credentials = userdata;
        bool is_connected = get_client_state(credentials).server;

        strv_foreach(warning, (char **) (uintptr_t) warnings)
                log_warning("%s", *warning);
        if (credentials->bootstrap && !is_connected)
                return; /* the bootstrap is about to write the kubeconfig */
        if (!connection_status_set_error(credentials->spec.connection, CONNECTION_KUBECONFIG_ERROR,
                                         error) ||
            !error)
                return;
        log_error("%s; %s", error,
                  is_connected ? "the last valid kubeconfig stays in use"
                               : "static pods run without an API server");
}

/* ---- TLS bootstrap ---- */

static void on_bootstrap_error(const char *error, void *userdata) {
        ApiServerCredentials *credentials = userdata;

        if (connection_status_set_error(credentials->spec.connection, CONNECTION_KUBECONFIG_ERROR,
                                        error) &&
            error)
                log_warning("TLS bootstrap with %s: %s; retrying",
                            credentials->spec.bootstrap_kubeconfig, error);
}

static void on_bootstrap_finished(void *userdata) {
        ApiServerCredentials *credentials = userdata;

        credentials->bootstrap = certificate_request_free(credentials->bootstrap);
        credentials->bootstrap_watch = kubeconfig_watch_free(credentials->bootstrap_watch);
        (void) connection_status_set_error(credentials->spec.connection,
                                           CONNECTION_KUBECONFIG_ERROR, NULL);
        log_info("TLS bootstrap is complete, the API server has issued a client certificate");
        if (credentials->certificate_manager)
                certificate_manager_note_issued(credentials->certificate_manager);
        kubeconfig_watch_reload(credentials->kubeconfig_watch);
}

static bool is_kubeconfig_missing(const ApiServerCredentials *credentials) {
        return access(credentials->spec.kubeconfig, F_OK) < 0 && errno == ENOENT;
}

/* A new token continues the request of an earlier one, because the key is on disk. */
static int request_first_certificate(const Kubeconfig *kubeconfig, void *userdata, Error *reterr) {
        ApiServerCredentials *credentials = userdata;
        const char *kubeconfig_to_write =
                is_kubeconfig_missing(credentials) ? credentials->spec.kubeconfig : NULL;
        CertificateRequest *request = NULL;
        int r = tls_bootstrap_start(
                &(TlsBootstrapSpec){ .request = { .event = credentials->spec.event,
                                                  .kubeconfig = kubeconfig,
                                                  .node_name = credentials->spec.node_name,
                                                  .directory = credentials->directory,
                                                  .on_error = on_bootstrap_error,
                                                  .on_done = on_bootstrap_finished,
                                                  .userdata = credentials },
                                     .kubeconfig_to_write = kubeconfig_to_write },
                &request, reterr);
        if (r < 0)
                return r;
        certificate_request_free(credentials->bootstrap);
        credentials->bootstrap = request;
        return 0;
}

static void on_bootstrap_kubeconfig_error(const char *error, char *const *warnings,
                                          void *userdata) {
        ApiServerCredentials *credentials = userdata;

        strv_foreach(warning, (char **) (uintptr_t) warnings)
                log_warning("%s", *warning);
        if (connection_status_set_error(credentials->spec.connection, CONNECTION_KUBECONFIG_ERROR,
                                        error) &&
            error)
                log_error("%s; %s", error,
                          credentials->bootstrap
                                  ? "the last valid bootstrap kubeconfig stays in use"
                                  : "static pods run without an API server");
}

/* The bootstrap kubeconfig is used each time that it is replaced, because tokens expire. */
static void start_tls_bootstrap(ApiServerCredentials *credentials) {
        const char *path = credentials->spec.bootstrap_kubeconfig;
        int r;

        if (!path || credentials->bootstrap_watch)
                return;
        r = kubeconfig_watch_new(&(KubeconfigWatchSpec){ .event = credentials->spec.event,
                                                         .path = path,
                                                         .use = request_first_certificate,
                                                         .on_error = on_bootstrap_kubeconfig_error,
                                                         .userdata = credentials },
                                 &credentials->bootstrap_watch);
        if (r < 0)
                log_error("Cannot watch the bootstrap kubeconfig %s: %s; static pods run without "
                          "an API server",
                          path, strerror(-r));
}

/* ---- construction and start ---- */

static int request_serving_certificate(ApiServerCredentials *credentials) {
        const ApiServerCredentialsSpec *spec = &credentials->spec;

        if (!spec->has_serving_certificate)
                return 0;
        return serving_certificate_new(
                &(ServingCertificateSpec){ .event = spec->event,
                                           .node_name = spec->node_name,
                                           .directory = credentials->directory,
                                           .hostname = spec->hostname,
                                           .address = spec->address,
                                           .other_address = spec->other_address },
                &credentials->serving);
}

int apiserver_credentials_new(const ApiServerCredentialsSpec *spec, ApiServerCredentials **ret) {
        cleanup_with(apiserver_credentials_freep) ApiServerCredentials *credentials =
                calloc(1, sizeof(*credentials));
        int r;

        if (!credentials)
                return -ENOMEM;
        credentials->spec = *spec;
        credentials->directory = spec->certificate_dir ? strdup(spec->certificate_dir)
                                                       : path_join(spec->state_dir, "pki");
        r = credentials->directory ? request_serving_certificate(credentials) : -ENOMEM;
        if (r < 0)
                return r;
        *ret = TAKE_PTR(credentials);
        return 0;
}

ApiServerCredentials *apiserver_credentials_free(ApiServerCredentials *credentials) {
        if (!credentials)
                return NULL;
        sd_event_source_disable_unref(credentials->start_timer);
        certificate_request_free(credentials->bootstrap);
        kubeconfig_watch_free(credentials->bootstrap_watch);
        certificate_manager_free(credentials->certificate_manager);
        serving_certificate_free(credentials->serving);
        kubeconfig_watch_free(credentials->kubeconfig_watch);
        kubeconfig_done(&credentials->kubeconfig);
        free(credentials->directory);
        free(credentials);
        return NULL;
}

static int on_apiserver_start_due(sd_event_source *source, uint64_t usec, void *userdata) {
        ApiServerCredentials *credentials = userdata;
        int r;

        if (is_kubeconfig_missing(credentials))
                start_tls_bootstrap(credentials);
        r = kubeconfig_watch_new(&(KubeconfigWatchSpec){ .event = credentials->spec.event,
                                                         .path = credentials->spec.kubeconfig,
                                                         .use = use_watched_kubeconfig,
                                                         .on_error = on_kubeconfig_error,
                                                         .userdata = credentials },
                                 &credentials->kubeconfig_watch);
        if (r < 0)
                log_error(
                        "Cannot watch the kubeconfig %s: %s; static pods run without an API server",
                        credentials->spec.kubeconfig, strerror(-r));
        return 0;
}

void apiserver_credentials_reload(ApiServerCredentials *credentials) {
        if (!credentials->kubeconfig_watch)
                return; /* it is about to be read */
        if (credentials->bootstrap_watch)
                kubeconfig_watch_reload(credentials->bootstrap_watch);
        else if (is_kubeconfig_missing(credentials))
                start_tls_bootstrap(credentials);
        kubeconfig_watch_reload(credentials->kubeconfig_watch);
}

void apiserver_credentials_start(ApiServerCredentials *credentials) {
        int r = sd_event_add_time_relative(credentials->spec.event, &credentials->start_timer,
                                           CLOCK_BOOTTIME, APISERVER_START_DELAY_USEC,
                                           APISERVER_START_ACCURACY_USEC, on_apiserver_start_due,
                                           credentials);

        if (r >= 0)
                r = sd_event_source_set_priority(credentials->start_timer, SD_EVENT_PRIORITY_IDLE);
        if (r < 0)
                log_error("Cannot set the timer that reads the kubeconfig %s: %s; static pods run "
                          "without an API server",
                          credentials->spec.kubeconfig, strerror(-r));
}

void apiserver_credentials_start_now(ApiServerCredentials *credentials) {
        if (credentials->start_timer)
                (void) sd_event_source_set_time_relative(credentials->start_timer, 0);
}

const char *apiserver_credentials_serving_pair(const ApiServerCredentials *credentials) {
        return credentials->serving ? serving_certificate_pair(credentials->serving) : NULL;
}

void apiserver_credentials_dump(const ApiServerCredentials *credentials, FILE *out) {
        dump_timer(out, 1, "connection starts", credentials->start_timer);
        if (credentials->bootstrap)
                dump_line(out, 1, "TLS bootstrap: under way");
        if (credentials->certificate_manager)
                certificate_manager_dump(credentials->certificate_manager, out);
        if (credentials->serving)
                serving_certificate_dump(credentials->serving, out);
}
