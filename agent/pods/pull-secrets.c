/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pods/pull-secrets.h"

#include "common/cleanup.h"
#include "common/strv.h"

static int append_docker_config(const DataObject *secret, char ***auths) {
        static const struct {
                const char *type, *key;
        } types[] = {
                { "kubernetes.io/dockerconfigjson", ".dockerconfigjson" },
                { "kubernetes.io/dockercfg", ".dockercfg" },
        };

        for (size_t i = 0; i < N_ELEMENTS(types); i++) {
                const ObjectValue *value = data_object_find(secret, types[i].key);

                if (streq_ptr(secret->type, types[i].type) && value && value->length > 0 &&
                    strlen(value->bytes) == value->length)
                        return strv_append(auths, value->bytes);
        }
        return -EINVAL;
}

static int append_secret_name(char **names, const char *name) {
        cleanup_free char *before = *names;

        if (asprintf(names, "%s%s%s", strna(before), before ? ", " : "", name) >= 0)
                return 0;
        *names = NULL;
        return -ENOMEM;
}

int find_pull_secrets(const ObjectLookup *objects, const Pod *pod, char ***ret_documents,
                      char **ret_missing) {
        cleanup_free char *missing = NULL;

        for (size_t i = 0; i < pod->spec.image_pull_secrets.n; i++) {
                const char *name = strna(pod->spec.image_pull_secrets.items[i].name);
                const DataObject *secret = NULL;
                int r = object_lookup(objects, OBJECT_SECRET, pod->metadata.namespace, name,
                                      &secret, NULL);

                if (r >= 0)
                        r = append_docker_config(secret, ret_documents);
                if (r < 0 && r != -ENOMEM)
                        r = append_secret_name(&missing, name);
                if (r < 0)
                        return r;
        }
        *ret_missing = TAKE_PTR(missing);
        return 0;
}

void erase_pull_secrets(char ***documents) {
        strv_foreach(text, *documents)
                explicit_bzero(*text, strlen(*text));
        strv_free(*documents);
}
