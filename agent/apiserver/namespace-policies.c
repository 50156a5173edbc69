/* SPDX-License-Identifier: Apache-2.0 */
/* Watches and caches the labels of namespaces. It does not check pods. */

#include "agent/apiserver/namespace-policies.h"

#include "agent/kubeclient/reflector.h"
#include "agent/model/names.h"
#include "common/cleanup.h"
#include "common/dump.h"
#include "common/json-text.h"
#include "common/log.h"

#include <jansson.h>

enum {
        NAMESPACE_MAX_BYTES = 4 * 1024 * 1024
};

static const char namespaces_directory[] = "namespaces";

typedef struct WatchedNamespace WatchedNamespace;
struct WatchedNamespace {
        WatchedNamespace *next;
        NamespacePolicies *owner;
        char *name;
        json_t *labels;        /* the last known pod-security.kubernetes.io labels; or NULL */
        bool is_being_deleted; /* an API server creates nothing in such a namespace */
        bool is_current;       /* the server has reported it since the agent started */
        bool has_no_answer;    /* the server does not respond, so the cached labels are used */
        bool was_listed;
        char *error; /* why there is no policy; NULL: no error */
        KubeReflector *reflector;
};

struct NamespacePolicies {
        NamespacePoliciesSpec spec;
        KubeClient *client; /* NULL: none yet */
        WatchedNamespace *first;
};

/* ---- one namespace ---- */

static void watched_namespace_free(WatchedNamespace *one) {
        kube_reflector_free(one->reflector);
        json_decref(one->labels);
        free(one->name);
        free(one->error);
        free(one);
}

static void set_namespace_error(WatchedNamespace *one, const char *error) {
        free(one->error);
        one->error = error ? strdup(error) : NULL;
}

/* 0, -EBADMSG or -ENOMEM. */
static int read_namespace(WatchedNamespace *one, const char *json, size_t length) {
        cleanup_json json_t *object = NULL, *labels = json_object();
        const json_t *metadata, *all;
        const char *keys[] = { pod_security_enforce_label, pod_security_version_label };
        int r = labels ? json_parse_text(json, length, 0, &object, NULL) : -ENOMEM;

        if (r < 0)
                return r;
        metadata = json_object_get(object, "metadata");
        if (!streq(strna(json_text(metadata, "name")), one->name))
                return -EBADMSG;
        all = json_object_get(metadata, "labels");
        for (size_t i = 0; i < N_ELEMENTS(keys); i++) {
                json_t *value = json_object_get(all, keys[i]);

                if (value &&
                    (!json_is_string(value) || json_object_set(labels, keys[i], value) < 0))
                        return json_is_string(value) ? -ENOMEM : -EBADMSG;
        }
        json_decref(one->labels);
        one->labels = json_incref(labels);
        one->is_being_deleted = json_object_get(metadata, "deletionTimestamp") != NULL;
        return 0;
}

static void load_cached_namespace(WatchedNamespace *one) {
        ApiServerCache *cache = one->owner->spec.cache;
        cleanup_free char *json = NULL;
        int r = apiserver_cache_read(cache, namespaces_directory, one->name, NAMESPACE_MAX_BYTES,
                                     &json);

        if (r >= 0)
                r = read_namespace(one, json, strlen(json));
        if (r < 0 && r != -ENOENT)
                log_error("Cannot use the cached namespace %s: %s; no pod of its DaemonSets is "
                          "created before the API server answers",
                          one->name, strerror(-r));
}

static void uncache_namespace(const WatchedNamespace *one) {
        apiserver_cache_write(one->owner->spec.cache, namespaces_directory, one->name, NULL);
}

/* ---- the watch ---- */

static void notify_namespace_changed(const WatchedNamespace *one) {
        const NamespacePoliciesSpec *spec = &one->owner->spec;

        spec->on_changed(spec->userdata);
}

static void set_namespace_gone(WatchedNamespace *one) {
        set_namespace_error(one, "it does not exist");
        uncache_namespace(one);
        json_decref(one->labels);
        one->labels = NULL;
        notify_namespace_changed(one);
}

static void on_namespace_object(KubeWatchEvent change, const char *json, size_t length,
                                void *userdata) {
        WatchedNamespace *one = userdata;
        int r;

        if (change == KUBE_DELETED) {
                set_namespace_gone(one);
                return;
        }
        one->was_listed = true;
        r = read_namespace(one, json, length);
        one->is_current = r >= 0;
        set_namespace_error(one, r < 0 ? "the API server's object is not valid" : NULL);
        if (r >= 0)
                apiserver_cache_write(one->owner->spec.cache, namespaces_directory, one->name,
                                      json);
        notify_namespace_changed(one);
}

static void on_namespace_list_begin(void *userdata) {
        ((WatchedNamespace *) userdata)->was_listed = false;
}

static void on_namespace_list_end(bool is_complete, void *userdata) {
        WatchedNamespace *one = userdata;

        if (is_complete && !one->was_listed)
                set_namespace_gone(one);
}

/* An overloaded or failing server is treated like an unreachable one. */
static bool is_no_answer(unsigned status) {
        return status == 0 || status == 408 || status == 410 || status == 429 || status >= 500;
}

static void on_namespace_watch_error(const char *error, unsigned status, void *userdata) {
        WatchedNamespace *one = userdata;
        ConnectionStatus *connection = one->owner->spec.connection;
        static const char forbidden[] =
                "403 Forbidden (this node may not list namespaces; it needs the ClusterRole "
                "mainstay-node of the package)";

        if (error && status == 403)
                error = forbidden;
        connection_status_set_permission(connection, PERMISSION_NAMESPACES, error, status);
        (void) connection_status_is_unreachable(connection, error, status);
        one->has_no_answer = error && is_no_answer(status);
        if (error && !one->has_no_answer) {
                set_namespace_error(one, error);
                one->is_current = false;
        }
        notify_namespace_changed(one);
}

