/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/desired/rollout-images.h"

#include "agent/model/containers.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/text.h"

#include <errno.h>
#include <stdio.h>

#define UNKNOWN "-"

static void print_digest(FILE *out, const char *digest) {
        (void) fprintf(out, "%s%s", ftello(out) > 0 ? " " : "",
                       digest && digest[0] ? digest : UNKNOWN);
}

char *rollout_images_format(const Pod *pod, const PodStatus *status, image_digest_of_t digest_of,
                            void *userdata) {
        const PodSpec *spec = &pod->spec;
        const Container *container;
        char *text = NULL;
        size_t length;
        FILE *out = open_memstream(&text, &length);

        if (!out)
                return NULL;
        pod_foreach_container(container, spec) {
                const ContainerStatus *found = pod_status_find_container(status, container->name);

                print_digest(out, found ? found->image_id : NULL);
        }
        for (size_t i = 0; i < spec->volumes.n; i++)
                if (spec->volumes.items[i].image)
                        print_digest(out,
                                     digest_of(spec->volumes.items[i].image->reference, userdata));
        return memstream_finish(out, &text);
}

static int pin_image(char **image, const char **digests, image_digest_of_t digest_of,
                     void *userdata) {
        size_t length = strcspn(*digests, " ");
        cleanup_free char *digest = strndup(*digests, length);
        const char *now = *image ? digest_of(*image, userdata) : NULL;
        char *pinned;

        if (!digest)
                return -ENOMEM;
        *digests += length + ((*digests)[length] == ' ');
        if (!now || !digest[0] || streq(digest, UNKNOWN) || streq(digest, now) ||
            strchr(*image, '@'))
                return 0;
        pinned = text_format("%s@%s", *image, digest);
        if (!pinned)
                return -ENOMEM;
        free(*image);
        *image = pinned;
        return 0;
}

int rollout_images_pin(Pod *pod, const char *images, image_digest_of_t digest_of, void *userdata) {
        const Container *container;
        int r = 0;

        pod_foreach_container(container, &pod->spec) {
                r = pin_image(&((Container *) (uintptr_t) container)->image, &images, digest_of,
                              userdata);
                if (r < 0)
                        return r;
        }
        for (size_t i = 0; i < pod->spec.volumes.n && r >= 0; i++)
                if (pod->spec.volumes.items[i].image)
                        r = pin_image(&pod->spec.volumes.items[i].image->reference, &images,
                                      digest_of, userdata);
        return r;
}

void rollout_images_list(const char *images, ImageSet *ret) {
        for (size_t length; images && images[0]; images += length + (images[length] == ' ')) {
                cleanup_free char *digest = NULL;

                length = strcspn(images, " ");
                digest = strndup(images, length);
                if (digest)
                        image_set_add(ret, digest);
                else
                        ret->is_everything = true;
        }
}
