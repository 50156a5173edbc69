/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image/image-policy.h"

#include "common/base64.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/hash.h"
#include "common/json-text.h"
#include "common/text.h"

#include <fcntl.h>
#include <sys/stat.h>

enum {
        POLICY_BYTES_MAX = 4 * 1024 * 1024,
        KEY_BYTES_MAX = 64 * 1024
};

void image_policy_done(ImagePolicy *policy) {
        json_decref(policy->document);
        error_done(&policy->error);
        policy->document = NULL;
        policy->error = ERROR_NULL;
        policy->is_read = false;
}

/* ---- the file ---- */

static void read_policy_file(ImagePolicy *policy, const FileStamp *stamp) {
        cleanup_free char *text = NULL;
        size_t length;
        int r;

        image_policy_done(policy);
        r = read_file_at(AT_FDCWD, policy->path, POLICY_BYTES_MAX, &text, &length);
        if (r >= 0)
                r = signature_policy_parse(text, length, &policy->document, &policy->error);
        if (r < 0 && !policy->error.message)
                (void) error_setf(&policy->error, -r, "%s", strerror(-r));
        policy->stamp = *stamp;
        /* A temporary error, such as -ENOMEM, is not a verdict about the file. */
        policy->is_read = r >= 0 || is_file_damage(r);
}

/* 1: there is a policy; 0: there is none, and it is not required; -EKEYREJECTED. */
static int load_policy(ImagePolicy *policy, Error *reterr) {
        FileStamp stamp;
        struct stat st;

        if (stat(policy->path, &st) < 0) {
                if (errno == ENOENT && !policy->is_required)
                        return 0;
                return error_setf(reterr, EKEYREJECTED, "%s: %s", policy->path, strerror(errno));
        }
        stamp = file_stamp_of(&st);
        if (!policy->is_read || !file_stamps_match(&policy->stamp, &stamp))
                read_policy_file(policy, &stamp);
        if (policy->document)
                return 1;
        return error_setf(reterr, EKEYREJECTED, "%s: %s", policy->path,
                          strna(policy->error.message));
}

/* ---- keys ---- */

static int add_policy_key(json_t *keys, const char *name, const char *pem, Error *reterr) {
        json_t *key = json_pack("{s:s, s:s}", "name", name, "pem", pem);

        if (!key)
                return error_setf(reterr, EKEYREJECTED, "%s is not a public key in PEM", name);
        return json_array_append_new(keys, key) < 0 ? -ENOMEM : 0;
}

static int add_key_file(json_t *keys, const char *path, Error *reterr) {
        cleanup_free char *pem = NULL;
        size_t length;
        int r = read_file_at(AT_FDCWD, path, KEY_BYTES_MAX, &pem, &length);

        if (r < 0)
                return error_setf(reterr, EKEYREJECTED, "%s: %s", path, strerror(-r));
        return add_policy_key(keys, path, pem, reterr);
}

static int add_key_data(json_t *keys, const char *text, Error *reterr) {
        cleanup_free char *pem = NULL;
        size_t length;
        int r = base64_decode(text, &pem, &length);

        if (r < 0)
                return r == -ENOMEM ? r : error_setf(reterr, EKEYREJECTED, "keyData is not base64");
        return add_policy_key(keys, "keyData", pem, reterr);
}

/* A string or a list of strings. */
static int add_keys(json_t *keys, const json_t *value,
                    int (*add)(json_t *keys, const char *text, Error *reterr), Error *reterr) {
        const json_t *item;
        size_t i;

        if (json_is_string(value))
                return add(keys, json_string_value(value), reterr);
        json_array_foreach(value, i, item) {
                int r = add(keys, json_string_value(item), reterr);

                if (r < 0)
                        return r;
        }
        return 0;
}

static int read_rule_keys(const json_t *rule, json_t *keys, Error *reterr) {
        static const struct {
                const char *name;
                int (*add)(json_t *keys, const char *text, Error *reterr);
        } members[] = { { "keyPath", add_key_file },
                        { "keyPaths", add_key_file },
                        { "keyData", add_key_data },
                        { "keyDatas", add_key_data } };
        int r = 0;

        for (size_t i = 0; r >= 0 && i < N_ELEMENTS(members); i++)
                r = add_keys(keys, json_object_get(rule, members[i].name), members[i].add, reterr);
        return r;
}

/* ---- demands ---- */

static bool needs_no_key(const json_t *rule) {
        static const char *const names[] = { "fulcio",
                                             "pki",
                                             "rekorPublicKeyPath",
                                             "rekorPublicKeyPaths",
                                             "rekorPublicKeyData",
                                             "rekorPublicKeyDatas" };

        for (size_t i = 0; i < N_ELEMENTS(names); i++)
                if (json_object_get(rule, names[i]))
                        return true;
        return false;
}

