/* SPDX-License-Identifier: Apache-2.0 */

/* The settings of a pull for mainstay-image: a memory file, because it contains passwords. */

#include "agent/image/pull-settings.h"

#include "agent/model/json-memfd.h"
#include "common/cleanup.h"
#include "common/hash.h"
#include "common/json-text.h"
#include "common/registry-name.h"
#include "common/strv.h"

static json_t *string_array_to_json(char *const *strv) {
        json_t *array = json_array();

        for (; array && strv && *strv; strv++)
                (void) json_array_append_new(array, json_string(*strv));
        return array;
}

/* An invalid document was reported with its Secret; null stands for it. */
static json_t *auth_documents_to_json(char *const *texts) {
        json_t *array = json_array();

        for (; array && texts && *texts; texts++) {
                json_t *document = json_loads(*texts, JSON_REJECT_DUPLICATES, NULL);

                (void) json_array_append_new(array, document ? document : json_null());
        }
        return array;
}

json_t *pull_secret_hashes(char *const *auths) {
        json_t *array = json_array();

        for (; array && auths && *auths; auths++) {
                char hash[SHA256_HEX_SIZE];

                sha256_hex(*auths, strlen(*auths), hash);
                (void) json_array_append_new(array, json_string(hash));
        }
        return array;
}

static json_t *registry_mirrors_to_json(const MainstayConfig *config, const char *reference) {
        cleanup_free char *registry = strndup(reference, strcspn(reference, "/"));

        for (size_t i = 0; registry && i < config->registry_mirrors.n; i++) {
                const RegistryMirrors *row = &config->registry_mirrors.items[i];

                if (registry_name_equals(row->registry, registry))
                        return string_array_to_json(row->mirrors);
        }
        return json_array();
}

/* NULL: a registry. */
static json_t *origin_to_json(const ImageOrigin *origin) {
        return origin->path ? json_pack("{s:s, s:s}", "transport", origin->transport, "path",
                                        origin->path)
                            : NULL;
}

static json_t *pull_settings_to_json(const MainstayConfig *given, const char *reference,
                                     char *const *auths, const PullDemand *demand) {
        static const MainstayConfig none = { 0 };
        const MainstayConfig *config = given ? given : &none;

        return json_pack("{s:b, s:o, s:o, s:o, s:o, s:s*, s:s*, s:s*, s:s*, s:O*, s:o*, s:O*, s:b}",
                         "progress", 1, "auths", auth_documents_to_json(auths), "authHashes",
                         pull_secret_hashes(auths), "insecureRegistries",
                         string_array_to_json(config->insecure_registries), "mirrors",
                         registry_mirrors_to_json(config, reference), "authFile",
                         config->registry_auth_file, "httpProxy", config->http_proxy, "httpsProxy",
                         config->https_proxy, "noProxy", config->no_proxy, "signaturePolicy",
                         demand->document, "origin", origin_to_json(demand->origin), "access",
                         demand->access, "offline", demand->is_offline);
}

int pull_settings_open(const MainstayConfig *config, const char *reference, char *const *auths,
                       const PullDemand *demand) {
        cleanup_json json_t *json = pull_settings_to_json(config, reference, auths, demand);

        return json_memfd_open(json, "pull");
}
