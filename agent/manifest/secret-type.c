/* SPDX-License-Identifier: Apache-2.0 */

/* Kubernetes' rules for the types of Secrets. No message of this file shows a value, nor a parser's
 * error about one. */

#include "agent/manifest/pod-rules.h"
#include "agent/model/json.h"

#include <errno.h>

#define ACCOUNT_ANNOTATION "kubernetes.io/service-account.name"

typedef struct SecretType {
        const char *type;
        const char *key;
        const char *other; /* an alternative */
        bool is_json;      /* the value must be a JSON object */
        bool is_filled;    /* an empty value counts as missing */
} SecretType;

static const SecretType secret_types[] = {
        { "kubernetes.io/dockercfg", ".dockercfg", NULL, true, false },
        { "kubernetes.io/dockerconfigjson", ".dockerconfigjson", NULL, true, false },
        { "kubernetes.io/basic-auth", "username", "password", false, false },
        { "kubernetes.io/ssh-auth", "ssh-privatekey", NULL, false, true },
        { "kubernetes.io/tls", "tls.crt", NULL, false, false },
        { "kubernetes.io/tls", "tls.key", NULL, false, false },
};

static int check_promise(const DataObject *secret, const SecretType *type, const char **ret_map,
                         const char **ret_key, Error *reterr) {
        const ObjectValue *value = data_object_find(secret, type->key);
        int r;

        if (value && value->length == 0 && type->is_filled)
                value = NULL;
        if (!value && !(type->other && data_object_find(secret, type->other)))
                return error_setf(reterr, EINVAL, "must have '%s'%s%s%s in a Secret of type %s",
                                  type->key, type->other ? " or '" : "", strna(type->other),
                                  type->other ? "'" : "", secret->type);
        if (!value || !type->is_json || value->seal != OBJECT_VALUE_CLEAR)
                return 0;
        r = is_json_object(value->bytes, value->length);
        if (r != 0)
                return MIN(r, 0);
        *ret_map = value->is_later ? "stringData" : "data";
        *ret_key = type->key;
        return error_setf(reterr, EINVAL, "must be a JSON object in a Secret of type %s",
                          secret->type);
}

static bool has_account(const StringMap *annotations) {
        for (size_t i = 0; i < annotations->n; i++)
                if (streq(annotations->items[i].key, ACCOUNT_ANNOTATION))
                        return annotations->items[i].value[0] != '\0';
        return false;
}

int secret_check_type(const DataObject *secret, const char **ret_map, const char **ret_key,
                      Error *reterr) {
        *ret_map = "metadata";
        *ret_key = NULL;
        if (streq(secret->type, "kubernetes.io/service-account-token") &&
            !has_account(&secret->metadata.annotations))
                return error_setf(reterr, EINVAL,
                                  "must have the annotation " ACCOUNT_ANNOTATION
                                  " in a Secret of type %s",
                                  secret->type);
        *ret_map = "data";
        for (size_t i = 0; i < N_ELEMENTS(secret_types); i++) {
                int r = streq(secret->type, secret_types[i].type)
                                ? check_promise(secret, &secret_types[i], ret_map, ret_key, reterr)
                                : 0;
                if (r < 0)
                        return r;
        }
        return 0;
}
