/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image/signature-policy.h"

#include "common/cleanup.h"
#include "common/image-reference.h"
#include "common/json-text.h"
#include "common/registry-name.h"
#include "common/strv.h"
#include "common/text.h"

#include <stdint.h>

/* ---- reading ---- */

/* The members that an object may have, and their types. */
typedef struct PolicyMember {
        const char *name;
        enum {
                MEMBER_STRING,
                MEMBER_STRINGS,
                MEMBER_OBJECT
        } type;
        bool is_key; /* exactly one of the members with this mark must exist */
} PolicyMember;

typedef struct PolicyKind {
        const char *name;
        const PolicyMember *members;
        size_t n_members;
        bool needs_key;
} PolicyKind;

#define KIND(name, members, needs_key) \
        { name, members, N_ELEMENTS(members), needs_key }

static const PolicyMember no_members[] = { { "type", MEMBER_STRING, false } };
static const PolicyMember gpg_members[] = {
        { "type", MEMBER_STRING, false },   { "keyType", MEMBER_STRING, false },
        { "keyPath", MEMBER_STRING, true }, { "keyPaths", MEMBER_STRINGS, true },
        { "keyData", MEMBER_STRING, true }, { "signedIdentity", MEMBER_OBJECT, false },
};
static const PolicyMember sigstore_members[] = {
        { "type", MEMBER_STRING, false },
        { "keyPath", MEMBER_STRING, true },
        { "keyPaths", MEMBER_STRINGS, true },
        { "keyData", MEMBER_STRING, true },
        { "keyDatas", MEMBER_STRINGS, true },
        { "fulcio", MEMBER_OBJECT, true },
        { "pki", MEMBER_OBJECT, true },
        { "rekorPublicKeyPath", MEMBER_STRING, false },
        { "rekorPublicKeyPaths", MEMBER_STRINGS, false },
        { "rekorPublicKeyData", MEMBER_STRING, false },
        { "rekorPublicKeyDatas", MEMBER_STRINGS, false },
        { "signedIdentity", MEMBER_OBJECT, false },
};
/* Not in containers-policy.json(5): other programs refuse a policy that contains it. */
static const PolicyMember source_members[] = { { "type", MEMBER_STRING, false },
                                               { "fleet", MEMBER_STRING, false } };
static const PolicyKind requirement_kinds[] = {
        KIND("sourceSigned", source_members, false),
        KIND("insecureAcceptAnything", no_members, false),
        KIND("reject", no_members, false),
        KIND("signedBy", gpg_members, true),
        KIND("signedBaseLayer", no_members, false),
        KIND("sigstoreSigned", sigstore_members, true),
};

/* All members that are marked as a key are required here. */
static const PolicyMember reference_members[] = { { "type", MEMBER_STRING, false },
                                                  { "dockerReference", MEMBER_STRING, true } };
static const PolicyMember repository_members[] = { { "type", MEMBER_STRING, false },
                                                   { "dockerRepository", MEMBER_STRING, true } };
static const PolicyMember remap_members[] = { { "type", MEMBER_STRING, false },
                                              { "prefix", MEMBER_STRING, false },
                                              { "signedPrefix", MEMBER_STRING, false } };
static const PolicyKind identity_kinds[] = {
        KIND("matchExact", no_members, false),
        KIND("matchRepoDigestOrExact", no_members, false),
        KIND("matchRepository", no_members, false),
        KIND("exactReference", reference_members, true),
        KIND("exactRepository", repository_members, true),
        KIND("remapIdentity", remap_members, false),
};

static const char *get_policy_string(const json_t *object, const char *key) {
        return json_text(object, key);
}

static const PolicyKind *find_policy_kind(const char *name, const PolicyKind *kinds, size_t n) {
        for (size_t i = 0; name && i < n; i++)
                if (streq(kinds[i].name, name))
                        return &kinds[i];
        return NULL;
}

