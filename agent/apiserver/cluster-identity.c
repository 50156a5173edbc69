/* SPDX-License-Identifier: Apache-2.0 */
/* The file <state>/cluster/identity has three lines: the address, the hash of the authority, and
 * the UID or nothing. The cache itself is dropped by apiserver.c. */

#include "agent/apiserver/cluster-identity.h"

#include "agent/kubeclient/request-back-off.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/dump.h"
#include "common/event-source.h"
#include "common/file.h"
#include "common/hash.h"
#include "common/json-text.h"
#include "common/log.h"
#include "common/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#define KUBE_SYSTEM "/api/v1/namespaces?fieldSelector=metadata.name%3Dkube-system"

enum {
        IDENTITY_MAX_BYTES = 64 * 1024,
        AUTHORITY_MAX_BYTES = 16 * 1024 * 1024,
};

static const char identity_file_name[] = "identity";

typedef struct ClusterNames {
        char *server;
        char *authority; /* its hash; "": none */
        char *uid;       /* "": not known */
} ClusterNames;

struct ClusterIdentity {
        ClusterIdentitySpec spec;
        ClusterNames cached; /* no 'server': none yet */
        ClusterNames used;   /* identity of the client in use, without a UID */

        ClusterNames asked; /* of the kubeconfig that is tried */
        KubeClient *client; /* of it; NULL: none */
        KubeRequest *request;
        sd_event_source *timer;
        KubeBackOff back_off;
        bool is_reported;
};

static void cluster_names_done(ClusterNames *names) {
        free(names->server);
        free(names->authority);
        free(names->uid);
        *names = (ClusterNames){ 0 };
}

/* ---- the file ---- */

static char *take_identity_line(const char **text) {
        size_t length = strcspn(*text, "\n");
        char *line = strndup(*text, length);

        *text += length + ((*text)[length] == '\n');
        return line;
}

static int load_cluster_identity(ClusterIdentity *identity) {
        ClusterNames *names = &identity->cached;
        cleanup_free char *text = NULL;
        const char *rest;
        int r = apiserver_cache_read(identity->spec.cache, ".", identity_file_name,
                                     IDENTITY_MAX_BYTES, &text);

        if (r < 0)
                return r == -ENOMEM ? r : 0;
        rest = text;
        names->server = take_identity_line(&rest);
        names->authority = take_identity_line(&rest);
        names->uid = take_identity_line(&rest);
        return names->server && names->authority && names->uid ? 0 : -ENOMEM;
}

static void store_cluster_identity(const ClusterIdentity *identity) {
        const ClusterNames *names = &identity->cached;
        cleanup_free char *text =
                text_format("%s\n%s\n%s\n", names->server, names->authority, names->uid);

        if (text)
                apiserver_cache_write(identity->spec.cache, ".", identity_file_name, text);
}

/* ---- the kubeconfig ---- */

static char *hash_authority(const Kubeconfig *kubeconfig) {
        cleanup_free char *text = NULL;
        const char *authority = kubeconfig->authority_data;
        char hex[SHA256_HEX_SIZE] = "";

        if (!authority && kubeconfig->authority_file &&
            read_file_at(AT_FDCWD, kubeconfig->authority_file, AUTHORITY_MAX_BYTES, &text, NULL) >=
                    0)
                authority = text;
        if (authority)
                sha256_hex(authority, strlen(authority), hex);
        return strdup(hex);
}

static int name_cluster(const Kubeconfig *kubeconfig, ClusterNames *ret) {
        cluster_names_done(ret);
        ret->server = strdup(strna(kubeconfig->server));
        ret->authority = hash_authority(kubeconfig);
        ret->uid = strdup("");
        return ret->server && ret->authority && ret->uid ? 0 : -ENOMEM;
}

/* ---- the answer ---- */

static ClusterVerdict judge_cluster(const ClusterNames *cached, const ClusterNames *asked) {
        if (!cached->server)
                return CLUSTER_SAME;
        if (cached->uid[0] && asked->uid[0])
                return streq(cached->uid, asked->uid) ? CLUSTER_SAME : CLUSTER_OTHER;
        return streq(cached->server, asked->server) ||
                               (asked->authority[0] && streq(cached->authority, asked->authority))
                       ? CLUSTER_SAME
                       : CLUSTER_PERHAPS_OTHER;
}

