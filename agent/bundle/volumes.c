/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/bundle/volumes.h"

#include "agent/bundle/downward-api.h"
#include "agent/bundle/nested-mounts.h"
#include "agent/bundle/pod-paths.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/selinux.h"

#include <fcntl.h>

/* One volume while its files are collected. */
typedef struct VolumePayloadBuilder {
        const BundleConfig *config;
        const Pod *pod;
        mode_t mode;
        VolumePayload *payload;
        Error *reterr;
} VolumePayloadBuilder;

static mode_t file_mode_or_default(const VolumePayloadBuilder *builder, const OptionalInt *mode) {
        return mode->is_set ? (mode_t) mode->value : builder->mode;
}

static int add_object_key_file(const VolumePayloadBuilder *builder, const DataObject *object,
                               const KeyToPath *item, bool optional) {
        const ObjectValue *value = data_object_find(object, item->key);

        if (!value && optional)
                return 0;
        if (!value)
                return error_setf(builder->reterr, ENOENT, "%s references non-existent %s key: %s",
                                  object_kind_words[object->kind],
                                  object->kind == OBJECT_SECRET ? "secret" : "config", item->key);
        return volume_payload_add(builder->payload, item->path, value->bytes, value->length,
                                  file_mode_or_default(builder, &item->mode));
}

