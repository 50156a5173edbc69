/* SPDX-License-Identifier: Apache-2.0 */
/* DaemonSets of the API server that this node places by itself, because nobody else does: the
 * controller manager says that it is alive by a lease, which is looked at once a minute. As long as
 * it is renewed its pods are bound here and ours are not made; when it has not been for a minute,
 * or there is none, the sets are listed and followed. What is not known changes nothing: a server
 * that is away or that refuses is no news of a controller. */

#include "agent/cluster-private.h"

#include "agent/model/schema.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/log.h"

#include <jansson.h>

#define POLL_USEC  (60 * USEC_PER_SEC)
#define RETRY_USEC (10 * USEC_PER_SEC) /* while it is not known who places them */

static const char lease_path[] =
        "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-controller-manager";

const char cluster_origin[] = "[API server]";

typedef struct Set {
        DaemonSet *set;
        unsigned generation; /* of the list that had it last */
} Set;

struct ClusterDaemonSets {
        Cluster *cluster;
        LIST_OF(Set) sets;
        unsigned generation;
        bool is_unclear;          /* something in the list cannot be read: who knows which it is */
        KubeReflector *reflector; /* while this node places them */
        KubeRequest *request;     /* for the lease */
        sd_event_source *timer;
        char *renewed;       /* the lease's renewTime as it was last; or NULL */
        uint64_t renewed_at; /* boot time, when we saw it first */
        bool is_known;       /* who places them */
        bool is_ours;
        char *trouble;
        bool is_lease_refused; /* that is the trouble */
};

/* ---- the sets ---- */

static void remove_at(ClusterDaemonSets *sets, size_t i) {
        daemonset_free(sets->sets.items[i].set);
        sets->sets.items[i] = sets->sets.items[--sets->sets.n];
}

static Set *find(ClusterDaemonSets *sets, const char *namespace, const char *name) {
        for (size_t i = 0; i < sets->sets.n; i++) {
                const ObjectMeta *metadata = &sets->sets.items[i].set->metadata;

                if (streq(metadata->namespace, namespace) && streq(metadata->name, name))
                        return &sets->sets.items[i];
        }
        return NULL;
}

static int put_take(ClusterDaemonSets *sets, DaemonSet *set) {
        Set *there = find(sets, set->metadata.namespace, set->metadata.name), *longer;

        if (there) {
                daemonset_free(there->set);
                *there = (Set){ set, sets->generation };
                return 0;
        }
        longer = reallocarray(sets->sets.items, sets->sets.n + 1, sizeof(*longer));
        if (!longer)
                return -ENOMEM;
        sets->sets.items = longer;
        longer[sets->sets.n++] = (Set){ set, sets->generation };
        return 0;
}

int cluster_seed_daemonset(Cluster *cluster, const DaemonSet *set) {
        DaemonSet *copy;
        int r = daemonset_copy(set, &copy);

        if (r >= 0)
                r = put_take(cluster->daemonsets, copy);
        return r;
}

/* ---- what the server says ---- */

/* 'status' of HTTP; NULL: there is none. */
static void set_trouble(ClusterDaemonSets *sets, const char *sentence, unsigned status) {
        cluster_note_refusal(sets->cluster, CONCERN_DAEMONSETS, sentence, status);
        if (streq_ptr(sets->trouble, sentence))
                return;
        free(sets->trouble);
        sets->trouble = sentence ? strdup(sentence) : NULL;
        if (sentence)
                log_warning("DaemonSets of the API server: %s", sentence);
}

static void forget_set(ClusterDaemonSets *sets, const char *namespace, const char *name) {
        Set *there = find(sets, namespace, name);

        if (there)
                remove_at(sets, (size_t) (there - sets->sets.items));
}

static int take_set(ClusterDaemonSets *sets, const char *json, size_t length, Error *reterr) {
        cleanup_with(manifest_objects_done) ManifestObjects objects = { 0 };
        DaemonSet *set;
        int r = manifest_parse_api("daemonset", "DaemonSet", json, length,
                                   sets->cluster->config.node_name, &objects, reterr);

        if (r < 0)
                return r;
        set = objects.daemonsets.items[0];
        objects.daemonsets.n = 0;
        r = put_take(sets, set);
        if (r < 0)
                daemonset_free(set);
        return r;
}