static bool are_names_new(const ClusterNames *cached, const ClusterNames *now) {
        return cached->server &&
               (!streq(cached->server, now->server) || !streq(cached->authority, now->authority));
}

/* From now on, the cache belongs to the cluster with these names. */
static void store_asked_cluster(ClusterIdentity *identity, ClusterNames *names, bool is_same) {
        ClusterNames *cached = &identity->cached;

        /* A UID that the server no longer shows is kept if the cluster is the same. */
        if (is_same && !names->uid[0] && cached->uid && text_replace(&names->uid, cached->uid) < 0)
                return;
        if (cached->server && !are_names_new(cached, names) && streq(cached->uid, names->uid))
                return;
        cluster_names_done(cached);
        *cached = *names;
        *names = (ClusterNames){ 0 };
        store_cluster_identity(identity);
}

/* "" if the server does not have the namespace. -EBADMSG: the response is not a list, and does not
 * identify the cluster. */
static int read_cluster_uid(const KubeResponse *response, char **ret) {
        cleanup_json json_t *list = NULL;
        const json_t *object;
        int r = json_parse_text(response->body, response->length, 0, &list, NULL);

        if (r < 0)
                return r;
        if (!json_is_array(json_object_get(list, "items")))
                return -EBADMSG;
        object = json_object_get(json_array_get(json_object_get(list, "items"), 0), "metadata");
        return text_replace(ret, strna(json_text(object, "uid")));
}

/* A response of a server that cannot serve requests proves nothing, so -EAGAIN is returned. */
static int read_cluster_answer(const KubeResponse *response, ClusterNames *ret) {
        unsigned status = response->status;

        if (response->error || status == 401 || status == 408 || status == 429 || status >= 500)
                return -EAGAIN;
        return status == 200 ? read_cluster_uid(response, &ret->uid) : 0;
}

/* ---- the client in use: other requests wait for the answer ---- */

static int copy_cluster_names(const ClusterNames *names, ClusterNames *ret) {
        ret->server = strdup(names->server);
        ret->authority = strdup(names->authority);
        ret->uid = strdup("");
        return ret->server && ret->authority && ret->uid ? 0 : -ENOMEM;
}

static KubeGateVerdict on_guard_response(const KubeResponse *response, void *userdata) {
        ClusterIdentity *identity = userdata;
        cleanup_with(cluster_names_done) ClusterNames names = { 0 };
        ClusterVerdict verdict;

        if (copy_cluster_names(&identity->used, &names) < 0 ||
            read_cluster_answer(response, &names) < 0)
                return KUBE_GATE_FAILS;
        verdict = judge_cluster(&identity->cached, &names);
        if (verdict != CLUSTER_SAME)
                identity->spec.on_other_cluster(verdict, identity->spec.userdata);
        store_asked_cluster(identity, &names, verdict == CLUSTER_SAME);
        return verdict == CLUSTER_SAME ? KUBE_GATE_PASSES : KUBE_GATE_REJECTS;
}

int cluster_identity_guard(ClusterIdentity *identity, KubeClient *client,
                           const Kubeconfig *kubeconfig) {
        int r = name_cluster(kubeconfig, &identity->used);

        return r < 0 ? r
                     : kube_client_set_gate(client, &(KubeGate){ .path = KUBE_SYSTEM,
                                                                 .on_response = on_guard_response,
                                                                 .userdata = identity });
}

/* ---- another kubeconfig ---- */

static void decide_trial(ClusterIdentity *identity) {
        ClusterVerdict verdict = judge_cluster(&identity->cached, &identity->asked);

        identity->client = NULL;
        kube_back_off_reset(&identity->back_off);
        identity->spec.on_trial_decided(verdict, identity->spec.userdata);
}

