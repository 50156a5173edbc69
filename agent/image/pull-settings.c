/* SPDX-License-Identifier: Apache-2.0 */

/* The settings of a pull for mainstay-image: a memory file, because it contains passwords. */

#include "agent/image/pull-settings.h"

#include "agent/model/json-memfd.h"
#include "common/cleanup.h"
#include "common/json-text.h"
#include "common/registry-name.h"
#include "common/strv.h"

static json_t *string_array_to_json(char *const *strv) {
        json_t *array = json_array();

        for (; array && strv && *strv; strv++)
                (void) json_array_append_new(array, json_string(*strv));
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

json_t *pull_source_to_json(const MainstayConfig *config, const char *fleet,
                            const char *directory) {
        const SourceConfig *source = config ? config->source : NULL;

        return source ? json_pack("{s:s, s:s, s:s, s:s*, s:I, s:s*, s:s*, s:s*}", "url",
                                  source->url, "fleet", fleet, "directory", directory, "caFile",
                                  source->ca_file, "rate", (json_int_t) source->rate_bytes,
                                  "httpProxy", config->http_proxy, "httpsProxy",
                                  config->https_proxy, "noProxy", config->no_proxy)
                      : NULL;
}

static json_t *pull_settings_to_json(const MainstayConfig *given, const char *reference,
                                     const PullSecretList *secrets, const PullDemand *demand) {
        static const MainstayConfig none = { 0 };
        const MainstayConfig *config = given ? given : &none;

        return json_pack(
                "{s:b, s:o, s:o, s:o, s:o, s:s*, s:s*, s:s*, s:s*, s:O*, s:o*, s:O*, s:O*, "
                "s:b}",
                "progress", 1, "pullSecrets", pull_secret_list_to_json(secrets), "authHashes",
                pull_secret_list_hashes(secrets), "insecureRegistries",
                string_array_to_json(config->insecure_registries), "mirrors",
                registry_mirrors_to_json(config, reference), "authFile", config->registry_auth_file,
                "httpProxy", config->http_proxy, "httpsProxy", config->https_proxy, "noProxy",
                config->no_proxy, "signaturePolicy", demand->document, "origin",
                origin_to_json(demand->origin), "access", demand->access, "source", demand->source,
                "offline", demand->is_offline);
}

static void wipe_secret_values(const json_t *settings) {
        const json_t *secret;
        size_t i;

        json_array_foreach(json_object_get(settings, "pullSecrets"), i, secret) {
                const char *text = json_text(secret, "document");

                if (text)
                        explicit_bzero((char *) (uintptr_t) text, strlen(text));
        }
}

int pull_settings_open(const MainstayConfig *config, const char *reference,
                       const PullSecretList *secrets, const PullDemand *demand) {
        cleanup_json json_t *json = pull_settings_to_json(config, reference, secrets, demand);
        int fd = json_memfd_open(json, "pull");

        wipe_secret_values(json);
        return fd;
}
