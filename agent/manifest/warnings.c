/* SPDX-License-Identifier: Apache-2.0 */

/* Warnings about settings that Kubernetes accepts, but ignores or cannot apply. */

#include "agent/manifest/pod-rules.h"
#include "agent/model/containers.h"
#include "agent/model/own-keys.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/image-reference.h"
#include "common/text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Old annotations that became fields. */
static const struct {
        const char *key;
        const char *field;
} replaced[] = {
        { "security.alpha.kubernetes.io/sysctls", "securityContext.sysctls" },
        { "security.alpha.kubernetes.io/unsafe-sysctls", "securityContext.sysctls" },
        { "scheduler.alpha.kubernetes.io/critical-pod", "priorityClassName" },
};

/* Helm does not install a chart's objects with this annotation together with the others. */
#define HELM_HOOK "helm.sh/hook"

/* Options of 'podman run', which 'podman kube generate' writes and 'podman kube play' reads. */
#define PODMAN "io.podman.annotations."

/* If the option had no effect, the pod would silently be unprotected. */
static int warn_of_annotation(Decoder *d, const YamlNode *map, const DecodePath *parent,
                              const Pod *pod, const char *key) {
        const DecodePath path = { .parent = parent, .key = key, .is_map_key = true };
        const char *profile = find_unset_profile_field(pod, key);
        char sentence[128] = "";

        if (profile)
                (void) snprintf(sentence, sizeof(sentence), "is ignored; use securityContext.%s",
                                profile);
        if (own_key_is_agents(key))
                (void) snprintf(sentence, sizeof(sentence), "is ignored; only the agent sets it");
        for (size_t i = 0; i < N_ELEMENTS(replaced); i++)
                if (streq(key, replaced[i].key))
                        (void) snprintf(sentence, sizeof(sentence), "is ignored; use %s",
                                        replaced[i].field);
        if (strncmp(key, PODMAN, strlen(PODMAN)) == 0)
                (void) snprintf(sentence, sizeof(sentence), "is ignored: only podman reads it%s",
                                streq(key, PODMAN "userns")
                                        ? "; 'hostUsers: false' gives the pod its own users"
                                        : "");
        if (streq(key, HELM_HOOK))
                (void) snprintf(sentence, sizeof(sentence),
                                "is no hook here: the pod runs like any other; 'helm template "
                                "--no-hooks' leaves it out");
        return sentence[0] ? decode_warn(d, yaml_node_get(map, key), &path, sentence) : 0;
}

static int warn_of_grace_period(Decoder *d, const YamlNode *spec, const DecodePath *parent) {
        static const char key[] = "terminationGracePeriodSeconds";
        const DecodePath path = { .parent = parent, .key = key };

        return decode_warn(d, yaml_node_get(spec, key), &path,
                           "is negative, which is treated as 1");
}

/* An emptyDir to which no container of the pod may write stays empty. */
static bool is_never_written(const PodSpec *spec, const char *name) {
        const Volume *volume = pod_find_volume(spec, name);
        const Container *container;

        if (!volume || !volume->empty_dir)
                return false;
        pod_foreach_container(container, spec)
                for (size_t i = 0; i < container->volume_mounts.n; i++)
                        if (streq(container->volume_mounts.items[i].name, name) &&
                            !container->volume_mounts.items[i].read_only)
                                return false;
        return true;
}

/* The mount that contains the nth one directly, or NULL. 0 or -ENOMEM. */
static int find_enclosing_mount(const Container *container, size_t n, const VolumeMount **ret) {
        cleanup_free char *path = path_clean(container->volume_mounts.items[n].mount_path);
        size_t longest = 0;

        if (!path)
                return -ENOMEM;
        *ret = NULL;
        for (size_t i = 0; i < container->volume_mounts.n; i++) {
                const VolumeMount *mount = &container->volume_mounts.items[i];
                cleanup_free char *outer = path_clean(mount->mount_path);
                size_t length = outer ? strlen(outer) : 0;

                if (!outer)
                        return -ENOMEM;
                if (length > longest && path_below(path, outer)) {
                        longest = length;
                        *ret = mount;
                }
        }
        return 0;
}

/* The runtime cannot create a mount point in a read-only volume, and this volume has none. */
static int warn_of_nested_mount(Decoder *d, const YamlNode *list, const DecodePath *parent,
                                const PodSpec *spec, const Container *container, size_t n) {
        const DecodePath item = { .parent = parent, .index = n };
        const DecodePath path = { .parent = &item, .key = "mountPath" };
        const VolumeMount *outer = NULL;
        cleanup_free char *sentence = NULL;
        int r = find_enclosing_mount(container, n, &outer);

        if (r < 0 || !outer || !is_never_written(spec, outer->name) || n >= list->n)
                return r;
        sentence = text_format(
                "cannot be mounted: it is in the emptyDir \"%s\", which is read-only in all "
                "containers, so that no mount point can be made; mount one writable",
                outer->name);
        if (!sentence)
                return -ENOMEM;
        return decode_warn_strictly(d, yaml_node_get(list->items[n], "mountPath"), &path, sentence);
}

/* Whether the path is a device node, judging by the manifest: neither a directory nor a device that
 * every container has. */
static bool is_device_node(const HostPathVolumeSource *host_path) {
        static const char *const serial[] = { "/dev/tty", "/dev/serial/by-" };
        static const char tuntap[] = "/dev/net/tun"; /* which OCI runtimes permit */

        for (size_t i = 0; i < N_ELEMENTS(serial); i++)
                if (host_path->type == HOST_PATH_UNSET &&
                    strncmp(host_path->path, serial[i], strlen(serial[i])) == 0)
                        return true;
        return (host_path->type == HOST_PATH_CHAR_DEVICE ||
                host_path->type == HOST_PATH_BLOCK_DEVICE) &&
               !streq(host_path->path, tuntap);
}

