/* SPDX-License-Identifier: Apache-2.0 */

/* The document names a context, the context a cluster and a user; each is found by its name in its
 * list and decoded by its table, then all of it becomes one Kubeconfig. A user that is not ours may
 * log in as it likes. */

#include "agent/manifest/kubeconfig.h"

#include "agent/manifest/decode.h"
#include "agent/model/kubeconfig-schema.h"
#include "agent/model/names.h"
#include "common/base64.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/strv.h"

#include <errno.h>
#include <fcntl.h>
#include <strings.h>

enum {
        KUBECONFIG_BYTES_MAX = 1024 * 1024,
};

/* One of the document's lists, and what its items hold. */
typedef struct Named {
        const char *list; /* "clusters" */
        const char *key;  /* "cluster" */
        const Schema *schema;
} Named;

/* Where one of its items stands. */
typedef struct Place {
        const Named *named;
        size_t index;
        const Node *node; /* in the tree; NULL: there is none */
} Place;

/* What is read of the file, with the places it was read from for what is said later. */
typedef struct Parts {
        KubeconfigDocument document;
        KubeconfigContext context;
        KubeconfigCluster cluster;
        KubeconfigUser user;
        Place cluster_place, user_place;
} Parts;

static void parts_done(Parts *parts) {
        char *const secrets[] = { parts->user.token, parts->user.key_data };

        for (size_t i = 0; i < N_ELEMENTS(secrets); i++)
                if (secrets[i])
                        explicit_bzero(secrets[i], strlen(secrets[i]));
        schema_done(&kubeconfig_document_schema, &parts->document);
        schema_done(&kubeconfig_context_schema, &parts->context);
        schema_done(&kubeconfig_cluster_schema, &parts->cluster);
        schema_done(&kubeconfig_user_schema, &parts->user);
}

/* ---- by name ---- */

static int refuse_name(const Decoder *d, const Node *root, const Named *named, const char *name) {
        const DecodePath path = { .key = named->list };
        const Node *list = node_get(root, named->list);
        char text[EXCERPT_SIZE];

        return decode_error_at(
                d, list ? list : root, &path,
                error_setf(d->reterr, EINVAL, "has no %s '%s'", named->key, excerpt(text, name)));
}

static int decode_named(Decoder *d, const Node *root, const Named *named, const char *name,
                        void *object, Place *ret_place) {
        const DecodePath list_path = { .key = named->list };
        const Node *list = node_get(root, named->list);
        size_t n = list && list->kind == NODE_SEQUENCE ? list->n : 0;

        for (size_t i = 0; i < n; i++) {
                const Node *label = node_get(list->items[i], "name");
                const Node *node = node_get(list->items[i], named->key);
                const DecodePath item = { .parent = &list_path, .index = i };
                const DecodePath path = { .parent = &item, .key = named->key };

                if (!label || !node_is_scalar(label) || !streq(label->text, name))
                        continue;
                *ret_place = (Place){ .named = named, .index = i, .node = node };
                return node ? decode_object(d, node, named->schema, &path, object)
                            : decode_error_at(d, list->items[i], &path,
                                              error_setf(d->reterr, EINVAL, "is required"));
        }
        return refuse_name(d, root, named, name);
}

static int expect_word(const Decoder *d, const Node *root, const char *key, const char *expected) {
        const DecodePath path = { .key = key };
        const Node *value = node_get(root, key);
        char text[DESCRIPTION_SIZE];

        if (!value || node_is_empty(value) ||
            (value->kind == NODE_STRING && streq(value->text, expected)))
                return 0;
        return decode_error_at(d, value, &path,
                               error_setf(d->reterr, EINVAL, "must be %s, not %s", expected,
                                          node_describe(value, text)));
}

