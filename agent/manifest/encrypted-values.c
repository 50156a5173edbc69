/* SPDX-License-Identifier: Apache-2.0 */

/* The annotation mainstay.dev/encrypted-keys of a Secret lists the keys whose values are encrypted:
 * files of age, or credentials of systemd. No message in this file shows a value. */

#include "agent/manifest/pod-rules.h"
#include "agent/model/names.h"
#include "agent/model/own-values.h"
#include "common/age-file.h"
#include "common/base64.h"
#include "common/cleanup.h"
#include "common/hash.h"

#include <errno.h>

enum {
        CREDENTIAL_SIZE_MIN = 48 /* bytes: the ID of a key, sizes, an IV, a tag */
};

static ObjectValue *find_value(const DataObject *object, const char *key) {
        for (size_t i = 0; i < object->values.n; i++)
                if (streq(object->values.items[i].key, key))
                        return &object->values.items[i];
        return NULL;
}

/* As printed by systemd-creds: base64, possibly with line breaks. */
static bool is_credential(const ObjectValue *value) {
        cleanup_free char *data = NULL;
        size_t length = 0;

        return strlen(value->bytes) == value->length &&
               base64_decode(value->bytes, &data, &length) >= 0 && length >= CREDENTIAL_SIZE_MIN;
}

static int mark_value(const DataObject *secret, ObjectValue *value, Error *reterr) {
        if (age_is_file(value->bytes, value->length)) {
                value->seal = OBJECT_VALUE_AGE;
                return 0;
        }
        if (!is_credential(value))
                return error_setf(reterr, EINVAL,
                                  "must be a file of age or a credential of systemd, because "
                                  "the annotation %s names it",
                                  own_key_name(OWN_KEY_ENCRYPTED_KEYS));
        if (strlen("mainstay...") + strlen(secret->metadata.namespace) +
                    strlen(secret->metadata.name) + strlen(value->key) >
            SECRET_CREDENTIAL_NAME_MAX)
                return error_setf(reterr, EINVAL,
                                  "cannot be a credential of systemd: the namespace, the name and "
                                  "the key are too long for the name of one");
        value->seal = OBJECT_VALUE_CREDENTIAL;
        return 0;
}

/* The keys are included, so that each change is noticed. */
static int compute_digest(DataObject *secret) {
        Sha256 *hash = sha256_new();
        char hex[SHA256_HEX_SIZE];

        if (!hash)
                return -ENOMEM;
        for (size_t i = 0; i < secret->values.n; i++) {
                const ObjectValue *value = &secret->values.items[i];

                sha256_update(hash, value->key, strlen(value->key) + 1);
                sha256_update(hash, &value->seal, sizeof(value->seal));
                sha256_update(hash, &value->length, sizeof(value->length));
                sha256_update(hash, value->bytes, value->length);
        }
        sha256_update(hash, secret->type, strlen(secret->type));
        sha256_finish(hash, hex);
        sha256_free(hash);
        secret->sealed_digest = strdup(hex);
        return secret->sealed_digest ? 0 : -ENOMEM;
}

int secret_mark_encrypted(DataObject *secret, const char **ret_map, const char **ret_key,
                          Error *reterr) {
        const char *names = own_value_as_written(&secret->metadata, OWN_KEY_ENCRYPTED_KEYS);
        cleanup_free char *copy = names ? strdup(names) : NULL;
        char *rest = copy, *name, excerpted[EXCERPT_SIZE];

        *ret_map = "metadata";
        *ret_key = NULL;
        if (!names)
                return 0;
        if (!copy)
                return -ENOMEM;
        while ((name = strsep(&rest, ","))) {
                ObjectValue *value;
                int r;

                name += strspn(name, " ");
                name[strcspn(name, " ")] = '\0';
                value = find_value(secret, name);
                if (!value)
                        return error_setf(reterr, EINVAL,
                                          "must have the keys that the annotation %s names, "
                                          "separated by commas: there is no value '%s'",
                                          own_key_name(OWN_KEY_ENCRYPTED_KEYS),
                                          excerpt(excerpted, name));
                *ret_map = value->is_later ? "stringData" : "data";
                *ret_key = value->key;
                r = mark_value(secret, value, reterr);
                if (r < 0)
                        return r;
        }
        return compute_digest(secret);
}