static const PolicyMember *find_policy_member(const PolicyKind *kind, const char *name) {
        for (size_t i = 0; i < kind->n_members; i++)
                if (streq(kind->members[i].name, name))
                        return &kind->members[i];
        return NULL;
}

static int check_member_type(const json_t *value, const PolicyMember *member, Error *reterr) {
        const json_t *item;
        size_t i;

        if (member->type == MEMBER_STRING &&
            (!json_is_string(value) || !json_string_value(value)[0]))
                return error_setf(reterr, EINVAL, "%s must be a string", member->name);
        if (member->type == MEMBER_OBJECT && !json_is_object(value))
                return error_setf(reterr, EINVAL, "%s must be an object", member->name);
        if (member->type != MEMBER_STRINGS)
                return 0;
        if (json_array_size(value) == 0)
                return error_setf(reterr, EINVAL, "%s must be a list that is not empty",
                                  member->name);
        json_array_foreach(value, i, item)
                if (!json_is_string(item) || !json_string_value(item)[0])
                        return error_setf(reterr, EINVAL, "%s[%zu] must be a string", member->name,
                                          i);
        return 0;
}

static int check_key_members(const PolicyKind *kind, unsigned n_keys, Error *reterr) {
        cleanup_free char *list = NULL;

        if (!kind->needs_key || n_keys == 1)
                return 0;
        for (size_t i = 0; i < kind->n_members; i++) {
                char *before = list;

                if (!kind->members[i].is_key)
                        continue;
                list = text_format("%s%s%s", strna(before), before ? ", " : "",
                                   kind->members[i].name);
                free(before);
        }
        return error_setf(reterr, EINVAL, "%s needs exactly one of %s", kind->name, strna(list));
}

/* An object whose "type" is one of the kinds, with the members of that kind. */
static int check_policy_object(const json_t *object, const PolicyKind *kinds, size_t n_kinds,
                               Error *reterr) {
        const char *type = get_policy_string(object, "type"), *key;
        const PolicyKind *kind = find_policy_kind(type, kinds, n_kinds);
        const json_t *value;
        unsigned n_keys = 0;
        int r;

        if (!json_is_object(object))
                return error_setf(reterr, EINVAL, "must be an object");
        if (!kind)
                return type ? error_setf(reterr, EINVAL, "type: '%.64s' is unknown", type)
                            : error_setf(reterr, EINVAL, "type is missing");
        json_object_foreach((json_t *) (uintptr_t) object, key, value) {
                const PolicyMember *member = find_policy_member(kind, key);

                if (!member)
                        return error_setf(reterr, EINVAL, "'%.64s' is not a member of %s", key,
                                          kind->name);
                r = check_member_type(value, member, reterr);
                if (r < 0)
                        return r;
                n_keys += member->is_key;
        }
        return check_key_members(kind, n_keys, reterr);
}

static int check_identity_prefix(const json_t *identity, const char *key, Error *reterr) {
        const char *prefix = get_policy_string(identity, key);
        cleanup_free char *normal = NULL;
        int r;

        if (!prefix)
                return error_setf(reterr, EINVAL, "remapIdentity needs prefix and signedPrefix");
        r = image_reference_normalise_prefix(prefix, &normal, reterr);
        return r < 0 ? error_prefixf(reterr, r, "%s", key) : 0;
}

static int check_identity_name(const json_t *identity, const char *key, bool is_whole,
                               Error *reterr) {
        cleanup_with(image_reference_done) ImageReference name = { 0 };
        int r = image_reference_parse(get_policy_string(identity, key), &name, reterr);

        if (r >= 0 && is_whole != (name.tag || name.digest))
                r = error_setf(reterr, EINVAL, "must have %s",
                               is_whole ? "a tag or a digest" : "neither a tag nor a digest");
        return r < 0 ? error_prefixf(reterr, r, "%s", key) : 0;
}