static int add_sigstore_rule(const json_t *rule, const ImageOrigin *origin, const char *place,
                             json_t *requirements, Error *reterr) {
        cleanup_json json_t *keys = json_array();
        json_t *requirement;
        int r;

        if (needs_no_key(rule))
                return error_setf(reterr, EKEYREJECTED,
                                  "certificates and logs (fulcio, pki, rekor) are not supported, "
                                  "only keys");
        if (streq(origin->transport, "docker-archive"))
                return error_setf(
                        reterr, EKEYREJECTED,
                        "an archive of 'docker save' has no signatures: use an OCI layout");
        r = read_rule_keys(rule, keys, reterr);
        if (r < 0)
                return r;
        requirement = json_pack("{s:s, s:O, s:O*}", "rule", place, "keys", keys, "identity",
                                json_object_get(rule, "signedIdentity"));
        return json_array_append_new(requirements, requirement) < 0 ? -ENOMEM : 0;
}

/* The signature of the index was verified when the index was accepted. */
static int check_source_rule(const json_t *rule, const ImageOrigin *origin, Error *reterr) {
        const char *fleet = json_text(rule, "fleet");

        if (!origin->fleet)
                return error_setf(reterr, EKEYREJECTED,
                                  "the image is not one that a signed index provides for the pod");
        if (fleet && !streq(fleet, origin->fleet))
                return error_setf(reterr, EKEYREJECTED, "the index is of the fleet '%s', not '%s'",
                                  origin->fleet, fleet);
        return 0;
}

static int add_policy_rule(const json_t *rule, const ImageOrigin *origin, const char *place,
                           json_t *requirements, Error *reterr) {
        const char *type = json_text(rule, "type");

        if (streq(type, "insecureAcceptAnything"))
                return 0;
        if (streq(type, "sourceSigned"))
                return check_source_rule(rule, origin, reterr);
        if (streq(type, "sigstoreSigned"))
                return add_sigstore_rule(rule, origin, place, requirements, reterr);
        if (streq(type, "reject"))
                return error_setf(reterr, EKEYREJECTED, "reject");
        return error_setf(reterr, EKEYREJECTED,
                          "%s is not supported, only sigstoreSigned and sourceSigned", type);
}

static int add_policy_rules(const ImagePolicy *policy, const json_t *rules,
                            const ImageOrigin *origin, const char *place, json_t *requirements,
                            Error *reterr) {
        const json_t *rule;
        size_t i;

        json_array_foreach(rules, i, rule) {
                cleanup_free char *whole = text_format("%s: %s[%zu]", policy->path, place, i);
                int r;

                if (!whole)
                        return -ENOMEM;
                r = add_policy_rule(rule, origin, whole, requirements, reterr);
                if (r < 0)
                        return r == -ENOMEM ? r : error_prefixf(reterr, r, "%s", whole);
        }
        return 0;
}

/* Changes whenever something on which the verdict depends changes. */
static int set_fingerprint(json_t *demand) {
        cleanup_free char *text = json_to_text(demand, JSON_COMPACT | JSON_SORT_KEYS);
        char fingerprint[SHA256_HEX_SIZE];

        if (!text)
                return -ENOMEM;
        sha256_hex(text, strlen(text), fingerprint);
        return json_object_set_new(demand, "fingerprint", json_string(fingerprint)) < 0 ? -ENOMEM
                                                                                        : 0;
}

static int add_rules_of_aliases(const ImagePolicy *policy, const ImageOrigin *origin,
                                const char *reference, json_t *requirements, Error *reterr) {
        cleanup_json json_t *aliases = NULL;
        const char *place;
        const json_t *rules;
        int r = signature_policy_find_aliases(policy->document, origin, reference, &aliases);

        json_object_foreach(aliases, place, rules)
                if (r >= 0)
                        r = add_policy_rules(policy, rules, origin, place, requirements, reterr);
        return r;
}

static int add_rules_of_image(const ImagePolicy *policy, const ImageOrigin *origin,
                              const char *reference, json_t *requirements, Error *reterr) {
        cleanup_free char *place = NULL;
        const json_t *rules;
        int r = signature_policy_find(policy->document, origin, reference, &rules, &place);

        if (r >= 0)
                r = add_policy_rules(policy, rules, origin, place, requirements, reterr);
        return r < 0 ? r : add_rules_of_aliases(policy, origin, reference, requirements, reterr);
}

static int find_demand(ImagePolicy *policy, const ImageOrigin *origin, const char *reference,
                       json_t **ret, Error *reterr) {
        cleanup_json json_t *demand = NULL, *requirements = json_array();
        int r = load_policy(policy, reterr);

        if (r <= 0)
                return r;
        r = add_rules_of_image(policy, origin, reference, requirements, reterr);
        if (r < 0 || json_array_size(requirements) == 0)
                return r;
        demand = json_pack("{s:s, s:s, s:O}", "reference", reference, "transport",
                           origin->transport, "requirements", requirements);
        if (!demand)
                return -ENOMEM;
        r = set_fingerprint(demand);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(demand);
        return 0;
}

int image_policy_demand(ImagePolicy *policy, const ImageOrigin *origin, const char *reference,
                        json_t **ret, Error *reterr) {
        int r;

        *ret = NULL;
        r = find_demand(policy, origin, reference, ret, reterr);
        return r == -EKEYREJECTED ? error_prefixf(reterr, r, "SignatureValidationFailed") : r;
}
