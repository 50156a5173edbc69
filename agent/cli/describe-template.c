/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cli/describe-template.h"

#include "agent/cli/words.h"
#include "common/json-text.h"

void describe_map(const char *title, json_t *map, const char *indent, FILE *out) {
        bool is_first = true;
        const char *key;
        json_t *value;

        json_object_foreach(map, key, value) {
                if (is_first)
                        fprintf(out, "%s%s:\t%s=%s\n", indent, title, key,
                                strna(json_string_value(value)));
                else
                        fprintf(out, "%s\t%s=%s\n", indent, key, strna(json_string_value(value)));
                is_first = false;
        }
        if (is_first)
                fprintf(out, "%s%s:\t<none>\n", indent, title);
}

static void describe_template_words(const char *title, const json_t *words, FILE *out) {
        size_t i;
        json_t *word;

        if (json_array_size(words) == 0)
                return;
        fprintf(out, "    %s:\n", title);
        json_array_foreach(words, i, word)
                fprintf(out, "      %s\n", strna(json_string_value(word)));
}

static void describe_template_env(const json_t *container, FILE *out) {
        const json_t *list = json_object_get(container, "env");
        size_t i;
        json_t *variable;

        if (json_array_size(list) == 0)
                return;
        fputs("    Environment:\n", out);
        json_array_foreach(list, i, variable)
                fprintf(out, "      %s:\t%s\n", strna(json_text(variable, "name")),
                        json_object_get(variable, "valueFrom")
                                ? "<by reference>"
                                : strna(json_text(variable, "value")));
}

static void describe_template_resources(const char *title, json_t *list, FILE *out) {
        const char *key;
        json_t *value;

        if (json_object_size(list) == 0)
                return;
        fprintf(out, "    %s:\n", title);
        json_object_foreach(list, key, value)
                fprintf(out, "      %s:\t%s\n", key, strna(json_string_value(value)));
}

static void describe_template_mounts(const json_t *container, FILE *out) {
        const json_t *list = json_object_get(container, "volumeMounts");
        size_t i;
        json_t *mount;

        if (json_array_size(list) == 0)
                return;
        fputs("    Mounts:\n", out);
        json_array_foreach(list, i, mount)
                fprintf(out, "      %s from %s (%s)\n", strna(json_text(mount, "mountPath")),
                        strna(json_text(mount, "name")),
                        json_is_true(json_object_get(mount, "readOnly")) ? "ro" : "rw");
}

static void describe_template_containers(const char *title, const json_t *containers, FILE *out) {
        size_t i;
        json_t *container;

        if (json_array_size(containers) == 0)
                return;
        fprintf(out, "  %s:\n", title);
        json_array_foreach(containers, i, container) {
                fprintf(out, "   %s:\n", strna(json_text(container, "name")));
                fprintf(out, "    Image:\t%s\n", strna(json_text(container, "image")));
                describe_template_words("Command", json_object_get(container, "command"), out);
                describe_template_words("Args", json_object_get(container, "args"), out);
                describe_template_resources("Limits", json_at(container, "resources", "limits"),
                                            out);
                describe_template_resources("Requests", json_at(container, "resources", "requests"),
                                            out);
                describe_template_env(container, out);
                describe_template_mounts(container, out);
        }
}

static void describe_template_tolerations(const json_t *list, FILE *out) {
        size_t i;
        json_t *toleration;

        json_array_foreach(list, i, toleration) {
                const char *value = json_text(toleration, "value");
                const char *effect = json_text(toleration, "effect");
                const char *op = json_text(toleration, "operator");

                fprintf(out, "  %s\t%s%s%s%s%s%s\n", i == 0 ? "Tolerations:" : "",
                        strna(json_text(toleration, "key")), value ? "=" : "", strna(value),
                        effect ? ":" : "", strna(effect),
                        streq_ptr(op, "Exists") ? " op=Exists" : "");
        }
}

void describe_template(const json_t *template, FILE *out) {
        const json_t *spec = json_object_get(template, "spec");

        fputs("Pod Template:\n", out);
        describe_map("Labels", json_at(template, "metadata", "labels"), "  ", out);
        if (json_at(template, "metadata", "annotations"))
                describe_map("Annotations", json_at(template, "metadata", "annotations"), "  ",
                             out);
        describe_template_containers("Init Containers", json_object_get(spec, "initContainers"),
                                     out);
        describe_template_containers("Containers", json_object_get(spec, "containers"), out);
        if (json_object_get(spec, "nodeSelector"))
                describe_map("Node-Selectors", json_object_get(spec, "nodeSelector"), "  ", out);
        describe_template_tolerations(json_object_get(spec, "tolerations"), out);
}