/* Checks the names in it, which are compared like image names. */
static int check_identity_names(const json_t *identity, Error *reterr) {
        const char *type = get_policy_string(identity, "type");
        int r;

        if (streq(type, "exactReference"))
                return check_identity_name(identity, "dockerReference", true, reterr);
        if (streq(type, "exactRepository"))
                return check_identity_name(identity, "dockerRepository", false, reterr);
        if (!streq(type, "remapIdentity"))
                return 0;
        r = check_identity_prefix(identity, "prefix", reterr);
        return r < 0 ? r : check_identity_prefix(identity, "signedPrefix", reterr);
}

static int check_signed_identity(const json_t *identity, Error *reterr) {
        int r;

        if (!identity)
                return 0;
        r = check_policy_object(identity, identity_kinds, N_ELEMENTS(identity_kinds), reterr);
        if (r >= 0)
                r = check_identity_names(identity, reterr);
        return r < 0 ? error_prefixf(reterr, r, "signedIdentity") : 0;
}

static int check_policy_rule(const json_t *rule, Error *reterr) {
        int r = check_policy_object(rule, requirement_kinds, N_ELEMENTS(requirement_kinds), reterr);

        return r < 0 ? r : check_signed_identity(json_object_get(rule, "signedIdentity"), reterr);
}

static int check_rule_list(const json_t *list, Error *reterr) {
        const json_t *item;
        size_t i;

        if (!json_is_array(list))
                return error_setf(reterr, EINVAL, "must be a list of requirements");
        if (json_array_size(list) == 0)
                return error_setf(reterr, EINVAL, "must have at least one requirement");
        json_array_foreach(list, i, item) {
                int r = check_policy_rule(item, reterr);

                if (r < 0)
                        return error_prefixf(reterr, r, "[%zu]", i);
        }
        return 0;
}

/* Paths are compared with those of archives, which are absolute. */
static int check_scope(const char *transport, const char *scope, Error *reterr) {
        bool is_path = streq(transport, "oci") || streq(transport, "oci-archive") ||
                       streq(transport, "dir");

        if (!scope[0])
                return 0;
        if (streq(transport, "docker-archive"))
                return error_setf(reterr, EINVAL, "the only scope of docker-archive is \"\"");
        if (is_path && (scope[0] != '/' || streq(scope, "/")))
                return error_setf(reterr, EINVAL, "must be an absolute path, and not '/'");
        return 0;
}

/* The transports in containers-transports(5), because a policy may be shared with other
 * programs. */
static bool is_known_transport(const char *name) {
        return TEXT_IS_ANY_OF(name, "atomic", "containers-storage", "dir", "docker",
                              "docker-archive", "docker-daemon", "oci", "oci-archive", "ostree",
                              "sif", "tarball");
}

static int check_transport(const char *name, const json_t *scopes, Error *reterr) {
        const json_t *list;
        const char *scope;

        if (!is_known_transport(name))
                return error_setf(reterr, EINVAL,
                                  "transports.%.64s: is unknown; images here come from docker, "
                                  "docker-archive and oci-archive",
                                  name);
        if (!json_is_object(scopes))
                return error_setf(reterr, EINVAL, "transports.%.64s: must be an object", name);
        json_object_foreach((json_t *) (uintptr_t) scopes, scope, list) {
                int r = check_scope(name, scope, reterr);

                if (r < 0)
                        return error_prefixf(reterr, r, "transports.%.64s.\"%.256s\"", name, scope);
                r = check_rule_list(list, reterr);
                if (r < 0)
                        return error_prefixf(reterr, r, "transports.%.64s.\"%.256s\"", name, scope);
        }
        return 0;
}

static int check_transports(const json_t *transports, Error *reterr) {
        const json_t *scopes;
        const char *name;

        if (transports && !json_is_object(transports))
                return error_setf(reterr, EINVAL, "transports must be an object");
        json_object_foreach((json_t *) (uintptr_t) transports, name, scopes) {
                int r = check_transport(name, scopes, reterr);

                if (r < 0)
                        return r;
        }
        return 0;
}

