/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/bundle/pod-paths.h"

#include "common/cleanup.h"
#include "common/hash.h"

#include <stdarg.h>
#include <sys/stat.h>

/* The kubelet's limit for the base name, without the suffix. */
enum {
        LOG_LINK_NAME_MAX = 255 - (int) sizeof(".log") + 1
};

static char *format_bundle_path(const char *format, ...) printf_like(1, 2);

static char *format_bundle_path(const char *format, ...) {
        char *path;
        va_list ap;

        va_start(ap, format);
        path = format_message(format, ap);
        va_end(ap);
        return path;
}

void container_id(const char *uid, const char *container, unsigned attempt, char ret_id[65]) {
        char text[512];
        int n = snprintf(text, sizeof(text), "%s/%s/%u", uid, container, attempt);

        sha256_hex(text, MIN((size_t) n, sizeof(text) - 1), ret_id);
}

char *pod_run_dir(const BundleConfig *config, const char *uid) {
        return format_bundle_path("%s/pods/%s", config->run_dir, uid);
}

char *pod_state_dir(const BundleConfig *config, const char *uid) {
        return format_bundle_path("%s/pods/%s", config->state_dir, uid);
}

char *pod_shm_dir(const BundleConfig *config, const char *uid) {
        return format_bundle_path("%s/pods/%s/shm", config->run_dir, uid);
}

char *pod_file_path(const BundleConfig *config, const char *uid, const char *file) {
        return format_bundle_path("%s/pods/%s%s", config->run_dir, uid, strrchr(file, '/'));
}

char *pod_etc_dir(const BundleConfig *config, const char *uid) {
        return format_bundle_path("%s/pods/%s/etc", config->state_dir, uid);
}

char *pod_etc_file_path(const BundleConfig *config, const char *uid, const char *file) {
        cleanup_free char *earlier = pod_file_path(config, uid, file);
        struct stat st;

        if (!earlier)
                return NULL;
        if (lstat(earlier, &st) >= 0 && S_ISREG(st.st_mode))
                return TAKE_PTR(earlier);
        return format_bundle_path("%s/pods/%s/etc%s", config->state_dir, uid, strrchr(file, '/'));
}

char *pod_fstab_path(const BundleConfig *config, const char *uid) {
        return format_bundle_path("%s/pods/%s/fstab", config->run_dir, uid);
}

char *pod_log_dir(const BundleConfig *config, const Pod *pod) {
        return format_bundle_path("%s/pods/%s_%s_%s", config->log_dir, pod->metadata.namespace,
                                  pod->metadata.name, pod->metadata.uid);
}

char *container_log_link(const BundleConfig *config, const Pod *pod, const char *container,
                         const char *id) {
        cleanup_free char *name = format_bundle_path("%s_%s_%s-%s", pod->metadata.name,
                                                     pod->metadata.namespace, container, id);

        if (!name)
                return NULL;
        return format_bundle_path("%s/containers/%.*s.log", config->log_dir, LOG_LINK_NAME_MAX,
                                  name);
}

char *container_bundle_dir(const BundleConfig *config, const char *uid, const char *container,
                           unsigned attempt) {
        return format_bundle_path("%s/pods/%s/containers/%s/%u", config->run_dir, uid, container,
                                  attempt);
}

char *container_state_dir(const BundleConfig *config, const char *uid, const char *container,
                          unsigned attempt) {
        return format_bundle_path("%s/pods/%s/containers/%s/%u", config->state_dir, uid, container,
                                  attempt);
}

char *volume_path(const BundleConfig *config, const char *uid, const Volume *volume) {
        const struct {
                bool is_it;
                const char *root;
                const char *plugin; /* directory names of the kubelet */
        } kinds[] = {
                { volume->empty_dir && volume->empty_dir->medium == MEDIUM_UNSET, config->state_dir,
                  "kubernetes.io~empty-dir" },
                { volume->config_map != NULL, config->state_dir, "kubernetes.io~configmap" },
                /* Secrets are never written to a disk. */
                { volume->secret != NULL, config->run_dir, "kubernetes.io~secret" },
                { volume->projected != NULL, config->run_dir, "kubernetes.io~projected" },
                { volume->downward_api != NULL, config->run_dir, "kubernetes.io~downward-api" },
        };

        for (size_t i = 0; i < N_ELEMENTS(kinds); i++)
                if (kinds[i].is_it)
                        return format_bundle_path("%s/pods/%s/volumes/%s/%s", kinds[i].root, uid,
                                                  kinds[i].plugin, volume->name);
        return format_bundle_path("%s/pods/%s/volumes/%s", config->run_dir, uid, volume->name);
}
