/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/bundle/volumes.h"

#include "agent/bundle/fields.h"
#include "agent/bundle/paths.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/selinux.h"

#include <fcntl.h>

/* One volume while its files are gathered. */
typedef struct Gathering {
        const BundleConfig *config;
        const Pod *pod;
        mode_t mode;
        Payload *payload;
        Error *reterr;
} Gathering;

static mode_t mode_of(const Gathering *gathering, const OptionalInt *mode) {
        return mode->is_set ? (mode_t) mode->value : gathering->mode;
}

static int add_key(const Gathering *gathering, const DataObject *object, const KeyToPath *item,
                   bool optional) {
        const ObjectValue *value = data_object_find(object, item->key);

        if (!value && optional)
                return 0;
        if (!value)
                return error_setf(gathering->reterr, ENOENT,
                                  "%s references non-existent %s key: %s",
                                  object_kind_words[object->kind],
                                  object->kind == OBJECT_SECRET ? "secret" : "config", item->key);
        return payload_add(gathering->payload, item->path, value->bytes, value->length,
                           mode_of(gathering, &item->mode));
}

static int add_object(const Gathering *gathering, ObjectKind kind,
                      const ObjectVolumeSource *source) {
        cleanup_error Error error = ERROR_NULL;
        const DataObject *object;
        int r = object_lookup(&gathering->config->objects, kind, gathering->pod->metadata.namespace,
                              source->name, &object, &error);

        if (r == -ENOENT && source->optional)
                return 0;
        if (r < 0)
                return error_setf(gathering->reterr, -r, "%s", error_message(&error, r));
        for (size_t i = 0; r >= 0 && i < source->items.n; i++)
                r = add_key(gathering, object, &source->items.items[i], source->optional);
        for (size_t i = 0; r >= 0 && source->items.n == 0 && i < object->values.n; i++) {
                const ObjectValue *value = &object->values.items[i];

                r = payload_add(gathering->payload, value->key, value->bytes, value->length,
                                gathering->mode);
        }
        return r;
}

static int add_fields(const Gathering *gathering, const DownwardAPIVolumeSource *source) {
        for (size_t i = 0; i < source->items.n; i++) {
                const DownwardAPIVolumeFile *file = &source->items.items[i];
                cleanup_free char *value = NULL;
                int r;

                if (file->field_ref)
                        value = field_value(gathering->config, gathering->pod,
                                            file->field_ref->field_path);
                else
                        value = resource_value(gathering->config, gathering->pod, NULL,
                                               file->resource_field_ref);
                r = value ? payload_add(gathering->payload, file->path, value, strlen(value),
                                        mode_of(gathering, &file->mode))
                          : -ENOMEM;
                if (r < 0)
                        return r;
        }
        return 0;
}

/* With a group that all its readers have it is for these alone. */
static mode_t token_mode(const Gathering *gathering) {
        return gathering->payload->group >= 0 ? 0600 : gathering->mode;
}

static int add_token(const Gathering *gathering, const TokenProjection *projection) {
        const TokenLookup *tokens = &gathering->config->tokens;
        const char *token = NULL;
        int r = tokens->find ? tokens->find(gathering->pod, projection, &token, gathering->reterr,
                                            tokens->userdata)
                             : error_setf(gathering->reterr, EAGAIN,
                                          "failed to fetch token: there is no API server");

        return r < 0 ? r
                     : payload_add(gathering->payload, projection->path, token, strlen(token),
                                   token_mode(gathering));
}

static int add_projected(const Gathering *gathering, const ProjectedVolumeSource *projected) {
        int r = 0;

        for (size_t i = 0; r >= 0 && i < projected->sources.n; i++) {
                const VolumeProjection *source = &projected->sources.items[i];

                if (source->config_map)
                        r = add_object(gathering, OBJECT_CONFIG_MAP, source->config_map);
                else if (source->secret)
                        r = add_object(gathering, OBJECT_SECRET, source->secret);
                else if (source->downward_api)
                        r = add_fields(gathering, source->downward_api);
                else if (source->service_account_token)
                        r = add_token(gathering, source->service_account_token);
        }
        return r;
}

static mode_t default_mode(const Volume *volume) {
        if (volume->config_map)
                return (mode_t) volume->config_map->default_mode.value;
        if (volume->secret)
                return (mode_t) volume->secret->default_mode.value;
        if (volume->downward_api)
                return (mode_t) volume->downward_api->default_mode.value;
        return (mode_t) volume->projected->default_mode.value;
}

int volume_payload(const BundleConfig *config, const Pod *pod, const Volume *volume, Payload *ret,
                   Error *reterr) {
        const OptionalInt *fs_group = &pod->spec.security_context.fs_group;
        Payload payload = { .group = fs_group->is_set ? fs_group->value : -1 };
        const Gathering gathering = { config, pod, default_mode(volume), &payload, reterr };
        int r;

        if (volume->config_map)
                r = add_object(&gathering, OBJECT_CONFIG_MAP, volume->config_map);
        else if (volume->secret)
                r = add_object(&gathering, OBJECT_SECRET, volume->secret);
        else if (volume->downward_api)
                r = add_fields(&gathering, volume->downward_api);
        else
                r = add_projected(&gathering, volume->projected);
        if (r < 0)
                payload_done(&payload);
        else
                *ret = payload;
        return r;
}

/* What comes to a volume later has the label that its users can have it by. */
static int write_payload(const BundleConfig *config, int fd, Payload *payload, bool anew) {
        cleanup_creating SelinuxCreating creating = false;
        cleanup_free char *label = NULL;

        if (config->has_se_linux && selinux_label_get(fd, &label) >= 0)
                creating = selinux_create_as(label) >= 0;
        return payload_write(fd, payload, anew);
}

static int write_volume(const BundleConfig *config, const Pod *pod, const Volume *volume, bool anew,
                        Error *reterr) {
        cleanup_free char *path = volume_path(config, pod->metadata.uid, volume);
        cleanup_with(payload_done) Payload payload = { 0 };
        cleanup_close int fd = -EBADF;
        int r;

        if (!path)
                return -ENOMEM;
        r = volume_payload(config, pod, volume, &payload, reterr);
        if (r < 0)
                return r;
        /* The way to it lies in directories that are ours alone. */
        r = mkdir_parents_at(AT_FDCWD, path, 0755);
        if (r >= 0) {
                fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
                r = fd < 0 ? -errno : write_payload(config, fd, &payload, anew);
        }
        if (r < 0)
                return error_setf(reterr, -r, "cannot write %s: %s", path, strerror(-r));
        return 0;
}

int write_volumes(const BundleConfig *config, const Pod *pod, bool anew, Error *reterr) {
        int result = 0;

        for (size_t i = 0; i < pod->spec.volumes.n; i++) {
                const Volume *volume = &pod->spec.volumes.items[i];
                Error *first = result < 0 ? NULL : reterr;
                int r;

                if (!volume_is_data(volume))
                        continue;
                r = write_volume(config, pod, volume, anew, first);
                if (r < 0 && result >= 0)
                        result = error_prefixf(reterr, r,
                                               "MountVolume.SetUp failed for volume \"%s\" ",
                                               volume->name);
        }
        return result;
}