static int check_policy(const json_t *policy, Error *reterr) {
        const json_t *list = json_object_get(policy, "default");
        const json_t *value;
        const char *key;
        int r;

        if (!json_is_object(policy))
                return error_setf(reterr, EINVAL, "must be an object");
        json_object_foreach((json_t *) (uintptr_t) policy, key, value)
                if (!streq(key, "default") && !streq(key, "transports"))
                        return error_setf(reterr, EINVAL, "'%.64s' is unknown", key);
        if (!list)
                return error_setf(reterr, EINVAL, "default is missing");
        r = check_rule_list(list, reterr);
        if (r < 0)
                return error_prefixf(reterr, r, "default");
        return check_transports(json_object_get(policy, "transports"), reterr);
}

/* "*.example.com": all hosts below a domain, at any port. */
static int normalise_domain_scope(const char *scope, char **ret, Error *reterr) {
        cleanup_free char *host = NULL, *normal = NULL;
        int r;

        if (strncmp(scope, "*.", 2) != 0 || strpbrk(scope + 1, "*/:["))
                return error_setf(reterr, EINVAL, "'*' is followed by a domain: *.example.com");
        host = text_format("x%s", scope + 1);
        if (!host)
                return -ENOMEM;
        r = registry_name_normalise(host, &normal, reterr);
        if (r < 0)
                return r;
        normal[0] = '*';
        *ret = TAKE_PTR(normal);
        return 0;
}

/* "example.com/app:1" and "example.com/app@sha256:…". */
static int normalise_image_scope(const char *scope, char **ret, Error *reterr) {
        cleanup_with(image_reference_done) ImageReference image = { 0 };
        int r = image_reference_parse(scope, &image, reterr);

        if (r < 0)
                return r;
        if (image.digest) /* a tag next to a digest has no meaning */
                free(TAKE_PTR(image.tag));
        *ret = image_reference_format(&image);
        return *ret ? 0 : -ENOMEM;
}

static int normalise_registry_scope(const char *scope, char **ret, Error *reterr) {
        const char *slash = strchr(scope, '/');
        const char *suffix = slash ? strpbrk(slash, ":@") : NULL;
        cleanup_free char *name = NULL, *prefix = NULL;
        int r;

        if (strchr(scope, '*'))
                return normalise_domain_scope(scope, ret, reterr);
        name = strndup(scope, suffix ? (size_t) (suffix - scope) : strlen(scope));
        if (!name)
                return -ENOMEM;
        r = image_reference_normalise_prefix(name, &prefix, reterr);
        if (r < 0)
                return r;
        if (suffix)
                return normalise_image_scope(scope, ret, reterr);
        *ret = TAKE_PTR(prefix);
        return 0;
}

static int add_registry_scope(json_t *normalised, const char *scope, json_t *list, Error *reterr) {
        cleanup_free char *normal = NULL;
        int r = scope[0] ? normalise_registry_scope(scope, &normal, reterr) : 0;

        if (r < 0)
                return r;
        if (json_object_get(normalised, normal ? normal : scope))
                return error_setf(reterr, EINVAL, "occurs twice, in two spellings of \"%.256s\"",
                                  normal);
        return json_object_set(normalised, normal ? normal : scope, list) < 0 ? -ENOMEM : 0;
}

/* Scopes of registries are found by the normalised names of images. */
static int normalise_registry_scopes(json_t *policy, Error *reterr) {
        json_t *transports = json_object_get(policy, "transports"), *list;
        json_t *scopes = json_object_get(transports, "docker");
        cleanup_json json_t *normalised = scopes ? json_object() : NULL;
        const char *scope;

        json_object_foreach(scopes, scope, list) {
                int r = add_registry_scope(normalised, scope, list, reterr);

                if (r < 0)
                        return error_prefixf(reterr, r, "transports.docker.\"%.256s\"", scope);
        }
        return scopes && json_object_set(transports, "docker", normalised) < 0 ? -ENOMEM : 0;
}