static int decode_parts(Decoder *d, const Node *root, Parts *parts) {
        static const Named contexts = { "contexts", "context", &kubeconfig_context_schema };
        static const Named clusters = { "clusters", "cluster", &kubeconfig_cluster_schema };
        static const Named users = { "users", "user", &kubeconfig_user_schema };
        Place unused;
        int r = expect_word(d, root, "apiVersion", "v1");

        if (r >= 0)
                r = expect_word(d, root, "kind", "Config");
        if (r >= 0)
                r = decode_object(d, root, &kubeconfig_document_schema, NULL, &parts->document);
        if (r >= 0)
                r = decode_named(d, root, &contexts, parts->document.current_context,
                                 &parts->context, &unused);
        if (r >= 0)
                r = decode_named(d, root, &clusters, parts->context.cluster, &parts->cluster,
                                 &parts->cluster_place);
        if (r >= 0 && parts->context.user)
                r = decode_named(d, root, &users, parts->context.user, &parts->user,
                                 &parts->user_place);
        return r;
}

/* ---- worked out ---- */

static int take_path(const char *directory, const char *path, char **ret) {
        if (!path)
                return 0;
        *ret = path[0] == '/' ? strdup(path) : path_join(directory, path);
        return *ret ? 0 : -ENOMEM;
}

/* "users[0].user.client-key-data: …", at its value. */
static int refuse_at(const Decoder *d, const Place *place, const char *key, int r) {
        const DecodePath list = { .key = place->named->list };
        const DecodePath item = { .parent = &list, .index = place->index };
        const DecodePath object = { .parent = &item, .key = place->named->key };
        const DecodePath path = { .parent = &object, .key = key };
        const Node *node = node_get(place->node, key);

        return decode_error_at(d, node ? node : place->node, &path, r);
}

static int take_data(const Decoder *d, const Place *place, const char *key, const char *text,
                     char **ret) {
        cleanup_free char *data = NULL;
        size_t length = 0;
        int r = text ? base64_decode(text, &data, &length) : 0;

        if (r == -ENOMEM)
                return r;
        if (r < 0)
                return refuse_at(d, place, key, error_setf(d->reterr, EINVAL, "must be base64"));
        if (text && (length == 0 || memchr(data, '\0', length))) {
                explicit_bzero(data, length);
                return refuse_at(d, place, key,
                                 error_setf(d->reterr, EINVAL, "must be PEM in base64"));
        }
        *ret = TAKE_PTR(data);
        return 0;
}

static int check_pair(const Decoder *d, const Parts *parts) {
        const KubeconfigUser *user = &parts->user;
        bool has_certificate = user->certificate || user->certificate_data;
        bool has_key = user->key || user->key_data;

        if (has_certificate == has_key)
                return 0;
        return refuse_at(d, &parts->user_place, has_key ? "client-key" : "client-certificate",
                         error_setf(d->reterr, EINVAL, "has no %s",
                                    has_key ? "client-certificate" : "client-key"));
}

static int check_cluster(const Decoder *d, const Parts *parts) {
        const KubeconfigCluster *cluster = &parts->cluster;
        const KubeconfigUser *user = &parts->user;
        bool is_plain = strncmp(cluster->server, "http:", 5) == 0;

        if (cluster->insecure && (cluster->authority || cluster->authority_data))
                return refuse_at(d, &parts->cluster_place, "insecure-skip-tls-verify",
                                 error_setf(d->reterr, EINVAL,
                                            "means nothing beside a certificate-authority"));
        if (is_plain &&
            (user->certificate || user->certificate_data || user->token || user->token_file))
                return refuse_at(
                        d, &parts->cluster_place, "server",
                        error_setf(d->reterr, EINVAL, "must be https where there are credentials"));
        return 0;
}

static int work_out_cluster(const Decoder *d, const char *directory, Parts *parts,
                            Kubeconfig *ret) {
        KubeconfigCluster *cluster = &parts->cluster;
        size_t n = strlen(cluster->server);
        int r = take_path(directory, cluster->authority, &ret->authority_file);

        while (n > 0 && cluster->server[n - 1] == '/')
                cluster->server[--n] = '\0';
        ret->server = TAKE_PTR(cluster->server);
        ret->tls_server_name = TAKE_PTR(cluster->tls_server_name);
        ret->proxy_url = TAKE_PTR(cluster->proxy_url);
        ret->insecure = cluster->insecure;
        if (r >= 0)
                r = take_data(d, &parts->cluster_place, "certificate-authority-data",
                              cluster->authority_data, &ret->authority_data);
        return r;
}

