/* SPDX-License-Identifier: Apache-2.0 */
/* The environment variables of the spec (env, envFrom; valueFrom: configMapKeyRef, secretKeyRef,
 * fieldRef, resourceFieldRef, fileKeyRef), in the kubelet's order: envFrom, then env. Values may be
 * secret, so no message includes one. */

#include "agent/bundle/downward-api.h"
#include "agent/bundle/env-file.h"
#include "agent/bundle/environment.h"
#include "common/cleanup.h"
#include "common/strv.h"
#include "common/text.h"
#include "common/utf8.h"

#include <string.h>

typedef struct EnvVarsBuilder {
        const BundleConfig *config;
        const Pod *pod;
        const Container *container;
        VariableSet set;
        Error *reterr;
} EnvVarsBuilder;

/* A variable is text without NULs for execve(2), and UTF-8 for config.json. */
static int check_env_value(const EnvVarsBuilder *v, const DataObject *object,
                           const ObjectValue *value) {
        bool has_nul = memchr(value->bytes, '\0', value->length);

        if (!has_nul && utf8_is_text(value->bytes, value->length))
                return 0;
        return error_setf(v->reterr, BUNDLE_CONFIG_ERROR,
                          "the value of %s in %s %s/%s %s and cannot be a variable", value->key,
                          object_kind_names[object->kind], object->metadata.namespace,
                          object->metadata.name,
                          has_nul ? "contains a NUL byte" : "is not UTF-8 text");
}

/* 1, or 0 if the object is optional and does not exist. A required one that does not exist is
 * -BUNDLE_CONFIG_ERROR. */
static int find_env_object(const EnvVarsBuilder *v, ObjectKind kind, const char *name,
                           bool optional, const DataObject **ret) {
        cleanup_error Error error = ERROR_NULL;
        int r = object_lookup(&v->config->objects, &v->pod->metadata, kind, name, ret, &error);

        if (r == -ENOENT && optional)
                return 0;
        if (r == -ENOENT || r == -EAGAIN)
                return error_setf(v->reterr, r == -EAGAIN ? BUNDLE_AWAITED : BUNDLE_CONFIG_ERROR,
                                  "%s", error_message(&error, r));
        if (r < 0 && r != -ENOMEM)
                return error_setf(v->reterr, BUNDLE_CONFIG_ERROR, "%s", error_message(&error, r));
        return r < 0 ? r : 1;
}

static int add_named_value(EnvVarsBuilder *v, const char *name, const char *value) {
        int r = variable_set_put(&v->set, name, value);

        return r == -E2BIG ? too_large_environment(v->reterr) : r;
}

static int add_env_from(EnvVarsBuilder *v, ObjectKind kind, const EnvSource *source,
                        const char *prefix) {
        const DataObject *object = NULL;
        int r = find_env_object(v, kind, source->name, source->optional, &object);

        for (size_t i = 0; r >= 0 && object && i < object->values.n; i++) {
                const ObjectValue *value = &object->values.items[i];
                cleanup_free char *name = NULL;

                if (value->is_binary)
                        continue;
                if (check_env_value(v, object, value) < 0)
                        return -BUNDLE_CONFIG_ERROR;
                name = text_format("%s%s", strna(prefix), value->key);
                if (!name)
                        return -ENOMEM;
                r = add_named_value(v, name, value->bytes);
                if (r < 0)
                        return r;
        }
        return r;
}

/* Returns NULL for an optional key that does not exist. */
static int resolve_key_selector(EnvVarsBuilder *v, ObjectKind kind, const KeySelector *selector,
                                char **ret) {
        const DataObject *object;
        const ObjectValue *value;
        int r = find_env_object(v, kind, selector->name, selector->optional, &object);

        if (r <= 0)
                return r;
        value = data_object_find(object, selector->key);
        if (!value || value->is_binary) {
                if (selector->optional)
                        return 0;
                return error_setf(v->reterr, BUNDLE_CONFIG_ERROR,
                                  "couldn't find key %s in %s %s/%s", selector->key,
                                  object_kind_names[kind], object->metadata.namespace,
                                  object->metadata.name);
        }
        r = check_env_value(v, object, value);
        if (r < 0)
                return r;
        *ret = strdup(value->bytes);
        return *ret ? 0 : -ENOMEM;
}

