/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pods/pod/pod-instance.h"

#include "agent/bundle/pod-paths.h"
#include "agent/model/schema.h"
#include "common/checksummed.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/text.h"

#include <fcntl.h>

/* The kubelet's annotation with the time at which it read the pod's manifest. */
static const char config_seen_annotation[] = "kubernetes.io/config.seen";

int pod_instance_init_take(PodInstance *instance, PodContext *context, Pod *pod, void *owner) {
        const char *seen = string_map_get(&pod->metadata.annotations, config_seen_annotation);

        *instance = (PodInstance){ .context = context, .owner = owner, .is_desired = true };
        if (!seen || parse_rfc3339(seen, &instance->start_time) < 0)
                instance->start_time = now_realtime_usec();
        instance->description = text_format("%s/%s", pod->metadata.namespace, pod->metadata.name);
        if (!instance->description)
                return -ENOMEM;
        instance->pod = pod;
        return 0;
}

void pod_instance_done(PodInstance *instance) {
        network_attachment_free(instance->attachment);
        sandbox_free(instance->sandbox);
        free(instance->description);
        string_map_done(&instance->external_conditions);
        pod_free(instance->pod);
        *instance = (PodInstance){ 0 };
}

void pod_instance_mark_dirty(const PodInstance *instance) {
        instance->context->on_dirty(instance->owner, instance->context->userdata);
}

LogSubject pod_instance_log_subject(const PodInstance *instance, const char *container) {
        const ObjectMeta *metadata = &instance->pod->metadata;

        return (LogSubject){ metadata->namespace, metadata->name, metadata->uid, container };
}

int pod_instance_open_state_dir(const PodInstance *instance) {
        cleanup_free char *path =
                pod_state_dir(instance->context->bundle, instance->pod->metadata.uid);
        int fd;

        if (!path)
                return -ENOMEM;
        fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

int pod_instance_load_file(const PodInstance *instance, const char *name, size_t max_bytes,
                           const char *what, const char *consequence, char **ret_text) {
        cleanup_close int fd = pod_instance_open_state_dir(instance);
        cleanup_free char *whole = NULL;

        if (fd < 0)
                return fd == -ENOENT ? 0 : fd;
        whole = text_format("Pod '%s': %s", instance->description, what);
        if (!whole)
                return -ENOMEM;
        return checksummed_try_load_at(fd, name, max_bytes, whole, consequence, ret_text);
}

const char *pod_instance_address(const PodInstance *instance) {
        const char *address = instance->attachment
                                      ? network_attachment_address(instance->attachment, 0)
                                      : instance->context->host_ips[0];

        return address ? address : "127.0.0.1";
}

int pod_reset_config_seen(Pod *pod) {
        char now[RFC3339_SIZE];

        return string_map_set(&pod->metadata.annotations, config_seen_annotation,
                              format_rfc3339_nano(now, now_realtime_usec()));
}
