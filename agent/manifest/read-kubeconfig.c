/* SPDX-License-Identifier: Apache-2.0 */

/* Resolves a kubeconfig: the document names a context, and the context names a cluster and a user.
 * Each of them is found by name in its list and decoded by its table; together they become one
 * Kubeconfig. Entries that are not referenced are not validated. */

#include "agent/manifest/read-kubeconfig.h"

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

/* A list in the document, and the content of its items. */
typedef struct KubeconfigList {
        const char *list; /* "clusters" */
        const char *key;  /* "cluster" */
        const Schema *schema;
} KubeconfigList;

/* The position of an item in a list. */
typedef struct KubeconfigItem {
        const KubeconfigList *list_type;
        size_t index;
        const YamlNode *node; /* in the tree; NULL: absent */
} KubeconfigItem;

/* The parts of the file, and their positions for later messages. */
typedef struct KubeconfigParts {
        KubeconfigDocument document;
        KubeconfigContext context;
        KubeconfigCluster cluster;
        KubeconfigUser user;
        KubeconfigItem cluster_item, user_item;
} KubeconfigParts;

static void parts_done(KubeconfigParts *parts) {
        char *const secrets[] = { parts->user.token, parts->user.key_data };

        for (size_t i = 0; i < N_ELEMENTS(secrets); i++)
                if (secrets[i])
                        explicit_bzero(secrets[i], strlen(secrets[i]));
        schema_done(&kubeconfig_document_schema, &parts->document);
        schema_done(&kubeconfig_context_schema, &parts->context);
        schema_done(&kubeconfig_cluster_schema, &parts->cluster);
        schema_done(&kubeconfig_user_schema, &parts->user);
}

/* ---- lookup by name ---- */

static int refuse_unknown_kubeconfig_name(const Decoder *d, const YamlNode *root,
                                          const KubeconfigList *list_type, const char *name) {
        const DecodePath path = { .key = list_type->list };
        const YamlNode *list = yaml_node_get(root, list_type->list);
        char text[EXCERPT_SIZE];

        return decode_error_at(d, list ? list : root, &path,
                               error_setf(d->reterr, EINVAL, "does not contain %s '%s'",
                                          list_type->key, excerpt(text, name)));
}

static int decode_kubeconfig_item(Decoder *d, const YamlNode *root, const KubeconfigList *list_type,
                                  const char *name, void *object, KubeconfigItem *ret_place) {
        const DecodePath list_path = { .key = list_type->list };
        const YamlNode *list = yaml_node_get(root, list_type->list);
        size_t n = list && list->kind == YAML_NODE_SEQUENCE ? list->n : 0;

        for (size_t i = 0; i < n; i++) {
                const YamlNode *label = yaml_node_get(list->items[i], "name");
                const YamlNode *node = yaml_node_get(list->items[i], list_type->key);
                const DecodePath item = { .parent = &list_path, .index = i };
                const DecodePath path = { .parent = &item, .key = list_type->key };

                if (!label || !yaml_node_is_scalar(label) || !streq(label->text, name))
                        continue;
                *ret_place = (KubeconfigItem){ .list_type = list_type, .index = i, .node = node };
                return node ? decode_object(d, node, list_type->schema, &path, object)
                            : decode_error_at(d, list->items[i], &path,
                                              error_setf(d->reterr, EINVAL, "is required"));
        }
        return refuse_unknown_kubeconfig_name(d, root, list_type, name);
}

static int expect_kubeconfig_value(const Decoder *d, const YamlNode *root, const char *key,
                                   const char *expected) {
        const DecodePath path = { .key = key };
        const YamlNode *value = yaml_node_get(root, key);
        char text[DESCRIPTION_SIZE];

        if (!value || yaml_node_is_empty(value) ||
            (value->kind == YAML_NODE_STRING && streq(value->text, expected)))
                return 0;
        return decode_error_at(d, value, &path,
                               error_setf(d->reterr, EINVAL, "must be %s, not %s", expected,
                                          yaml_node_describe(value, text)));
}

