/* SPDX-License-Identifier: Apache-2.0 */

/* Who this node is to the API server: the kubeconfig with all its files, read again when they are
 * others; how it is got where there is none yet; and the certificate, renewed where it is ours. */

#include "agent/apiserver/apiserver-private.h"

#include "agent/manifest/kubeconfig.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/log.h"
#include "common/strv.h"

#include <errno.h>
#include <unistd.h>

#define APISERVER_START_DELAY_USEC \
        USEC_PER_SEC /* at the latest: nobody may ever be able to begin */
#define APISERVER_START_ACCURACY_USEC (10 * USEC_PER_MSEC)

static void begin_certificate_bootstrap(ApiServerSync *api);

/* Said once, for as long as it is the same. True where it is news. */
static bool set_credentials_error(ApiServerSync *api, char **last_error, const char *sentence) {
        if (streq_ptr(*last_error, sentence))
                return false;
        free(*last_error);
        *last_error = sentence ? strdup(sentence) : NULL;
        api->config.on_state_changed(api->config.userdata);
        return true;
}

static bool is_certificate_managed(const ApiServerSync *api) {
        const Kubeconfig *kubeconfig = &api->kubeconfig;
        size_t n = strlen(api->directory);

        return kubeconfig->certificate_file && !kubeconfig->certificate_data &&
               strncmp(kubeconfig->certificate_file, api->directory, n) == 0 &&
               streq(kubeconfig->certificate_file + n, "/" PAIR_FILE);
}

/* ---- the certificate ---- */

/* Its successor cannot be asked for with one that has expired, only with a bootstrap's. */
static void on_certificate_error(const char *last_error, void *userdata) {
        ApiServerSync *api = userdata;
        KubeClientState state = kube_client_state(api->client);

        if (set_credentials_error(api, &api->certificate_error, last_error) && last_error)
                log_warning("%s: %s", api->config.kubeconfig, last_error);
        if (state.expires > 0 && state.expires <= now_realtime_usec() &&
            is_certificate_managed(api))
                begin_certificate_bootstrap(api);
}

static int update_certificate_renewal(ApiServerSync *api) {
        KubeClientState state = kube_client_state(api->client);
        int r = 0;

        if (!api->renewer)
                r = certificate_manager_new(
                        &(CertificateManagerSpec){
                                .event = api->config.event,
                                .node_name = api->config.node_name,
                                .directory = is_certificate_managed(api) ? api->directory : NULL,
                                .on_error = on_certificate_error,
                                .userdata = api },
                        &api->renewer);
        return r < 0 ? r
                     : certificate_manager_set_certificate(api->renewer, &api->kubeconfig,
                                                           state.begins, state.expires);
}

/* ---- the kubeconfig ---- */

static int use_watched_kubeconfig(const Kubeconfig *kubeconfig, void *userdata, Error *reterr) {
        ApiServerSync *api = userdata;
        bool was_managed = api->renewer && is_certificate_managed(api);
        int r = apiserver_use_kubeconfig(api, kubeconfig, reterr);

        if (r < 0)
                return r;
        if (was_managed != is_certificate_managed(api))
                api->renewer = certificate_manager_free(api->renewer);
        return update_certificate_renewal(api);
}

static void on_kubeconfig_error(const char *last_error, char *const *warnings, void *userdata) {
        ApiServerSync *api = userdata;

        strv_foreach(warning, (char **) (uintptr_t) warnings)
                log_warning("%s", *warning);
        if (api->bootstrap && !api->client)
                return; /* of course it is not there yet */
        if (!set_credentials_error(api, &api->last_error, last_error) || !last_error)
                return;
        log_error("%s; %s", last_error,
                  api->client ? "going on as before" : "pods of files run without it");
}

/* ---- the bootstrap ---- */

static void on_bootstrap_error(const char *last_error, void *userdata) {
        ApiServerSync *api = userdata;

        if (set_credentials_error(api, &api->last_error, last_error) && last_error)
                log_warning("%s: %s", api->config.bootstrap_kubeconfig, last_error);
}