/* NULL if the variable stays unset. */
static int resolve_env_source(EnvVarsBuilder *v, const EnvVarSource *source, char **ret) {
        if (source->config_map_key_ref)
                return resolve_key_selector(v, OBJECT_CONFIG_MAP, source->config_map_key_ref, ret);
        if (source->secret_key_ref)
                return resolve_key_selector(v, OBJECT_SECRET, source->secret_key_ref, ret);
        if (source->file_key_ref) /* in a preflight nothing runs yet, so no file has been written */
                return v->config->sandbox_pid > 0
                               ? env_file_value(v->config, v->pod, source->file_key_ref, ret,
                                                v->reterr)
                               : 0;
        if (source->resource_field_ref) {
                int r = downward_api_resource_value(v->config, v->pod, v->container,
                                                    source->resource_field_ref, ret, v->reterr);

                return r == -EINVAL ? -BUNDLE_CONFIG_ERROR : r;
        }
        if (source->field_ref) {
                int r = downward_api_field_value(v->config, v->pod, source->field_ref->field_path,
                                                 ret, v->reterr);

                return r == -EINVAL ? -BUNDLE_CONFIG_ERROR : r;
        }
        *ret = strdup(""); /* supported only by newer API servers: empty, as in the kubelet */
        return *ret ? 0 : -ENOMEM;
}

static int add_env_var(EnvVarsBuilder *v, const EnvVar *variable) {
        cleanup_free char *value = NULL;
        int r;

        if (variable->value_from)
                r = resolve_env_source(v, variable->value_from, &value);
        else
                r = expand_variables(strna(variable->value), &v->set, &value, NULL);
        if (r == -E2BIG && !variable->value_from)
                return error_setf(v->reterr, BUNDLE_CONFIG_ERROR,
                                  "the variable %s is longer than %d bytes when its references are "
                                  "expanded",
                                  variable->name, EXPANSION_MAX);
        if (r < 0 || !value)
                return r;
        return add_named_value(v, variable->name, value);
}

static int add_service_env_vars(EnvVarsBuilder *v) {
        const ServiceLookup *services = &v->config->services;
        cleanup_strv char **entries = NULL;
        int r = services->add_variables
                        ? services->add_variables(v->pod, &entries, v->reterr, services->userdata)
                        : 0;

        if (r >= 0)
                r = variable_set_put_entries(&v->set, entries);
        if (r == -E2BIG)
                return too_large_environment(v->reterr);
        return r == -EAGAIN ? -BUNDLE_AWAITED : r;
}

int container_variables(const BundleConfig *config, const Pod *pod, const Container *container,
                        VariableSet *ret, Error *reterr) {
        EnvVarsBuilder v = { config, pod, container, VARIABLE_SET_NULL, reterr };
        int r = add_service_env_vars(&v);

        for (size_t i = 0; r >= 0 && i < container->env_from.n; i++) {
                const EnvFromSource *source = &container->env_from.items[i];

                if (source->config_map_ref)
                        r = add_env_from(&v, OBJECT_CONFIG_MAP, source->config_map_ref,
                                         source->prefix);
                else if (source->secret_ref)
                        r = add_env_from(&v, OBJECT_SECRET, source->secret_ref, source->prefix);
        }
        for (size_t i = 0; r >= 0 && i < container->env.n; i++)
                r = add_env_var(&v, &container->env.items[i]);
        if (r < 0) {
                variable_set_done(&v.set);
                return r;
        }
        *ret = v.set;
        return 0;
}
