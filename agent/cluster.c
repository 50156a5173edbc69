/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cluster-private.h"

#include "common/cleanup.h"
#include "common/log.h"
#include "common/strv.h"

enum {
        AWAY_MAX = 8, /* reasons for which the server is away, that are said */
};

const char cluster_file[] = "the API server";

static int on_wishes_due(sd_event_source *source, void *userdata) {
        Cluster *cluster = userdata;

        cluster->config.on_due(cluster->config.userdata);
        return 0;
}

static void forget_news(Cluster *cluster) {
        strv_free(cluster->news);
        cluster->news = NULL;
        cluster->is_all_news = false;
}

static int on_objects_due(sd_event_source *source, void *userdata) {
        Cluster *cluster = userdata;

        supervisor_objects_changed(cluster->config.supervisor, cluster_has_news_for, cluster);
        forget_news(cluster);
        return 0;
}

void cluster_schedule_wishes(Cluster *cluster) {
        (void) sd_event_source_set_enabled(cluster->wishes_due, SD_EVENT_ONESHOT);
}

void cluster_schedule_objects(Cluster *cluster, const char *which) {
        if (!which || strv_append(&cluster->news, which) < 0)
                cluster->is_all_news = true;
        (void) sd_event_source_set_enabled(cluster->objects_due, SD_EVENT_ONESHOT);
}

/* After all news of a turn. */
static int add_due(Cluster *cluster, sd_event_handler_t on_due, sd_event_source **ret) {
        int r = sd_event_add_defer(cluster->config.event, ret, on_due, cluster);

        if (r >= 0)
                r = sd_event_source_set_priority(*ret, SD_EVENT_PRIORITY_NORMAL + 5);
        return r < 0 ? r : sd_event_source_set_enabled(*ret, SD_EVENT_OFF);
}

int cluster_new(const ClusterConfig *config, Cluster **ret) {
        Cluster *cluster = calloc(1, sizeof(*cluster));
        int r;

        if (!cluster)
                return -ENOMEM;
        cluster->config = *config;
        r = cluster_kept_new(cluster);
        if (r >= 0)
                r = cluster_services_new(cluster);
        if (r >= 0)
                r = cluster_daemonsets_new(cluster);
        if (r >= 0)
                r = add_due(cluster, on_wishes_due, &cluster->wishes_due);
        if (r >= 0)
                r = add_due(cluster, on_objects_due, &cluster->objects_due);
        if (r < 0)
                cluster_free(cluster);
        else
                *ret = cluster;
        return r;
}

Cluster *cluster_free(Cluster *cluster) {
        if (!cluster)
                return NULL;
        cluster_forget_identity(cluster);
        kube_writer_free(cluster->writer);
        kube_reflector_free(cluster->reflector);
        cluster_forget_node(cluster);
        cluster_forget_tokens(cluster, NULL);
        kube_writer_free(cluster->token_writer);
        cluster_forget_services(cluster);
        cluster_forget_daemonsets(cluster);
        cluster_forget_objects(cluster);
        sd_event_source_disable_unref(cluster->wishes_due);
        sd_event_source_disable_unref(cluster->objects_due);
        sd_event_source_disable_unref(cluster->token_timer);
        cluster_forget_pods(cluster);
        forget_news(cluster);
        cluster_forget_kept(cluster);
        kube_client_free(cluster->client);
        kubeconfig_done(&cluster->kubeconfig);
        free(cluster->node_uid);
        free(cluster->pods_trouble);
        strv_free(cluster->away);
        cluster_forget_refusals(cluster);
        free(cluster);
        return NULL;
}

static int connect_server(Cluster *cluster, Error *reterr) {
        KubeWriterSpec pods = cluster_pod_writer, tokens = cluster_token_writer;
        int r = kube_client_new(cluster->config.event, &cluster->kubeconfig, &cluster->client,
                                reterr);

        if (r < 0)
                return r;
        kube_client_on_state(cluster->client, cluster->config.on_state, cluster->config.userdata);
        pods.client = tokens.client = cluster->client;
        pods.userdata = tokens.userdata = cluster;
        r = kube_writer_new(cluster->config.event, &pods, &cluster->writer);
        if (r >= 0)
                r = kube_writer_new(cluster->config.event, &tokens, &cluster->token_writer);
        if (r >= 0)
                r = cluster_ask_tokens(cluster);
        if (r >= 0)
                r = cluster_keep_node(cluster);
        if (r >= 0)
                r = cluster_follow_services(cluster);
        if (r >= 0)
                r = cluster_follow_pods(cluster);
        return r < 0 ? r : cluster_place_daemonsets(cluster);
}

static int take_kubeconfig(Cluster *cluster, const Kubeconfig *kubeconfig) {
        Kubeconfig copy = { 0 };
        int r = kubeconfig_copy(kubeconfig, &copy);

        if (r < 0)
                return r;
        kubeconfig_done(&cluster->kubeconfig);
        cluster->kubeconfig = copy;
        return 0;
}

int cluster_use_kubeconfig(Cluster *cluster, const Kubeconfig *kubeconfig, Error *reterr) {
        const char *trouble;
        int r;

        if (cluster->client) {
                r = kube_client_reload(cluster->client, kubeconfig, reterr);
                return r < 0 ? r : take_kubeconfig(cluster, kubeconfig);
        }
        r = take_kubeconfig(cluster, kubeconfig);
        if (r >= 0)
                r = connect_server(cluster, reterr);
        if (r < 0)
                return r;
        log_info("The API server of %s is %s", cluster->config.kubeconfig,
                 cluster->kubeconfig.server);
        trouble = kube_client_state(cluster->client).identity_trouble;
        if (trouble)
                log_warning("%s: %s", cluster->config.kubeconfig, trouble);
        cluster_schedule_wishes(cluster); /* what pods refer to is followed from now on */
        cluster->config.on_state(cluster->config.userdata);
        return 0;
}

bool cluster_is_away(Cluster *cluster, const char *error, unsigned status) {
        if (!error || status != 0 || kube_client_state(cluster->client).is_reached) {
                if (cluster->away)
                        log_info("The API server is reached again");
                cluster->away = strv_free(cluster->away);
                return false;
        }
        if (!strv_contains(cluster->away, error) && strv_length(cluster->away) < AWAY_MAX) {
                log_warning("The API server is not reached: %s; going on without it", error);
                (void) strv_append(&cluster->away, error);
        }
        return true;
}

void cluster_set_synced(Cluster *cluster) {
        cluster->is_synced = true;
        cluster_node_changed(cluster);
        cluster_tell_all_pods(cluster);
}

void cluster_set_leaving(Cluster *cluster, bool is_leaving) {
        cluster->is_leaving = is_leaving;
        cluster_node_changed(cluster);
        cluster_tell_all_pods(cluster);
}