static void on_object(KubeChange change, const char *json, size_t length, void *userdata) {
        ClusterDaemonSets *sets = userdata;
        cleanup_with(kube_metadata_done) KubeMetadata metadata = { 0 };
        cleanup_error Error error = ERROR_NULL;
        int r = kube_metadata_read(json, length, &metadata, &error);

        /* One that waits for its pods to go wants none. */
        if (r >= 0 && (change == KUBE_DELETED || metadata.is_deleting))
                forget_set(sets, metadata.namespace, metadata.name);
        else if (r >= 0)
                r = take_set(sets, json, length, &error);
        if (r < 0) /* it stays as it was */
                log_error("DaemonSet '%s/%s' of the API server: %s", strna(metadata.namespace),
                          strna(metadata.name), error_message(&error, r));
        if (r < 0 && metadata.name) {
                Set *there = find(sets, metadata.namespace, metadata.name);

                if (there)
                        there->generation = sets->generation;
        }
        sets->is_unclear = sets->is_unclear || (r < 0 && !metadata.name);
        if (change != KUBE_LISTED)
                cluster_schedule_wishes(sets->cluster);
}

static void on_list_begin(void *userdata) {
        ClusterDaemonSets *sets = userdata;

        sets->generation++;
        sets->is_unclear = false;
}

static void on_list_end(bool is_complete, void *userdata) {
        ClusterDaemonSets *sets = userdata;

        for (size_t i = sets->sets.n; is_complete && !sets->is_unclear && i-- > 0;)
                if (sets->sets.items[i].generation != sets->generation)
                        remove_at(sets, i);
        cluster_schedule_wishes(sets->cluster);
}

static void on_trouble(const char *error, unsigned status, void *userdata) {
        ClusterDaemonSets *sets = userdata;

        sets->is_lease_refused = false;
        if (status == 403)
                set_trouble(sets,
                            "this node may not list them; it needs the ClusterRole "
                            "mainstay-node that the package brings",
                            status);
        else if (!cluster_is_away(sets->cluster, error, status))
                set_trouble(sets, error, status);
}

static void follow(ClusterDaemonSets *sets) {
        int r = kube_reflector_new(sets->cluster->config.event,
                                   &(KubeReflectorSpec){ .client = sets->cluster->client,
                                                         .path = "/apis/apps/v1/daemonsets",
                                                         .on_object = on_object,
                                                         .on_list_begin = on_list_begin,
                                                         .on_list_end = on_list_end,
                                                         .on_trouble = on_trouble,
                                                         .userdata = sets },
                                   &sets->reflector);
        if (r < 0)
                (void) log_error_errno(r, "Cannot follow the DaemonSets of the API server");
}

/* ---- whose they are ---- */

static void decide(ClusterDaemonSets *sets, bool is_ours) {
        if (sets->is_known && sets->is_ours == is_ours)
                return;
        log_info(is_ours ? "No controller manager places DaemonSets, so this node does"
                         : "The controller manager places DaemonSets");
        sets->is_known = true;
        sets->is_ours = is_ours;
        if (is_ours)
                follow(sets);
        else {
                sets->reflector = kube_reflector_free(sets->reflector);
                set_trouble(sets, NULL, 0);
        }
        cluster_schedule_wishes(sets->cluster);
}

/* Whether the lease is renewed is seen by its being another than before: no clock of anybody's is
 * asked. */
static void look_at_lease(ClusterDaemonSets *sets, const KubeAnswer *answer) {
        cleanup_with(json_decrefp) json_t *lease =
                json_loadb(answer->body, answer->length, 0, NULL);
        const json_t *spec = json_object_get(lease, "spec");
        const char *renewed = json_string_value(json_object_get(spec, "renewTime"));
        const char *holder = json_string_value(json_object_get(spec, "holderIdentity"));
        uint64_t now = now_boottime_usec();

        if (!renewed || !holder || !holder[0]) {
                decide(sets, true);
                return;
        }
        if (!sets->renewed) {
                sets->renewed_at = now;
                sets->renewed = strdup(renewed);
        } else if (!streq(sets->renewed, renewed)) {
                free(sets->renewed);
                sets->renewed = strdup(renewed);
                sets->renewed_at = now;
                decide(sets, false);
        } else if (now - sets->renewed_at >= POLL_USEC)
                decide(sets, true);
}

