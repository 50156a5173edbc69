/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/bundle/image-volumes.h"

#include "agent/bundle/mount-list.h"
#include "agent/bundle/pod-paths.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/strv.h"
#include "common/text.h"

#include <fcntl.h>

enum {
        DIGESTS_MAX = 1024 * 1024, /* bytes of the file */
};

static bool is_image_volume_mounted(const Container *container, const Volume *volume) {
        for (size_t i = 0; volume->image && i < container->volume_mounts.n; i++)
                if (streq(container->volume_mounts.items[i].name, volume->name))
                        return true;
        return false;
}

char *image_volume_path(const RuntimeSpecInput *input, const Volume *volume) {
        cleanup_free char *bundle = container_bundle_dir(input->config, input->pod->metadata.uid,
                                                         input->container->name, input->attempt);

        return bundle ? text_format("%s/images/%s", bundle, volume->name) : NULL;
}

/* The layers are shared by all containers, so the label of one container can be set only on an
 * overlay. An overlay needs at least two layers, so the second one is empty. */
static void put_labelled_layer(FILE *out, const Image *image, const char *target,
                               const char *directory, const char *users, const char *label) {
        (void) fprintf(out, "none %s.empty tmpfs mode=0755,size=4k 0 0\n", target);
        fstab_put_layers(out, image, directory, users);
        (void) fprintf(out, "overlay %s overlay lowerdir=", target);
        fstab_put_lower(out, image, directory, users);
        (void) fprintf(out, ":%s.empty", target);
        fstab_put_context(out, label);
}

/* A single layer is mounted with a bind mount; an image without layers is an empty directory. */
static int put_image_volume_layers(FILE *out, const RuntimeSpecInput *input, const Image *image,
                                   const Volume *volume, const char *target) {
        char *const *layers = image->layers;
        const char *users = input->users, *label = input->labels.file;
        const char *first = layers ? layers[0] : NULL;
        cleanup_free char *directory = text_format("%s.layers", target);

        if (!directory)
                return -ENOMEM;
        if (!first) {
                (void) fprintf(out, "none %s tmpfs mode=0755,size=4k", target);
                fstab_put_context(out, label);
        } else if (!layers[1] && label) {
                put_labelled_layer(out, image, target, directory, users, label);
        } else if (!layers[1]) {
                (void) fprintf(out, "%s %s none bind,private", first, target);
                fstab_put_users(out, users);
        } else {
                fstab_put_layers(out, image, directory, users);
                (void) fprintf(out, "overlay %s overlay lowerdir=", target);
                fstab_put_lower(out, image, directory, users);
                fstab_put_context(out, label);
        }
        (void) fprintf(out, ",%s,x-mainstay.volume=%s 0 0\n", IMAGE_VOLUME_OPTIONS, volume->name);
        return 0;
}

static int put_image_volume(FILE *out, const RuntimeSpecInput *input, size_t i, Error *reterr) {
        const Volume *volume = &input->pod->spec.volumes.items[i];
        cleanup_free char *target = image_volume_path(input, volume);
        const Image *image = input->config->volume_images ? input->config->volume_images[i] : NULL;

        if (!target)
                return -ENOMEM;
        if (!image)
                return error_setf(reterr, EINVAL, "the image of volume \"%s\" is not available",
                                  volume->name);
        return put_image_volume_layers(out, input, image, volume, target);
}

/* The image of the pod's nth volume, if the container mounts it. */
static const Image *mounted_volume_image(const RuntimeSpecInput *input, size_t i) {
        const Volume *volume = &input->pod->spec.volumes.items[i];

        return input->config->volume_images && is_image_volume_mounted(input->container, volume)
                       ? input->config->volume_images[i]
                       : NULL;
}

int image_volumes_digests(const RuntimeSpecInput *input, char **ret) {
        cleanup_free char *text = NULL;
        size_t length;
        FILE *out = open_memstream(&text, &length);

        if (!out)
                return -ENOMEM;
        for (size_t i = 0; i < input->pod->spec.volumes.n; i++) {
                const Image *image = mounted_volume_image(input, i);

                if (image)
                        (void) fprintf(out, "%s\n", image->digest);
        }
        *ret = memstream_finish(out, &text);
        text = NULL;
        return *ret ? 0 : -ENOMEM;
}

static int split_lines(char *text, char ***ret) {
        cleanup_strv char **lines = NULL;
        char *rest = text;

        for (char *line; (line = strsep(&rest, "\n"));) {
                int r = line[0] ? strv_append(&lines, line) : 0;

                if (r < 0)
                        return r;
        }
        *ret = TAKE_PTR(lines);
        return 0;
}

int bundle_load_volume_images(const BundleConfig *config, const Pod *pod, const char *container,
                              unsigned attempt, char ***ret) {
        cleanup_free char *bundle =
                container_bundle_dir(config, pod->metadata.uid, container, attempt);
        cleanup_free char *path = bundle ? path_join(bundle, IMAGE_VOLUMES_FILE) : NULL;
        cleanup_free char *text = NULL;
        int r = path ? read_file_at(AT_FDCWD, path, DIGESTS_MAX, &text, NULL) : -ENOMEM;

        if (r == -ENOENT) {
                *ret = NULL;
                return 0;
        }
        return r < 0 ? r : split_lines(text, ret);
}

int image_volumes_fstab(const RuntimeSpecInput *input, char **ret, Error *reterr) {
        cleanup_free char *text = NULL;
        size_t length;
        FILE *out = open_memstream(&text, &length);
        int r = 0;

        if (!out)
                return -ENOMEM;
        for (size_t i = 0; r >= 0 && i < input->pod->spec.volumes.n; i++)
                if (is_image_volume_mounted(input->container, &input->pod->spec.volumes.items[i]))
                        r = put_image_volume(out, input, i, reterr);
        *ret = memstream_finish(out, &text);
        text = NULL;
        if (*ret && r >= 0)
                return 0;
        free(TAKE_PTR(*ret));
        return r < 0 ? r : -ENOMEM;
}
