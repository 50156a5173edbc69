/* SPDX-License-Identifier: Apache-2.0 */
/* The file <state>/cluster/identity: three lines, the address, the hash of the authority, the UID
 * or nothing. It drops nothing itself: see apiserver.c. */

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
        ClusterNames cached, asked; /* 'server' of both may be NULL */
        KubeClient *client;
        KubeRequest *request;
        sd_event_source *timer;
        KubeBackOff back_off;
        bool is_awaited; /* the caller waits for the answer: address or authority are others */
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

/* ---- the question ---- */

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

void cluster_identity_accept(ClusterIdentity *identity) {
        ClusterNames names = identity->asked;

        if (!names.server)
                return;
        /* A UID that the server has stopped showing is still known for the same cluster. */
        if (!names.uid[0] && identity->cached.uid &&
            judge_cluster(&identity->cached, &names) == CLUSTER_SAME) {
                free(names.uid);
                names.uid = identity->cached.uid;
                identity->cached.uid = NULL;
        }
        identity->asked = (ClusterNames){ 0 };
        cluster_names_done(&identity->cached);
        identity->cached = names;
        store_cluster_identity(identity);
}

static void decide_cluster(ClusterIdentity *identity) {
        bool is_awaited = identity->is_awaited;
        ClusterVerdict verdict = judge_cluster(&identity->cached, &identity->asked);

        identity->is_awaited = false;
        identity->client = NULL;
        kube_back_off_reset(&identity->back_off);
        if (is_awaited)
                identity->spec.on_decided(verdict, identity->spec.userdata);
        else if (verdict == CLUSTER_SAME)
                cluster_identity_accept(identity);
}

/* "" if the server does not have it. -EBADMSG: it is not a list, and does not identify the cluster.
 */
static int read_cluster_uid(const KubeResponse *response, char **ret) {
        cleanup_json json_t *list = NULL;
        const json_t *object;
        int r = json_parse_text(response->body, response->length, 0, &list, NULL);

        if (r < 0)
                return r;
        if (!json_is_array(json_object_get(list, "items")))
                return -EBADMSG;
        object = json_object_get(json_array_get(json_object_get(list, "items"), 0), "metadata");
        return text_replace(ret, strna(json_string_value(json_object_get(object, "uid"))));
}

/* A server that does not serve proves nothing. */
static bool is_answer(const KubeResponse *response) {
        unsigned status = response->status;

        return !response->error && status != 401 && status != 408 && status != 429 && status < 500;
}

static void on_kube_system(const KubeResponse *response, void *userdata) {
        ClusterIdentity *identity = userdata;
        cleanup_free char *why = NULL;
        uint64_t delay;
        int r = 0;

        identity->request = NULL;
        if (is_answer(response))
                r = response->status == 200 ? read_cluster_uid(response, &identity->asked.uid) : 0;
        if (is_answer(response) && r >= 0) {
                decide_cluster(identity);
                return;
        }
        why = kube_response_describe_error(response);
        if (identity->is_awaited && !identity->is_reported)
                log_warning("Cannot ask the API server %s whether it is of the same cluster as "
                            "before: %s; pods keep running, retrying",
                            identity->asked.server,
                            r == -EBADMSG ? "it does not reply with a list" : strna(why));
        identity->is_reported = true;
        delay = kube_back_off_next(
                &identity->back_off,
                identity->is_awaited ? kube_back_off_limits_for_status(response->status)
                                     : &kube_back_off_slow,
                now_boottime_usec(), response->retry_after_usec, back_off_random());
        (void) event_timer_arm(identity->timer, delay);
}

static int ask_for_kube_system(ClusterIdentity *identity) {
        return kube_client_start_request(identity->client,
                                         &(KubeRequestSpec){ .method = "GET",
                                                             .path = KUBE_SYSTEM,
                                                             .on_done = on_kube_system,
                                                             .userdata = identity },
                                         &identity->request, NULL);
}

static int on_question_due(sd_event_source *source, uint64_t usec, void *userdata) {
        ClusterIdentity *identity = userdata;

        if (identity->client && !identity->request && ask_for_kube_system(identity) < 0)
                (void) event_timer_arm(identity->timer, USEC_PER_SEC);
        return 0;
}

static bool are_names_new(const ClusterNames *cached, const ClusterNames *now) {
        return cached->server &&
               (!streq(cached->server, now->server) || !streq(cached->authority, now->authority));
}

int cluster_identity_is_doubtful(const ClusterIdentity *identity, const Kubeconfig *kubeconfig) {
        cleanup_with(cluster_names_done) ClusterNames now = { 0 };
        int r = name_cluster(kubeconfig, &now);

        return r < 0 ? r : are_names_new(&identity->cached, &now);
}

int cluster_identity_ask(ClusterIdentity *identity, KubeClient *client,
                         const Kubeconfig *kubeconfig) {
        const ClusterNames *cached = &identity->cached;
        int r;

        cluster_identity_cancel(identity);
        r = name_cluster(kubeconfig, &identity->asked);
        if (r < 0)
                return r;
        identity->is_awaited = are_names_new(cached, &identity->asked);
        if (!identity->is_awaited && cached->server && cached->uid[0])
                return 1;
        identity->client = client;
        (void) event_timer_arm(identity->timer, 0);
        return !identity->is_awaited;
}

void cluster_identity_cancel(ClusterIdentity *identity) {
        identity->request = kube_request_cancel(identity->request);
        identity->client = NULL;
        identity->is_awaited = identity->is_reported = false;
        kube_back_off_reset(&identity->back_off);
}

void cluster_identity_dump(const ClusterIdentity *identity, FILE *out) {
        const ClusterNames *cached = &identity->cached;

        dump_line(out, 1, "cache of cluster: %s, server %s%s",
                  cached->uid && cached->uid[0] ? cached->uid : "not known",
                  cached->server ? cached->server : "none",
                  identity->is_awaited
                          ? ", nothing of the new server is used before it has answered"
                          : "");
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
        cluster_identity_cancel(identity);
        sd_event_source_disable_unref(identity->timer);
        cluster_names_done(&identity->cached);
        cluster_names_done(&identity->asked);
        free(identity);
        return NULL;
}
