/* SPDX-License-Identifier: Apache-2.0 */
/* The references of variables and volumes, in kubectl's wording: names and keys, never values. */

#include "agent/cli/describe-references.h"

#include "agent/cli/words.h"
#include "common/json-text.h"

static const char *optional_word(const json_t *object) {
        return json_is_true(json_object_get(object, "optional")) ? "true" : "false";
}

void describe_env_from(FILE *out, const json_t *sources) {
        size_t i;
        json_t *source;

        if (json_array_size(sources) == 0)
                return;
        fputs("    Environment Variables from:\n", out);
        json_array_foreach(sources, i, source) {
                const json_t *map = json_object_get(source, "configMapRef");
                const json_t *object = map ? map : json_object_get(source, "secretRef");
                const char *prefix = json_text(source, "prefix");

                fprintf(out, "      %s\t%s", strna(json_text(object, "name")),
                        map ? "ConfigMap" : "Secret");
                if (prefix)
                        fprintf(out, " with prefix '%s'", prefix);
                fprintf(out, "\tOptional: %s\n", optional_word(object));
        }
}

void describe_value_from(FILE *out, const char *name, const json_t *source) {
        const json_t *map = json_object_get(source, "configMapKeyRef");
        const json_t *secret = json_object_get(source, "secretKeyRef");
        const json_t *file = json_object_get(source, "fileKeyRef");
        const json_t *field = json_object_get(source, "fieldRef");
        const char *version = json_text(field, "apiVersion");

        fprintf(out, "      %s:\t", name);
        if (map)
                fprintf(out, "<set to the key '%s' of config map '%s'>\tOptional: %s\n",
                        strna(json_text(map, "key")), strna(json_text(map, "name")),
                        optional_word(map));
        else if (secret)
                fprintf(out, "<set to the key '%s' in secret '%s'>\tOptional: %s\n",
                        strna(json_text(secret, "key")), strna(json_text(secret, "name")),
                        optional_word(secret));
        else if (file)
                fprintf(out, "<set to the key '%s' of file '%s' in volume '%s'>\tOptional: %s\n",
                        strna(json_text(file, "key")), strna(json_text(file, "path")),
                        strna(json_text(file, "volumeName")), optional_word(file));
        else if (field)
                fprintf(out, " (%s:%s)\n", version ? version : "v1",
                        strna(json_text(field, "fieldPath")));
        else
                fprintf(out, " (%s)\n", strna(json_text(source, "resourceFieldRef", "resource")));
}

static void write_fields(FILE *out, const json_t *items) {
        size_t i;
        json_t *item;

        fputs("    Type:\tDownwardAPI (a volume populated by information about the pod)\n"
              "    Items:\n",
              out);
        json_array_foreach(items, i, item) {
                const char *field = json_text(item, "fieldRef", "fieldPath");
                const json_t *resource = json_object_get(item, "resourceFieldRef");

                fprintf(out, "      %s -> %s\n",
                        field ? field : strna(json_text(resource, "resource")),
                        strna(json_text(item, "path")));
        }
}

static void write_sources(FILE *out, const json_t *sources) {
        size_t i;
        json_t *source;

        fputs("    Type:\tProjected (a volume that contains injected data from multiple sources)\n",
              out);
        json_array_foreach(sources, i, source) {
                const json_t *map = json_object_get(source, "configMap");
                const json_t *object = map ? map : json_object_get(source, "secret");

                if (object)
                        fprintf(out, "    %s:\t%s\n    Optional:\t%s\n",
                                map ? "ConfigMapName" : "SecretName",
                                strna(json_text(object, "name")), optional_word(object));
                else
                        fputs("    DownwardAPI:\ttrue\n", out);
        }
}

bool describe_data_volume(FILE *out, const json_t *volume) {
        const json_t *map = json_object_get(volume, "configMap");
        const json_t *secret = json_object_get(volume, "secret");
        const json_t *fields = json_object_get(volume, "downwardAPI");
        const json_t *projected = json_object_get(volume, "projected");

        if (map)
                fprintf(out,
                        "    Type:\tConfigMap (a volume populated by a ConfigMap)\n"
                        "    Name:\t%s\n"
                        "    Optional:\t%s\n",
                        strna(json_text(map, "name")), optional_word(map));
        else if (secret)
                fprintf(out,
                        "    Type:\tSecret (a volume populated by a Secret)\n"
                        "    SecretName:\t%s\n"
                        "    Optional:\t%s\n",
                        strna(json_text(secret, "secretName")), optional_word(secret));
        else if (fields)
                write_fields(out, json_object_get(fields, "items"));
        else if (projected)
                write_sources(out, json_object_get(projected, "sources"));
        return map || secret || fields || projected;
}
