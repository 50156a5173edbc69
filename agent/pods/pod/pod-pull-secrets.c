/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pods/pod/pod-pull-secrets.h"

#include "common/cleanup.h"
#include "common/text.h"

/* mainstay-image parses the value. */
static int append_docker_config(const DataObject *secret, const char *name, PullSecretList *list,
                                Error *reterr) {
        static const struct {
                const char *type, *key;
                bool has_auths;
        } types[] = {
                { "kubernetes.io/dockerconfigjson", ".dockerconfigjson", true },
                { "kubernetes.io/dockercfg", ".dockercfg", false },
        };

        for (size_t i = 0; i < N_ELEMENTS(types); i++) {
                const ObjectValue *value = data_object_find(secret, types[i].key);

                if (!streq_ptr(secret->type, types[i].type))
                        continue;
                if (!value || value->length == 0)
                        return error_setf(reterr, EINVAL, "it has no value '%s'", types[i].key);
                if (strlen(value->bytes) != value->length)
                        return error_setf(reterr, EINVAL, "its value is not a JSON object");
                return pull_secret_list_add(list, &(PullSecret){ .name = (char *) (uintptr_t) name,
                                                                 .document = value->bytes,
                                                                 .has_auths = types[i].has_auths });
        }
        if (!secret->type)
                return error_setf(reterr, EINVAL, "it has no type, and needs '%s'", types[0].type);
        return error_setf(reterr, EINVAL, "its type is '%.64s', not '%s'", secret->type,
                          types[0].type);
}

static int append_problem(PullSecrets *secrets, const char *name, const char *cause) {
        bool is_first = !secrets->unusable;
        int r = text_appendf(&secrets->unusable, "%s%s", is_first ? "" : ", ", name);

        if (r < 0)
                return r;
        return text_appendf(&secrets->problems, "%sSecret \"%s\": %s", is_first ? "" : "; ", name,
                            cause);
}

static int add_pull_secret(const ObjectLookup *objects, const Pod *pod, const char *name,
                           PullSecrets *secrets) {
        cleanup_error Error error = ERROR_NULL;
        const DataObject *secret = NULL;
        int r = object_lookup(objects, &pod->metadata, OBJECT_SECRET, name, &secret, &error);

        /* Unlike a Secret that the API server may not have, this one will be available soon. */
        if (r == -EAGAIN && secret_is_being_opened(objects, &pod->metadata, name))
                return r;
        if (r == -ENOENT || r == -EAGAIN)
                return append_problem(secrets, name, "it does not exist");
        if (r >= 0)
                r = append_docker_config(secret, name, &secrets->list, &error);
        if (r >= 0 || r == -ENOMEM)
                return MIN(r, 0);
        return append_problem(secrets, name, error_message(&error, r));
}

int pull_secrets_find(const ObjectLookup *objects, const Pod *pod, PullSecrets *ret) {
        cleanup_with(pull_secrets_done) PullSecrets secrets = { 0 };

        for (size_t i = 0; i < pod->spec.image_pull_secrets.n; i++) {
                const char *name = strna(pod->spec.image_pull_secrets.items[i].name);
                /* An empty name, which templates leave behind, counts as none, as in the
                 * kubelet. */
                int r = name[0] ? add_pull_secret(objects, pod, name, &secrets) : 0;

                if (r < 0)
                        return r;
        }
        *ret = secrets;
        secrets = (PullSecrets){ 0 };
        return 0;
}

void pull_secrets_done(PullSecrets *secrets) {
        pull_secret_list_done(&secrets->list);
        free(secrets->unusable);
        free(secrets->problems);
        *secrets = (PullSecrets){ 0 };
}
