/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pods/pull-secrets.h"

#include "common/base64.h"
#include "common/cleanup.h"
#include "common/json-text.h"
#include "common/strv.h"

/* As the kubelet reads an entry: "auth" is user and password with a colon between them. */
static int check_auth(const json_t *entry, const char *registry, Error *reterr) {
        const json_t *auth = json_object_get(entry, "auth");
        const char *encoded = json_string_value(auth);
        char *plain = NULL;
        size_t length = 0;
        bool has_colon;
        int r;

        if (!json_is_object(entry))
                return error_setf(reterr, EINVAL, "its entry for '%.128s' is not an object",
                                  registry);
        if (!auth || json_is_null(auth) || (encoded && !encoded[0]))
                return 0;
        r = encoded ? base64_decode_unpadded(encoded, &plain, &length) : -EINVAL;
        if (r == -ENOMEM)
                return r;
        has_colon = r >= 0 && strchr(plain, ':');
        if (plain)
                explicit_bzero(plain, length);
        free(plain);
        if (has_colon)
                return 0;
        return error_setf(reterr, EINVAL,
                          "its 'auth' for '%.128s' is not the Base64 of user:password", registry);
}

static int check_docker_config(const char *text, bool has_auths, Error *reterr) {
        cleanup_json json_t *json = NULL;
        json_t *entries, *entry;
        const char *registry;
        int r = json_parse_text(text, strlen(text), 0, &json, NULL);

        if (r == -ENOMEM)
                return r;
        if (r < 0 || !json_is_object(json))
                return error_setf(reterr, EINVAL, "its value is not a JSON object");
        entries = has_auths ? json_object_get(json, "auths") : json;
        if (!json_is_object(entries))
                return error_setf(reterr, EINVAL, "its value has no object 'auths'");
        json_object_foreach(entries, registry, entry) {
                r = check_auth(entry, registry, reterr);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int append_docker_config(const DataObject *secret, char ***auths, Error *reterr) {
        static const struct {
                const char *type, *key;
                bool has_auths;
        } types[] = {
                { "kubernetes.io/dockerconfigjson", ".dockerconfigjson", true },
                { "kubernetes.io/dockercfg", ".dockercfg", false },
        };

        for (size_t i = 0; i < N_ELEMENTS(types); i++) {
                const ObjectValue *value = data_object_find(secret, types[i].key);
                int r;

                if (!streq_ptr(secret->type, types[i].type))
                        continue;
                if (!value || value->length == 0)
                        return error_setf(reterr, EINVAL, "it has no value '%s'", types[i].key);
                if (strlen(value->bytes) != value->length)
                        return error_setf(reterr, EINVAL, "its value is not a JSON object");
                r = strv_append(auths, value->bytes);
                return r < 0 ? r : check_docker_config(value->bytes, types[i].has_auths, reterr);
        }
        if (!secret->type)
                return error_setf(reterr, EINVAL, "it has no type, and needs '%s'", types[0].type);
        return error_setf(reterr, EINVAL, "its type is '%.64s', not '%s'", secret->type,
                          types[0].type);
}

static int append_words(char **text, const char *separator, const char *words) {
        cleanup_free char *before = *text;

        if (asprintf(text, "%s%s%s", strna(before), before ? separator : "", words) >= 0)
                return 0;
        *text = NULL;
        return -ENOMEM;
}

static int append_problem(PullSecrets *secrets, const char *name, const char *cause) {
        cleanup_free char *problem = NULL;
        int r;

        if (asprintf(&problem, "Secret \"%s\": %s", name, cause) < 0) {
                problem = NULL;
                return -ENOMEM;
        }
        r = append_words(&secrets->unusable, ", ", name);
        return r < 0 ? r : append_words(&secrets->problems, "; ", problem);
}

static int add_pull_secret(const ObjectLookup *objects, const Pod *pod, const char *name,
                           PullSecrets *secrets) {
        cleanup_error Error error = ERROR_NULL;
        const DataObject *secret = NULL;
        int r = object_lookup(objects, &pod->metadata, OBJECT_SECRET, name, &secret, NULL);

        if (r >= 0)
                r = append_docker_config(secret, &secrets->documents, &error);
        if (r >= 0 || r == -ENOMEM)
                return MIN(r, 0);
        return append_problem(secrets, name, error.message ? error.message : "it does not exist");
}

int pull_secrets_find(const ObjectLookup *objects, const Pod *pod, PullSecrets *ret) {
        cleanup_with(pull_secrets_done) PullSecrets secrets = { 0 };

        for (size_t i = 0; i < pod->spec.image_pull_secrets.n; i++) {
                const char *name = strna(pod->spec.image_pull_secrets.items[i].name);
                /* An empty name, which templates leave behind, is none, as in the kubelet. */
                int r = name[0] ? add_pull_secret(objects, pod, name, &secrets) : 0;

                if (r < 0)
                        return r;
        }
        *ret = secrets;
        secrets = (PullSecrets){ 0 };
        return 0;
}

void pull_secrets_done(PullSecrets *secrets) {
        strv_foreach(text, secrets->documents)
                explicit_bzero(*text, strlen(*text));
        strv_free(secrets->documents);
        free(secrets->unusable);
        free(secrets->problems);
        *secrets = (PullSecrets){ 0 };
}