static void on_bootstrap_finished(void *userdata) {
        ApiServerSync *api = userdata;

        api->bootstrap = kube_bootstrap_free(api->bootstrap);
        (void) set_credentials_error(api, &api->last_error, NULL);
        log_info("This node has a certificate of the API server's");
        kubeconfig_watch_reload(api->kubeconfig_watch);
}

static bool is_kubeconfig_missing(const ApiServerSync *api) {
        return access(api->config.kubeconfig, F_OK) < 0 && errno == ENOENT;
}

static int create_bootstrap(ApiServerSync *api, Error *reterr) {
        cleanup_with(kubeconfig_done) Kubeconfig kubeconfig = { 0 };
        cleanup_strv char **warnings = NULL;
        int r = kubeconfig_load(api->config.bootstrap_kubeconfig, &kubeconfig, &warnings, reterr);

        strv_foreach(warning, warnings)
                log_warning("%s", *warning);
        if (r < 0)
                return r;
        return kube_bootstrap_new(
                &(KubeBootstrapSpec){ .event = api->config.event,
                                      .kubeconfig = &kubeconfig,
                                      .node_name = api->config.node_name,
                                      .directory = api->directory,
                                      .write_kubeconfig = is_kubeconfig_missing(api)
                                                                  ? api->config.kubeconfig
                                                                  : NULL,
                                      .on_error = on_bootstrap_error,
                                      .on_done = on_bootstrap_finished,
                                      .userdata = api },
                &api->bootstrap, reterr);
}

static void begin_certificate_bootstrap(ApiServerSync *api) {
        cleanup_error Error error = ERROR_NULL;
        int r;

        if (!api->config.bootstrap_kubeconfig || api->bootstrap)
                return;
        r = create_bootstrap(api, &error);
        if (r < 0 && set_credentials_error(api, &api->last_error, error_message(&error, r)))
                log_error("%s; pods of files run without it", api->last_error);
}

/* ---- life ---- */

/* Or to get one. */
static int watch_kubeconfig(ApiServerSync *api) {
        api->directory = path_join(api->config.state_dir, "pki");
        if (!api->directory)
                return -ENOMEM;
        if (is_kubeconfig_missing(api))
                begin_certificate_bootstrap(api);
        return kubeconfig_watch_new(&(KubeconfigWatchSpec){ .event = api->config.event,
                                                            .path = api->config.kubeconfig,
                                                            .use = use_watched_kubeconfig,
                                                            .on_error = on_kubeconfig_error,
                                                            .userdata = api },
                                    &api->kubeconfig_watch);
}

static int on_apiserver_start_due(sd_event_source *source, uint64_t usec, void *userdata) {
        ApiServerSync *api = userdata;
        int r = watch_kubeconfig(api);

        if (r < 0)
                log_error_errno(r, "Cannot follow the kubeconfig %s", api->config.kubeconfig);
        return 0;
}

void apiserver_free_credentials(ApiServerSync *api) {
        sd_event_source_disable_unref(api->start_timer);
        kube_bootstrap_free(api->bootstrap);
        certificate_manager_free(api->renewer);
        kubeconfig_watch_free(api->kubeconfig_watch);
        free(api->directory);
        free(api->last_error);
        free(api->certificate_error);
}

void apiserver_reload_kubeconfig(ApiServerSync *api) {
        if (!api->kubeconfig_watch)
                return; /* it is about to be read */
        if (is_kubeconfig_missing(api))
                begin_certificate_bootstrap(api);
        kubeconfig_watch_reload(api->kubeconfig_watch);
}

/* Loading libcurl takes milliseconds, in which a shim that has started would wait for what is asked
 * of it. */
void apiserver_start(ApiServerSync *api) {
        int r = sd_event_add_time_relative(
                api->config.event, &api->start_timer, CLOCK_BOOTTIME, APISERVER_START_DELAY_USEC,
                APISERVER_START_ACCURACY_USEC, on_apiserver_start_due, api);

        if (r >= 0)
                r = sd_event_source_set_priority(api->start_timer, SD_EVENT_PRIORITY_IDLE);
        if (r < 0)
                log_error_errno(r, "Cannot begin with the kubeconfig %s", api->config.kubeconfig);
}

void apiserver_start_now(ApiServerSync *api) {
        if (api->start_timer)
                (void) sd_event_source_set_time_relative(api->start_timer, 0);
}
