/* SPDX-License-Identifier: Apache-2.0 */

/* Who this node is to the API server: the kubeconfig with all its files, read again when they are
 * others; how it is got where there is none yet; and the certificate, renewed where it is ours. */

#include "agent/cluster-private.h"

#include "agent/manifest/kubeconfig.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/log.h"
#include "common/strv.h"

#include <errno.h>
#include <unistd.h>

#define START_DELAY_USEC    USEC_PER_SEC /* at the latest: nobody may ever be able to begin */
#define START_ACCURACY_USEC (10 * USEC_PER_MSEC)

static void begin_bootstrap(Cluster *cluster);

/* Said once, for as long as it is the same. True where it is news. */
static bool note(Cluster *cluster, char **trouble, const char *sentence) {
        if (streq_ptr(*trouble, sentence))
                return false;
        free(*trouble);
        *trouble = sentence ? strdup(sentence) : NULL;
        cluster->config.on_state(cluster->config.userdata);
        return true;
}

static bool is_ours_to_renew(const Cluster *cluster) {
        const Kubeconfig *kubeconfig = &cluster->kubeconfig;
        size_t n = strlen(cluster->directory);

        return kubeconfig->certificate_file && !kubeconfig->certificate_data &&
               strncmp(kubeconfig->certificate_file, cluster->directory, n) == 0 &&
               streq(kubeconfig->certificate_file + n, "/" PAIR_FILE);
}

/* ---- the certificate ---- */

/* Its successor cannot be asked for with one that has expired, only with a bootstrap's. */
static void on_certificate_trouble(const char *trouble, void *userdata) {
        Cluster *cluster = userdata;
        KubeClientState state = kube_client_state(cluster->client);

        if (note(cluster, &cluster->certificate_trouble, trouble) && trouble)
                log_warning("%s: %s", cluster->config.kubeconfig, trouble);
        if (state.expires > 0 && state.expires <= now_realtime_usec() && is_ours_to_renew(cluster))
                begin_bootstrap(cluster);
}

static int look_after_certificate(Cluster *cluster) {
        KubeClientState state = kube_client_state(cluster->client);
        int r = 0;

        if (!cluster->renewer)
                r = kube_renewer_new(&(KubeRenewerSpec){ .event = cluster->config.event,
                                                         .node_name = cluster->config.node_name,
                                                         .directory = is_ours_to_renew(cluster)
                                                                              ? cluster->directory
                                                                              : NULL,
                                                         .on_trouble = on_certificate_trouble,
                                                         .userdata = cluster },
                                     &cluster->renewer);
        return r < 0 ? r
                     : kube_renewer_set(cluster->renewer, &cluster->kubeconfig, state.begins,
                                        state.expires);
}

/* ---- the kubeconfig ---- */

static int use(const Kubeconfig *kubeconfig, void *userdata, Error *reterr) {
        Cluster *cluster = userdata;
        bool was_ours = cluster->renewer && is_ours_to_renew(cluster);
        int r = cluster_use_kubeconfig(cluster, kubeconfig, reterr);

        if (r < 0)
                return r;
        if (was_ours != is_ours_to_renew(cluster))
                cluster->renewer = kube_renewer_free(cluster->renewer);
        return look_after_certificate(cluster);
}

static void on_trouble(const char *trouble, char *const *warnings, void *userdata) {
        Cluster *cluster = userdata;

        strv_foreach(warning, (char **) (uintptr_t) warnings)
                log_warning("%s", *warning);
        if (cluster->bootstrap && !cluster->client)
                return; /* of course it is not there yet */
        if (!note(cluster, &cluster->trouble, trouble) || !trouble)
                return;
        log_error("%s; %s", trouble,
                  cluster->client ? "going on as before" : "pods of files run without it");
}

/* ---- the bootstrap ---- */

static void on_bootstrap_trouble(const char *trouble, void *userdata) {
        Cluster *cluster = userdata;

        if (note(cluster, &cluster->trouble, trouble) && trouble)
                log_warning("%s: %s", cluster->config.bootstrap_kubeconfig, trouble);
}