static int decode_parts(Decoder *d, const YamlNode *root, KubeconfigParts *parts) {
        static const KubeconfigList contexts = { "contexts", "context",
                                                 &kubeconfig_context_schema };
        static const KubeconfigList clusters = { "clusters", "cluster",
                                                 &kubeconfig_cluster_schema };
        static const KubeconfigList users = { "users", "user", &kubeconfig_user_schema };
        KubeconfigItem unused;
        int r = expect_kubeconfig_value(d, root, "apiVersion", "v1");

        if (r < 0)
                return r;
        r = expect_kubeconfig_value(d, root, "kind", "Config");
        if (r < 0)
                return r;
        r = decode_object(d, root, &kubeconfig_document_schema, NULL, &parts->document);
        if (r < 0)
                return r;
        r = decode_kubeconfig_item(d, root, &contexts, parts->document.current_context,
                                   &parts->context, &unused);
        if (r < 0)
                return r;
        r = decode_kubeconfig_item(d, root, &clusters, parts->context.cluster, &parts->cluster,
                                   &parts->cluster_item);
        if (r < 0 || !parts->context.user)
                return r;
        d->hides_values = true; /* it contains tokens and keys */
        r = decode_kubeconfig_item(d, root, &users, parts->context.user, &parts->user,
                                   &parts->user_item);
        d->hides_values = false;
        return r;
}

/* ---- resolving ---- */

static int resolve_kubeconfig_path(const char *directory, const char *path, char **ret) {
        if (!path)
                return 0;
        *ret = path[0] == '/' ? strdup(path) : path_join(directory, path);
        return *ret ? 0 : -ENOMEM;
}

/* The position and the path of the value: "users[0].user.client-key-data: …". */
static int kubeconfig_error_at(const Decoder *d, const KubeconfigItem *item_position,
                               const char *key, int r) {
        const DecodePath list = { .key = item_position->list_type->list };
        const DecodePath item = { .parent = &list, .index = item_position->index };
        const DecodePath object = { .parent = &item, .key = item_position->list_type->key };
        const DecodePath path = { .parent = &object, .key = key };
        const YamlNode *node = yaml_node_get(item_position->node, key);

        return decode_error_at(d, node ? node : item_position->node, &path, r);
}

static int decode_base64_pem(const Decoder *d, const KubeconfigItem *item_position, const char *key,
                             const char *text, char **ret) {
        cleanup_free char *data = NULL;
        size_t length = 0;
        int r = text ? base64_decode(text, &data, &length) : 0;

        if (r == -ENOMEM)
                return r;
        if (r < 0)
                return kubeconfig_error_at(d, item_position, key,
                                           error_setf(d->reterr, EINVAL, "must be base64"));
        if (text && (length == 0 || memchr(data, '\0', length))) {
                explicit_bzero(data, length);
                return kubeconfig_error_at(d, item_position, key,
                                           error_setf(d->reterr, EINVAL, "must be PEM in base64"));
        }
        *ret = TAKE_PTR(data);
        return 0;
}

static int check_client_key_pair(const Decoder *d, const KubeconfigParts *parts) {
        const KubeconfigUser *user = &parts->user;
        bool has_certificate = user->certificate || user->certificate_data;
        bool has_key = user->key || user->key_data;

        if (has_certificate == has_key)
                return 0;
        return kubeconfig_error_at(d, &parts->user_item,
                                   has_key ? "client-key" : "client-certificate",
                                   error_setf(d->reterr, EINVAL, "needs %s",
                                              has_key ? "client-certificate" : "client-key"));
}

static int check_kubeconfig_cluster(const Decoder *d, const KubeconfigParts *parts) {
        const KubeconfigCluster *cluster = &parts->cluster;
        const KubeconfigUser *user = &parts->user;
        bool is_plain = strncmp(cluster->server, "http:", 5) == 0;

        if (cluster->insecure && (cluster->authority || cluster->authority_data))
                return kubeconfig_error_at(
                        d, &parts->cluster_item, "insecure-skip-tls-verify",
                        error_setf(d->reterr, EINVAL,
                                   "cannot be combined with a certificate-authority"));
        if (is_plain &&
            (user->certificate || user->certificate_data || user->token || user->token_file))
                return kubeconfig_error_at(
                        d, &parts->cluster_item, "server",
                        error_setf(d->reterr, EINVAL, "must be https where there are credentials"));
        return 0;
}