int signature_policy_parse(const char *text, size_t length, json_t **ret, Error *reterr) {
        cleanup_json json_t *policy = NULL;
        json_error_t error;
        int r;

        r = json_parse_text(text, length, JSON_REJECT_DUPLICATES, &policy, &error);
        if (r == -ENOMEM)
                return r;
        if (r < 0)
                return error_setf(reterr, EINVAL, "line %d, column %d: %s", error.line,
                                  error.column, error.text);
        r = check_policy(policy, reterr);
        if (r < 0)
                return r;
        r = normalise_registry_scopes(policy, reterr);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(policy);
        return 0;
}

/* ---- finding ---- */

static int add_parents(char ***scopes, const char *name) {
        cleanup_free char *copy = strdup(name);
        char *slash;

        if (!copy)
                return -ENOMEM;
        do {
                if (strv_append(scopes, copy) < 0)
                        return -ENOMEM;
                slash = strrchr(copy, '/');
                if (slash)
                        *slash = '\0';
        } while (slash && copy[0]);
        return 0;
}

static int add_domains(char ***scopes, const char *name) {
        char host[256];
        const char *dot = host;

        (void) snprintf(host, sizeof(host), "%.*s", (int) MIN(strcspn(name, "/:"), (size_t) 255),
                        name);
        while ((dot = strchr(dot, '.'))) {
                dot++;
                if (strv_appendf(scopes, "*.%s", dot) < 0)
                        return -ENOMEM;
        }
        return 0;
}

/* "docker.io/busybox" also refers to the image docker.io/library/busybox. */
static int add_short_name(char ***scopes, const ImageReference *image) {
        static const char library[] = "library/";

        if (!streq(image->registry, "docker.io") ||
            strncmp(image->repository, library, strlen(library)) != 0)
                return 0;
        return strv_appendf(scopes, "docker.io/%s", image->repository + strlen(library));
}

/* All scopes except "*.example.com". */
static int add_name_scopes(const ImageReference *image, char ***scopes) {
        cleanup_free char *name = text_format("%s/%s", image->registry, image->repository);

        if (!name)
                return -ENOMEM;
        if (image->digest ? strv_appendf(scopes, "%s@%s", name, image->digest) < 0
                          : strv_appendf(scopes, "%s:%s", name, strna(image->tag)) < 0)
                return -ENOMEM;
        return add_short_name(scopes, image) < 0 ? -ENOMEM : add_parents(scopes, name);
}

static int find_registry_scopes(const char *reference, char ***scopes) {
        cleanup_with(image_reference_done) ImageReference image = { 0 };
        int r = image_reference_parse(reference, &image, NULL);

        if (r >= 0)
                r = add_name_scopes(&image, scopes);
        return r < 0 ? r : add_domains(scopes, image.registry);
}

/* "/srv/app.tar:example.com/app:1", the image in any spelling. */
static const char *find_archived_image_scope(const json_t *lists, const char *path,
                                             const char *reference) {
        const json_t *list;
        const char *scope;
        size_t n = strlen(path);

        json_object_foreach((json_t *) (uintptr_t) lists, scope, list)
                if (strncmp(scope, path, n) == 0 && scope[n] == ':' &&
                    image_reference_equals(scope + n + 1, reference))
                        return scope;
        return NULL;
}

static int find_archive_scopes(const json_t *lists, const char *path, const char *reference,
                               char ***scopes) {
        const char *scope = find_archived_image_scope(lists, path, reference);

        if (scope && strv_append(scopes, scope) < 0)
                return -ENOMEM;
        return add_parents(scopes, path);
}

/* The scopes of an image, the most specific one first; "" is the transport's default. */
static int find_scopes(const json_t *lists, const ImageOrigin *origin, const char *reference,
                       char ***scopes) {
        int r = 0;

        if (streq(origin->transport, "docker"))
                r = find_registry_scopes(reference, scopes);
        else if (streq(origin->transport, "oci-archive"))
                r = find_archive_scopes(lists, strna(origin->path), reference, scopes);
        return r < 0 ? r : strv_append(scopes, "");
}