static int add_object_files(const VolumePayloadBuilder *builder, ObjectKind kind,
                            const ObjectVolumeSource *source) {
        cleanup_error Error error = ERROR_NULL;
        const DataObject *object;
        int r = object_lookup(&builder->config->objects, &builder->pod->metadata, kind,
                              source->name, &object, &error);

        if (r == -ENOENT && source->optional)
                return 0;
        if (r < 0)
                return error_setf(builder->reterr, -r, "%s", error_message(&error, r));
        for (size_t i = 0; i < source->items.n; i++) {
                r = add_object_key_file(builder, object, &source->items.items[i], source->optional);
                if (r < 0)
                        return r;
        }
        for (size_t i = 0; source->items.n == 0 && i < object->values.n; i++) {
                const ObjectValue *value = &object->values.items[i];

                r = volume_payload_add(builder->payload, value->key, value->bytes, value->length,
                                       builder->mode);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int add_downward_api_files(const VolumePayloadBuilder *builder,
                                  const DownwardAPIVolumeSource *source) {
        for (size_t i = 0; i < source->items.n; i++) {
                const DownwardAPIVolumeFile *file = &source->items.items[i];
                cleanup_free char *value = NULL;
                int r = 0;

                if (file->field_ref)
                        r = downward_api_field_value(builder->config, builder->pod,
                                                     file->field_ref->field_path, &value,
                                                     builder->reterr);
                else if (file->resource_field_ref)
                        r = downward_api_resource_value(builder->config, builder->pod, NULL,
                                                        file->resource_field_ref, &value,
                                                        builder->reterr);
                if (r < 0)
                        return r;
                /* As in the kubelet, a source that only a newer API server supports is empty. */
                r = volume_payload_add(builder->payload, file->path, strna(value),
                                       strlen(strna(value)),
                                       file_mode_or_default(builder, &file->mode));
                if (r < 0)
                        return r;
        }
        return 0;
}

/* With fsGroup the writer adds read permission for the group; others have no permissions. */
static mode_t token_mode(const VolumePayloadBuilder *builder) {
        return builder->payload->group >= 0 ? 0600 : builder->mode;
}

/* serviceAccountToken of a projected volume. */
static int add_token_file(const VolumePayloadBuilder *builder, const TokenProjection *projection) {
        const TokenLookup *tokens = &builder->config->tokens;
        IssuedToken token = { 0 };
        int r = tokens->find ? tokens->find(builder->pod, projection, &token, builder->reterr,
                                            tokens->userdata)
                             : error_setf(builder->reterr, EAGAIN,
                                          "failed to fetch token: there is no API server");

        return r < 0 ? r
                     : volume_payload_add(builder->payload, projection->path, token.text,
                                          strlen(token.text), token_mode(builder));
}

static int add_projected_sources(const VolumePayloadBuilder *builder,
                                 const ProjectedVolumeSource *projected) {
        int r = 0;

        for (size_t i = 0; i < projected->sources.n; i++) {
                const VolumeProjection *source = &projected->sources.items[i];

                if (source->config_map)
                        r = add_object_files(builder, OBJECT_CONFIG_MAP, source->config_map);
                else if (source->secret)
                        r = add_object_files(builder, OBJECT_SECRET, source->secret);
                else if (source->downward_api)
                        r = add_downward_api_files(builder, source->downward_api);
                else if (source->service_account_token)
                        r = add_token_file(builder, source->service_account_token);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* defaultMode; a file's own mode takes precedence. */
static mode_t volume_default_mode(const Volume *volume) {
        if (volume->config_map)
                return (mode_t) volume->config_map->default_mode.value;
        if (volume->secret)
                return (mode_t) volume->secret->default_mode.value;
        if (volume->downward_api)
                return (mode_t) volume->downward_api->default_mode.value;
        return (mode_t) volume->projected->default_mode.value;
}

int build_volume_payload(const BundleConfig *config, const Pod *pod, const Volume *volume,
                         VolumePayload *ret, Error *reterr) {
        const OptionalInt *fs_group = &pod->spec.security_context.fs_group;
        VolumePayload payload = { .group = fs_group->is_set ? fs_group->value : -1 };
        const VolumePayloadBuilder builder = { config, pod, volume_default_mode(volume), &payload,
                                               reterr };
        int r;

        if (volume->config_map)
                r = add_object_files(&builder, OBJECT_CONFIG_MAP, volume->config_map);
        else if (volume->secret)
                r = add_object_files(&builder, OBJECT_SECRET, volume->secret);
        else if (volume->downward_api)
                r = add_downward_api_files(&builder, volume->downward_api);
        else
                r = add_projected_sources(&builder, volume->projected);
        if (r >= 0)
                r = nested_mount_names(pod, volume, &payload.hidden);
        if (r < 0)
                volume_payload_done(&payload);
        else
                *ret = payload;
        return r;
}

/* Files that are added to a volume later get the label of the volume. */
static int write_volume_payload(const BundleConfig *config, int fd, VolumePayload *payload,
                                bool rewrite) {
        cleanup_creating SelinuxCreating creating = false;
        cleanup_free char *label = NULL;

        if (config->has_se_linux && selinux_label_get(fd, &label) >= 0)
                creating = selinux_create_as(label) >= 0;
        return atomic_writer_write(fd, payload, rewrite);
}

/* Only root can access its parent directories. */
static int open_volume_directory(const char *path) {
        int r = mkdir_parents_at(AT_FDCWD, path, 0755), fd;

        if (r < 0)
                return r;
        fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

static int write_object_volume(const BundleConfig *config, const Pod *pod, const Volume *volume,
                               bool rewrite, Error *reterr) {
        cleanup_free char *path = volume_path(config, pod->metadata.uid, volume);
        cleanup_with(volume_payload_done) VolumePayload payload = { 0 };
        cleanup_close int fd = -EBADF;
        int r;

        if (!path)
                return -ENOMEM;
        r = build_volume_payload(config, pod, volume, &payload, reterr);
        if (r < 0)
                return r;
        fd = open_volume_directory(path);
        r = fd < 0 ? fd : write_volume_payload(config, fd, &payload, rewrite);
        if (r < 0)
                return error_setf(reterr, -r, "cannot write %s: %s", path, strerror(-r));
        return 0;
}

int write_pod_object_volumes(const BundleConfig *config, const Pod *pod, bool rewrite,
                             Error *reterr) {
        int result = 0;

        for (size_t i = 0; i < pod->spec.volumes.n; i++) {
                const Volume *volume = &pod->spec.volumes.items[i];
                Error *first = result < 0 ? NULL : reterr;
                int r;

                if (!volume_is_data(volume))
                        continue;
                r = write_object_volume(config, pod, volume, rewrite, first);
                if (r < 0 && result >= 0)
                        result = error_prefixf(reterr, r,
                                               "MountVolume.SetUp failed for volume \"%s\" ",
                                               volume->name);
                else if (r < 0 && r != -ENOENT)
                        result = r; /* the cause is not a missing object, so a retry makes sense */
        }
        return result;
}