static int watch_namespace(WatchedNamespace *one) {
        const NamespacePolicies *owner = one->owner;

        if (!owner->client || one->reflector)
                return 0;
        return kube_reflector_new(
                owner->spec.event,
                &(KubeReflectorSpec){ .client = owner->client,
                                      .path = "/api/v1/namespaces",
                                      .field_selector = { "metadata.name", one->name },
                                      .on_object = on_namespace_object,
                                      .on_list_begin = on_namespace_list_begin,
                                      .on_list_end = on_namespace_list_end,
                                      .on_error = on_namespace_watch_error,
                                      .userdata = one },
                &one->reflector);
}

/* ---- all of them ---- */

int namespace_policies_new(const NamespacePoliciesSpec *spec, NamespacePolicies **ret) {
        NamespacePolicies *policies = calloc(1, sizeof(*policies));

        if (!policies)
                return -ENOMEM;
        policies->spec = *spec;
        *ret = policies;
        return 0;
}

static void free_watched_namespaces(NamespacePolicies *policies) {
        while (policies->first) {
                WatchedNamespace *one = policies->first;

                policies->first = one->next;
                watched_namespace_free(one);
        }
}

void namespace_policies_forget_cached(NamespacePolicies *policies) {
        free_watched_namespaces(policies);
        apiserver_cache_empty(policies->spec.cache, namespaces_directory);
}

NamespacePolicies *namespace_policies_free(NamespacePolicies *policies) {
        if (!policies)
                return NULL;
        free_watched_namespaces(policies);
        free(policies);
        return NULL;
}

void namespace_policies_set_client(NamespacePolicies *policies, KubeClient *client) {
        policies->client = client;
}

static WatchedNamespace *get_watched_namespace(NamespacePolicies *policies, const char *name) {
        WatchedNamespace *one;

        for (one = policies->first; one; one = one->next)
                if (streq(one->name, name))
                        return one;
        one = calloc(1, sizeof(*one));
        if (!one)
                return NULL;
        one->owner = policies;
        one->name = strdup(name);
        if (!one->name) {
                free(one);
                return NULL;
        }
        one->next = policies->first;
        policies->first = one;
        load_cached_namespace(one);
        return one;
}

/* Queries the client and not the reflector of one namespace, because only one reflector tries to
 * connect while the server is unreachable, and the others wait for its result. */
static bool is_server_unreachable(const NamespacePolicies *policies) {
        KubeClientState state =
                policies->client ? kube_client_state(policies->client) : (KubeClientState){ 0 };

        return state.since > 0 && !state.is_reached;
}

static bool is_cached_in_use(const WatchedNamespace *one) {
        return one->labels && (one->has_no_answer || is_server_unreachable(one->owner));
}

void namespace_policies_on_connection(const NamespacePolicies *policies) {
        for (const WatchedNamespace *one = policies->first; one; one = one->next)
                if (!one->is_current && is_cached_in_use(one)) {
                        notify_namespace_changed(one);
                        return;
                }
}

static int parse_namespace_policy(const WatchedNamespace *one, PodSecurityPolicy *ret,
                                  Error *reterr) {
        const json_t *labels = one->labels;
        int r;

        if (one->is_being_deleted)
                return error_setf(reterr, EACCES, "namespace %s is being deleted", one->name);
        r = pod_security_policy_parse(json_text(labels, pod_security_enforce_label),
                                      json_text(labels, pod_security_version_label), ret, reterr);
        return r < 0 ? error_prefixf(reterr, r, "namespace %s", one->name) : 1;
}

int namespace_policies_find(NamespacePolicies *policies, const char *namespace,
                            PodSecurityPolicy *ret, Error *reterr) {
        WatchedNamespace *one;
        int r;

        if (!is_dns_label(namespace))
                return error_setf(reterr, EINVAL, "its namespace has no valid name");
        one = get_watched_namespace(policies, namespace);
        r = one ? watch_namespace(one) : -ENOMEM;
        if (r < 0)
                return r;
        if (one->error)
                return error_setf(reterr, EACCES, "namespace %s cannot be read: %s", one->name,
                                  one->error);
        if (!one->is_current && !is_cached_in_use(one))
                return 0;
        return parse_namespace_policy(one, ret, reterr);
}

void namespace_policies_retain(NamespacePolicies *policies,
                               bool (*is_needed)(const char *namespace, void *userdata),
                               void *userdata) {
        WatchedNamespace **link = &policies->first;

        while (*link) {
                WatchedNamespace *one = *link;

                if (is_needed(one->name, userdata)) {
                        link = &one->next;
                        continue;
                }
                *link = one->next;
                uncache_namespace(one);
                watched_namespace_free(one);
        }
}

void namespace_policies_dump(const NamespacePolicies *policies, FILE *out) {
        for (const WatchedNamespace *one = policies->first; one; one = one->next) {
                const char *level = json_text(one->labels, pod_security_enforce_label);

                dump_line(out, 1, "namespace: %s, enforces %s%s%s%s", one->name,
                          !one->labels ? "an unknown level"
                          : level      ? level
                                       : "nothing",
                          one->is_current ? "" : ", from the cache",
                          one->error ? ", cannot be read: " : "", strna(one->error));
                if (one->reflector)
                        kube_reflector_dump(one->reflector, out);
        }
}