static int resolve_kubeconfig_cluster(const Decoder *d, const char *directory,
                                      KubeconfigParts *parts, Kubeconfig *ret) {
        KubeconfigCluster *cluster = &parts->cluster;
        size_t n = strlen(cluster->server);
        int r = resolve_kubeconfig_path(directory, cluster->authority, &ret->authority_file);

        while (n > 0 && cluster->server[n - 1] == '/')
                cluster->server[--n] = '\0';
        ret->server = TAKE_PTR(cluster->server);
        ret->tls_server_name = TAKE_PTR(cluster->tls_server_name);
        ret->proxy_url = TAKE_PTR(cluster->proxy_url);
        ret->insecure = cluster->insecure;
        if (r < 0)
                return r;
        return decode_base64_pem(d, &parts->cluster_item, "certificate-authority-data",
                                 cluster->authority_data, &ret->authority_data);
}

static int resolve_kubeconfig_user(const Decoder *d, const char *directory, KubeconfigParts *parts,
                                   Kubeconfig *ret) {
        KubeconfigUser *user = &parts->user;
        int r;

        ret->token = TAKE_PTR(user->token);
        r = resolve_kubeconfig_path(directory, user->certificate, &ret->certificate_file);
        if (r < 0)
                return r;
        r = resolve_kubeconfig_path(directory, user->key, &ret->key_file);
        if (r < 0)
                return r;
        r = resolve_kubeconfig_path(directory, user->token_file, &ret->token_file);
        if (r < 0)
                return r;
        r = decode_base64_pem(d, &parts->user_item, "client-certificate-data",
                              user->certificate_data, &ret->certificate_data);
        if (r < 0)
                return r;
        return decode_base64_pem(d, &parts->user_item, "client-key-data", user->key_data,
                                 &ret->key_data);
}

static int check_kubeconfig_token(const Decoder *d, const KubeconfigParts *parts) {
        const char *token = parts->user.token;

        for (const char *c = strna(token); *c; c++)
                if (*c <= ' ' || *c >= 0x7f)
                        return kubeconfig_error_at(
                                d, &parts->user_item, "token",
                                error_setf(d->reterr, EINVAL,
                                           "must be visible characters of ASCII"));
        return 0;
}

static int resolve_kubeconfig(const Decoder *d, KubeconfigParts *parts, Kubeconfig *ret) {
        const char *slash = strrchr(d->file, '/');
        cleanup_free char *given =
                slash ? strndup(d->file, (size_t) MAX(slash - d->file, 1)) : strdup(".");
        cleanup_free char *directory = given ? realpath(given, NULL) : NULL;
        int r;

        if (!directory)
                return given ? -errno : -ENOMEM;
        r = check_client_key_pair(d, parts);
        if (r < 0)
                return r;
        r = check_kubeconfig_cluster(d, parts);
        if (r < 0)
                return r;
        r = check_kubeconfig_token(d, parts);
        if (r < 0)
                return r;
        r = resolve_kubeconfig_cluster(d, directory, parts, ret);
        if (r < 0)
                return r;
        r = resolve_kubeconfig_user(d, directory, parts, ret);
        if (r < 0)
                return r;
        ret->path = strdup(d->file);
        ret->namespace =
                parts->context.namespace ? TAKE_PTR(parts->context.namespace) : strdup("default");
        return ret->path && ret->namespace ? 0 : -ENOMEM;
}

static int parse_kubeconfig(Decoder *d, const char *data, size_t length, Kubeconfig *ret) {
        cleanup_with(parts_done) KubeconfigParts parts = { 0 };
        cleanup_with(yaml_tree_done) YamlTree tree = { 0 };
        int r = yaml_tree_parse(d->file, data, length, &tree, d->reterr);

        if (r < 0)
                return r;
        if (tree.n_documents != 1 || tree.documents[0]->kind == YAML_NODE_NULL)
                return error_setf(d->reterr, EINVAL, "%s: must hold one document, not %zu", d->file,
                                  tree.n_documents != 1 ? tree.n_documents : 0);
        r = decode_parts(d, tree.documents[0], &parts);
        if (r < 0)
                return r;
        return resolve_kubeconfig(d, &parts, ret);
}

int kubeconfig_load(const char *path, Kubeconfig *ret, char ***ret_warnings, Error *reterr) {
        Decoder decoder = { .file = path, .mode = DECODE_MANIFEST, .reterr = reterr };
        cleanup_with(kubeconfig_done) Kubeconfig kubeconfig = { 0 };
        cleanup_free char *data = NULL;
        size_t length = 0;
        int r = read_file_at(AT_FDCWD, path, KUBECONFIG_BYTES_MAX, &data, &length);

        if (r < 0)
                return error_prefixf(reterr, r, "%s", path);
        r = parse_kubeconfig(&decoder, data, length, &kubeconfig);
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