/* A mount does not change the container's device rules; podman adds a rule for the device. */
static int warn_of_device_node(Decoder *d, const YamlNode *list, const DecodePath *parent,
                               const PodSpec *spec, const Container *container, size_t n) {
        const DecodePath item = { .parent = parent, .index = n };
        const DecodePath path = { .parent = &item, .key = "name" };
        const Volume *volume = pod_find_volume(spec, container->volume_mounts.items[n].name);

        if (!volume || !volume->host_path || !is_device_node(volume->host_path) ||
            container->resources.limits.extended.n > 0 || container->security_context.privileged ||
            n >= list->n)
                return 0;
        return decode_warn(d, yaml_node_get(list->items[n], "name"), &path,
                           "is a device that a container may not open unless it is privileged; "
                           "list it in mainstay.devices of the configuration, and request its "
                           "resource");
}

static int warn_of_mounts(Decoder *d, const YamlNode *node, const DecodePath *parent,
                          const PodSpec *spec, const Container *container) {
        const YamlNode *list = yaml_node_get(node, "volumeMounts");
        const DecodePath path = { .parent = parent, .key = "volumeMounts" };
        int r = 0;

        if (!list || list->kind != YAML_NODE_SEQUENCE)
                return 0;
        for (size_t i = 0; r >= 0 && i < container->volume_mounts.n; i++)
                r = warn_of_nested_mount(d, list, &path, spec, container, i);
        for (size_t i = 0; r >= 0 && i < container->volume_mounts.n; i++)
                r = warn_of_device_node(d, list, &path, spec, container, i);
        return r;
}

/* A placeholder was not replaced, and its container would wait with InvalidImageName. */
static int warn_of_image(Decoder *d, const YamlNode *node, const DecodePath *parent,
                         const Container *container) {
        const DecodePath path = { .parent = parent, .key = "image" };
        cleanup_free char *image = NULL;
        cleanup_error Error error = ERROR_NULL;
        int r = image_reference_normalise(container->image, &image, &error);

        if (r != -EINVAL)
                return r;
        return decode_warn(d, yaml_node_get(node, "image"), &path, error_message(&error, r));
}

static int warn_of_containers(Decoder *d, const YamlNode *spec_node, const DecodePath *parent,
                              const PodSpec *spec, const char *key, size_t first, size_t n) {
        const YamlNode *list = yaml_node_get(spec_node, key);
        const DecodePath path = { .parent = parent, .key = key };
        int r = 0;

        if (!list || list->kind != YAML_NODE_SEQUENCE)
                return 0;
        for (size_t i = 0; r >= 0 && i < n && i < list->n; i++) {
                const DecodePath item = { .parent = &path, .index = i };

                r = warn_of_mounts(d, list->items[i], &item, spec,
                                   pod_nth_container(spec, first + i));
                if (r >= 0)
                        r = warn_of_image(d, list->items[i], &item,
                                          pod_nth_container(spec, first + i));
        }
        return r;
}

/* A node has no service accounts, so the field is only a name to which a variable may refer. */
static int warn_of_service_account(Decoder *d, const YamlNode *spec, const DecodePath *parent,
                                   const Pod *pod) {
        static const char *const keys[] = { "serviceAccountName", "serviceAccount" };
        const OptionalBool *automount = &pod->spec.automount_token;
        size_t i = yaml_node_get(spec, keys[0]) ? 0 : 1;
        const DecodePath path = { .parent = parent, .key = keys[i] };

        if (d->mode != DECODE_MANIFEST || !pod->spec.service_account_name ||
            (automount->is_set && !automount->value))
                return 0;
        return decode_warn(d, yaml_node_get(spec, keys[i]), &path,
                           "is only a name here: service accounts are objects of a cluster, so the "
                           "pod gets no token; set automountServiceAccountToken: false, or use a "
                           "kubeconfig in a Secret");
}

int pod_warn(Decoder *decoder, const YamlNode *root, const DecodePath *path, const Pod *pod) {
        const DecodePath metadata = { .parent = path, .key = "metadata" };
        const DecodePath map = { .parent = &metadata, .key = "annotations" };
        const DecodePath spec = { .parent = path, .key = "spec" };
        const YamlNode *spec_node = yaml_node_get(root, "spec");
        size_t n_init_containers = pod->spec.init_containers.n;
        int r = warn_of_service_account(decoder, spec_node, &spec, pod);

        if (r < 0)
                return r;

        for (size_t i = 0; i < pod->metadata.annotations.n; i++) {
                r = warn_of_annotation(
                        decoder, yaml_node_get(yaml_node_get(root, "metadata"), "annotations"),
                        &map, pod, pod->metadata.annotations.items[i].key);
                if (r < 0)
                        return r;
        }
        r = warn_of_containers(decoder, spec_node, &spec, &pod->spec, "initContainers", 0,
                               n_init_containers);
        if (r < 0)
                return r;
        r = warn_of_containers(decoder, spec_node, &spec, &pod->spec, "containers",
                               n_init_containers, pod->spec.containers.n);
        if (r < 0)
                return r;
        if (pod->spec.termination_grace_period_seconds.value < 0)
                return warn_of_grace_period(decoder, spec_node, &spec);
        return 0;
}