int signature_policy_find(const json_t *policy, const ImageOrigin *origin, const char *reference,
                          const json_t **ret_requirements, char **ret_place) {
        const json_t *lists =
                json_object_get(json_object_get(policy, "transports"), origin->transport);
        cleanup_strv char **scopes = NULL;
        int r = find_scopes(lists, origin, reference, &scopes);

        if (r < 0)
                return r;
        strv_foreach(scope, scopes) {
                *ret_requirements = json_object_get(lists, *scope);
                if (!*ret_requirements)
                        continue;
                *ret_place = text_format("transports.%s.\"%s\"", origin->transport, *scope);
                return *ret_place ? 0 : -ENOMEM;
        }
        *ret_requirements = json_object_get(policy, "default");
        *ret_place = strdup("default");
        return *ret_place ? 0 : -ENOMEM;
}

/* ---- other names of a server ---- */

/* "80" if there is no port or the port of https; "" for 80; NULL for any other port. */
static const char *plain_port_alias(const char *port) {
        if (!port[0] || streq(port, "443"))
                return "80";
        return streq(port, "80") ? "" : NULL;
}

static int append_registry(char ***registries, const char *host, const char *port) {
        cleanup_free char *text = NULL, *normal = NULL;
        int r;

        if (!port)
                return 0;
        text = text_format("%s%s%s", host, port[0] ? ":" : "", port);
        if (!text)
                return -ENOMEM;
        r = registry_name_normalise(text, &normal, NULL);
        return r < 0 ? r : strv_append(registries, normal);
}

/* The registry's names, including its own. */
static int list_registry_names(const char *registry, char ***ret) {
        static const char *const loopback[] = { "localhost", "127.0.0.1", "[::1]" };
        const char *bracket = strchr(registry, ']');
        const char *colon = strchr(bracket ? bracket : registry, ':'),
                   *port = colon ? colon + 1 : "";
        cleanup_free char *host =
                strndup(registry, colon ? (size_t) (colon - registry) : strlen(registry));
        int r = host ? append_registry(ret, host, plain_port_alias(port)) : -ENOMEM;

        for (size_t i = 0; r >= 0 && registry_is_loopback(registry) && i < N_ELEMENTS(loopback);
             i++) {
                r = append_registry(ret, loopback[i], port);
                if (r >= 0)
                        r = append_registry(ret, loopback[i], plain_port_alias(port));
        }
        return r;
}

static int add_alias_rules(const json_t *lists, const ImageReference *image, json_t *rules) {
        cleanup_strv char **scopes = NULL;
        cleanup_free char *place = NULL;

        if (add_name_scopes(image, &scopes) < 0)
                return -ENOMEM;
        strv_foreach(scope, scopes) {
                json_t *list = json_object_get(lists, *scope);

                if (!list)
                        continue;
                place = text_format("transports.docker.\"%s\"", *scope);
                if (!place)
                        return -ENOMEM;
                return json_object_set(rules, place, list) < 0 ? -ENOMEM : 0;
        }
        return 0;
}

int signature_policy_find_aliases(const json_t *policy, const ImageOrigin *origin,
                                  const char *reference, json_t **ret) {
        cleanup_with(image_reference_done) ImageReference image = { 0 };
        const json_t *lists = json_object_get(json_object_get(policy, "transports"), "docker");
        cleanup_json json_t *rules = json_object();
        cleanup_strv char **registries = NULL;
        cleanup_free char *own = NULL;
        int r = rules ? 0 : -ENOMEM;

        if (r >= 0 && streq(origin->transport, "docker")) {
                r = image_reference_parse(reference, &image, NULL);
                own = TAKE_PTR(image.registry);
                if (r >= 0)
                        r = list_registry_names(own, &registries);
        }
        strv_foreach(registry, registries) {
                if (r < 0)
                        break;
                image.registry = *registry;
                if (!streq(*registry, own))
                        r = add_alias_rules(lists, &image, rules);
                image.registry = NULL;
        }
        if (r >= 0)
                *ret = TAKE_PTR(rules);
        return r;
}