static int work_out_user(const Decoder *d, const char *directory, Parts *parts, Kubeconfig *ret) {
        KubeconfigUser *user = &parts->user;
        int r = take_path(directory, user->certificate, &ret->certificate_file);

        if (r >= 0)
                r = take_path(directory, user->key, &ret->key_file);
        if (r >= 0)
                r = take_path(directory, user->token_file, &ret->token_file);
        if (r >= 0)
                r = take_data(d, &parts->user_place, "client-certificate-data",
                              user->certificate_data, &ret->certificate_data);
        if (r >= 0)
                r = take_data(d, &parts->user_place, "client-key-data", user->key_data,
                              &ret->key_data);
        ret->token = TAKE_PTR(user->token);
        return r;
}

static int check_token(const Decoder *d, const Parts *parts) {
        const char *token = parts->user.token;

        for (const char *c = strna(token); *c; c++)
                if (*c <= ' ' || *c >= 0x7f)
                        return refuse_at(d, &parts->user_place, "token",
                                         error_setf(d->reterr, EINVAL,
                                                    "must be visible characters of ASCII"));
        return 0;
}

static int work_out(const Decoder *d, Parts *parts, Kubeconfig *ret) {
        const char *slash = strrchr(d->file, '/');
        cleanup_free char *given =
                slash ? strndup(d->file, (size_t) MAX(slash - d->file, 1)) : strdup(".");
        cleanup_free char *directory = given ? realpath(given, NULL) : NULL;
        int r;

        if (!directory)
                return given ? -errno : -ENOMEM;
        r = check_pair(d, parts);
        if (r >= 0)
                r = check_cluster(d, parts);
        if (r >= 0)
                r = check_token(d, parts);
        if (r >= 0)
                r = work_out_cluster(d, directory, parts, ret);
        if (r >= 0)
                r = work_out_user(d, directory, parts, ret);
        if (r < 0)
                return r;
        ret->path = strdup(d->file);
        ret->namespace =
                parts->context.namespace ? TAKE_PTR(parts->context.namespace) : strdup("default");
        return ret->path && ret->namespace ? 0 : -ENOMEM;
}

static int parse(Decoder *d, const char *data, size_t length, Kubeconfig *ret) {
        cleanup_with(parts_done) Parts parts = { 0 };
        Tree tree = { 0 };
        int r = tree_parse(d->file, data, length, &tree, d->reterr);

        if (r < 0)
                return r;
        if (tree.n_documents != 1 || tree.documents[0]->kind == NODE_NULL)
                r = error_setf(d->reterr, EINVAL, "%s: must hold one document, not %zu", d->file,
                               tree.n_documents != 1 ? tree.n_documents : 0);
        if (r >= 0)
                r = decode_parts(d, tree.documents[0], &parts);
        if (r >= 0)
                r = work_out(d, &parts, ret);
        tree_done(&tree);
        return r;
}

int kubeconfig_load(const char *path, Kubeconfig *ret, char ***ret_warnings, Error *reterr) {
        Decoder decoder = { .file = path, .mode = DECODE_MANIFEST, .reterr = reterr };
        cleanup_with(kubeconfig_done) Kubeconfig kubeconfig = { 0 };
        cleanup_free char *data = NULL;
        size_t length = 0;
        int r = read_file_at(AT_FDCWD, path, KUBECONFIG_BYTES_MAX, &data, &length);

        if (r < 0)
                return error_prefixf(reterr, r, "%s", path);
        r = parse(&decoder, data, length, &kubeconfig);
        explicit_bzero(data, length);
        if (r >= 0)
                r = decode_take_warnings(&decoder, ret_warnings);
        strv_free(decoder.warnings);
        if (r < 0)
                return reterr && reterr->message ? r : error_prefixf(reterr, r, "%s", path);
        *ret = kubeconfig;
        kubeconfig = (Kubeconfig){ 0 };
        return 0;
}