static void on_trial_response(const KubeResponse *response, void *userdata) {
        ClusterIdentity *identity = userdata;
        cleanup_free char *why = NULL;
        int r = read_cluster_answer(response, &identity->asked);

        identity->request = NULL;
        if (r >= 0) {
                decide_trial(identity);
                return;
        }
        why = kube_response_describe_error(response);
        if (!identity->is_reported)
                log_warning("Cannot find out whether the API server %s belongs to the same cluster "
                            "as before: %s; pods keep running, retrying",
                            identity->asked.server,
                            r == -EAGAIN ? strna(why) : "it does not reply with a list");
        identity->is_reported = true;
        (void) event_timer_arm(identity->timer,
                               kube_back_off_next(&identity->back_off,
                                                  kube_back_off_limits_for_status(response->status),
                                                  now_boottime_usec(), response->retry_after_usec,
                                                  back_off_random()));
}

static int ask_for_kube_system(ClusterIdentity *identity) {
        return kube_client_start_request(identity->client,
                                         &(KubeRequestSpec){ .method = "GET",
                                                             .path = KUBE_SYSTEM,
                                                             .on_done = on_trial_response,
                                                             .userdata = identity },
                                         &identity->request, NULL);
}

static int on_question_due(sd_event_source *source, uint64_t usec, void *userdata) {
        ClusterIdentity *identity = userdata;

        if (identity->client && !identity->request && ask_for_kube_system(identity) < 0)
                (void) event_timer_arm(identity->timer, USEC_PER_SEC);
        return 0;
}

int cluster_identity_is_doubtful(const ClusterIdentity *identity, const Kubeconfig *kubeconfig) {
        cleanup_with(cluster_names_done) ClusterNames now = { 0 };
        int r = name_cluster(kubeconfig, &now);

        return r < 0 ? r : are_names_new(&identity->cached, &now);
}

int cluster_identity_try(ClusterIdentity *identity, KubeClient *client,
                         const Kubeconfig *kubeconfig) {
        int r;

        cluster_identity_cancel_trial(identity);
        r = name_cluster(kubeconfig, &identity->asked);
        if (r < 0)
                return r;
        identity->client = client;
        return event_timer_arm(identity->timer, 0);
}

void cluster_identity_accept_trial(ClusterIdentity *identity) {
        cleanup_with(cluster_names_done) ClusterNames names = { 0 };

        if (copy_cluster_names(&identity->asked, &names) < 0)
                return;
        cluster_names_done(&identity->used);
        identity->used = names;
        names = (ClusterNames){ 0 };
        store_asked_cluster(identity, &identity->asked, /* is_same= */ true);
}

void cluster_identity_cancel_trial(ClusterIdentity *identity) {
        identity->request = kube_request_cancel(identity->request);
        identity->client = NULL;
        identity->is_reported = false;
        kube_back_off_reset(&identity->back_off);
}

void cluster_identity_dump(const ClusterIdentity *identity, FILE *out) {
        const ClusterNames *cached = &identity->cached;

        dump_line(out, 1, "cache of cluster: %s, server %s",
                  cached->uid && cached->uid[0] ? cached->uid : "not known",
                  cached->server ? cached->server : "none");
        dump_timer(out, 2, "asked for its UID", identity->timer);
}

/* ---- construction ---- */

int cluster_identity_new(const ClusterIdentitySpec *spec, ClusterIdentity **ret) {
        ClusterIdentity *identity = calloc(1, sizeof(*identity));
        int r;

        if (!identity)
                return -ENOMEM;
        identity->spec = *spec;
        r = load_cluster_identity(identity);
        if (r >= 0)
                r = event_add_disabled_timer(spec->event, &identity->timer, CLOCK_BOOTTIME, 0,
                                             on_question_due, identity);
        if (r < 0) {
                cluster_identity_free(identity);
                return r;
        }
        *ret = identity;
        return 0;
}

ClusterIdentity *cluster_identity_free(ClusterIdentity *identity) {
        if (!identity)
                return NULL;
        cluster_identity_cancel_trial(identity);
        sd_event_source_disable_unref(identity->timer);
        cluster_names_done(&identity->cached);
        cluster_names_done(&identity->used);
        cluster_names_done(&identity->asked);
        free(identity);
        return NULL;
}