static void on_bootstrap_done(void *userdata) {
        Cluster *cluster = userdata;

        cluster->bootstrap = kube_bootstrap_free(cluster->bootstrap);
        (void) note(cluster, &cluster->trouble, NULL);
        log_info("This node has a certificate of the API server's");
        kubeconfig_watch_read(cluster->files);
}

static bool has_no_kubeconfig(const Cluster *cluster) {
        return access(cluster->config.kubeconfig, F_OK) < 0 && errno == ENOENT;
}

static int start_bootstrap(Cluster *cluster, Error *reterr) {
        cleanup_with(kubeconfig_done) Kubeconfig kubeconfig = { 0 };
        cleanup_strv char **warnings = NULL;
        int r = kubeconfig_load(cluster->config.bootstrap_kubeconfig, &kubeconfig, &warnings,
                                reterr);

        strv_foreach(warning, warnings)
                log_warning("%s", *warning);
        if (r < 0)
                return r;
        return kube_bootstrap_new(
                &(KubeBootstrapSpec){ .event = cluster->config.event,
                                      .kubeconfig = &kubeconfig,
                                      .node_name = cluster->config.node_name,
                                      .directory = cluster->directory,
                                      .write_kubeconfig = has_no_kubeconfig(cluster)
                                                                  ? cluster->config.kubeconfig
                                                                  : NULL,
                                      .on_trouble = on_bootstrap_trouble,
                                      .on_done = on_bootstrap_done,
                                      .userdata = cluster },
                &cluster->bootstrap, reterr);
}

static void begin_bootstrap(Cluster *cluster) {
        cleanup_error Error error = ERROR_NULL;
        int r;

        if (!cluster->config.bootstrap_kubeconfig || cluster->bootstrap)
                return;
        r = start_bootstrap(cluster, &error);
        if (r < 0 && note(cluster, &cluster->trouble, error_message(&error, r)))
                log_error("%s; pods of files run without it", cluster->trouble);
}

/* ---- life ---- */

/* Or to get one. */
static int read_kubeconfig(Cluster *cluster) {
        cluster->directory = path_join(cluster->config.state_dir, "pki");
        if (!cluster->directory)
                return -ENOMEM;
        if (has_no_kubeconfig(cluster))
                begin_bootstrap(cluster);
        return kubeconfig_watch_new(&(KubeconfigWatchSpec){ .event = cluster->config.event,
                                                            .path = cluster->config.kubeconfig,
                                                            .use = use,
                                                            .on_trouble = on_trouble,
                                                            .userdata = cluster },
                                    &cluster->files);
}

static int on_start(sd_event_source *source, uint64_t usec, void *userdata) {
        Cluster *cluster = userdata;
        int r = read_kubeconfig(cluster);

        if (r < 0)
                log_error_errno(r, "Cannot follow the kubeconfig %s", cluster->config.kubeconfig);
        return 0;
}

void cluster_forget_identity(Cluster *cluster) {
        sd_event_source_disable_unref(cluster->start);
        kube_bootstrap_free(cluster->bootstrap);
        kube_renewer_free(cluster->renewer);
        kubeconfig_watch_free(cluster->files);
        free(cluster->directory);
        free(cluster->trouble);
        free(cluster->certificate_trouble);
}

void cluster_reload(Cluster *cluster) {
        if (!cluster->files)
                return; /* it is about to be read */
        if (has_no_kubeconfig(cluster))
                begin_bootstrap(cluster);
        kubeconfig_watch_read(cluster->files);
}

/* Loading libcurl takes milliseconds, in which a shim that has started would wait for what is asked
 * of it. */
void cluster_start(Cluster *cluster) {
        int r = sd_event_add_time_relative(cluster->config.event, &cluster->start, CLOCK_BOOTTIME,
                                           START_DELAY_USEC, START_ACCURACY_USEC, on_start,
                                           cluster);

        if (r >= 0)
                r = sd_event_source_set_priority(cluster->start, SD_EVENT_PRIORITY_IDLE);
        if (r < 0)
                log_error_errno(r, "Cannot begin with the kubeconfig %s",
                                cluster->config.kubeconfig);
}

void cluster_hasten(Cluster *cluster) {
        if (cluster->start)
                (void) sd_event_source_set_time_relative(cluster->start, 0);
}