/* Who was refused is in no hurry to hear it again. */
static void arm(ClusterDaemonSets *sets) {
        bool is_settled = sets->is_known || sets->trouble;

        (void) sd_event_source_set_time_relative(sets->timer, is_settled ? POLL_USEC : RETRY_USEC);
        (void) sd_event_source_set_enabled(sets->timer, SD_EVENT_ONESHOT);
}

static void refuse_lease(ClusterDaemonSets *sets) {
        sets->is_lease_refused = true;
        set_trouble(sets,
                    "this node may not see whether a controller manager is alive, so it leaves "
                    "them to it; it needs the ClusterRole mainstay-node that the package brings",
                    403);
}

static void on_lease(const KubeAnswer *answer, void *userdata) {
        ClusterDaemonSets *sets = userdata;

        sets->request = NULL;
        if (!answer->error && answer->status != 403 && sets->is_lease_refused) {
                sets->is_lease_refused = false;
                set_trouble(sets, NULL, 0);
        }
        if (!answer->error && answer->status == 200)
                look_at_lease(sets, answer);
        else if (!answer->error && answer->status == 404)
                decide(sets, true);
        else if (!answer->error && answer->status == 403)
                refuse_lease(sets);
        arm(sets);
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        ClusterDaemonSets *sets = userdata;
        int r = kube_client_call(sets->cluster->client,
                                 &(KubeCall){ .method = "GET",
                                              .path = lease_path,
                                              .on_done = on_lease,
                                              .userdata = sets },
                                 &sets->request, NULL);

        if (r < 0)
                arm(sets);
        return 0;
}

int cluster_daemonsets_new(Cluster *cluster) {
        ClusterDaemonSets *sets = calloc(1, sizeof(*sets));

        if (!sets)
                return -ENOMEM;
        sets->cluster = cluster;
        cluster->daemonsets = sets;
        return 0;
}

int cluster_place_daemonsets(Cluster *cluster) {
        ClusterDaemonSets *sets = cluster->daemonsets;

        switch (cluster->config.daemonsets_by) {
        case DAEMONSETS_NODE:
                decide(sets, true);
                return 0;
        case DAEMONSETS_CONTROLLER:
                decide(sets, false);
                return 0;
        case DAEMONSETS_UNSET:
        case DAEMONSETS_AUTO:
        case N_DAEMONSETS_BY:
                break;
        }
        return sd_event_add_time_relative(cluster->config.event, &sets->timer, CLOCK_BOOTTIME, 0,
                                          USEC_PER_SEC, on_timer, sets);
}

void cluster_forget_daemonsets(Cluster *cluster) {
        ClusterDaemonSets *sets = cluster->daemonsets;

        if (!sets)
                return;
        kube_request_cancel(sets->request);
        kube_reflector_free(sets->reflector);
        sd_event_source_disable_unref(sets->timer);
        while (sets->sets.n > 0)
                remove_at(sets, sets->sets.n - 1);
        free(sets->sets.items);
        free(sets->renewed);
        free(sets->trouble);
        free(sets);
        cluster->daemonsets = NULL;
}

const char *cluster_daemonsets_by(const Cluster *cluster) {
        const ClusterDaemonSets *sets = cluster->daemonsets;

        if (!sets || !sets->is_known)
                return NULL;
        return sets->is_ours ? "this node" : "the controller manager";
}

/* ---- wishes ---- */

/* The controller has bound one of its own here: then ours would be one too many, whether or not the
 * controller is still alive. Until it has, ours goes on. */
static bool has_bound_pod(const Cluster *cluster, const DaemonSet *set) {
        for (const ClusterPod *pod = cluster->pods; pod; pod = pod->following) {
                const OwnerReference *owner =
                        pod->wanted ? object_controller(&pod->wanted->metadata) : NULL;

                if (owner && streq(owner->uid, set->metadata.uid))
                        return true;
        }
        return false;
}

int cluster_want_daemonsets(Cluster *cluster, Daemons *daemons) {
        ClusterDaemonSets *sets = cluster->daemonsets;
        int result = 0;

        for (size_t i = sets->sets.n; i-- > 0;) {
                bool is_theirs = has_bound_pod(cluster, sets->sets.items[i].set);

                if (is_theirs && sets->is_known && !sets->is_ours)
                        remove_at(sets, i); /* nobody asks us any more */
                else if (!is_theirs &&
                         daemons_want(daemons, cluster_origin, sets->sets.items[i].set) < 0)
                        result = -ENOMEM;
        }
        return result;
}
