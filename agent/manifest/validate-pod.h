/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Internal to validation: the pod that is being validated, and how a rule reports an error. */

#include "agent/manifest/pod-rules.h"
#include "agent/model/containers.h"

#include <stdarg.h>

typedef struct Rules {
        const Decoder *decoder;
        const YamlNode *root;
        const DecodePath *path;
        const Pod *pod; /* NULL for an object of another kind */
        Error *reterr;
} Rules;

/* Whether the pod comes from an API server, which has admitted it: some of its fields are set by
 * admission and defaults, and rules that apply only to manifests are not checked. */
static inline bool rules_are_of_api(const Rules *rules) {
        return rules->decoder->mode == DECODE_API ||
               (rules->decoder->mode == DECODE_RECORD && rules->pod && pod_is_of_api(rules->pod));
}

/* One of the pod's containers, and its path: "spec.initContainers[0]". */
typedef struct ContainerAt {
        const Container *container;
        ContainerRole role;
        size_t n; /* index among all containers of the pod, init containers first */
        char path[48];
} ContainerAt;
ContainerAt container_at(const Rules *rules, size_t n);

/* Prefixes the error with the place of a field, whose path relative to the pod is formatted.
 * Returns r. */
int rules_at(const Rules *rules, int r, const char *format, ...) printf_like(3, 4);

/* Sets an error with this message and the place of a field, which is formatted in the same way.
 * Returns -EINVAL. */
int rules_refuse(const Rules *rules, const char *message, const char *format, ...)
        printf_like(3, 4);

/* To be called after a rule that others follow; see decode_keep_error(). */
static inline int rules_keep(const Rules *rules, int r) {
        return decode_keep_error(rules->decoder, r);
}

/* Labels and annotations of an object of any kind. */
int check_metadata(const Rules *rules, const ObjectMeta *metadata);

/* The annotation mainstay.dev/progress-deadline-seconds, of a DaemonSet or a pod. */
int check_progress_deadline(const Rules *rules, const ObjectMeta *metadata);

/* The annotation mainstay.dev/after. */
int check_pod_order(const Rules *rules);

/* Compares profile annotations with the fields that replaced them. */
int check_profile_annotations(const Rules *rules);

/* Annotations that request devices. */
int check_device_annotations(const Rules *rules);

/* Compares pod-level resources with those of the containers. */
int check_pod_resources(const Rules *rules);

/* Check huge pages and ephemeral storage of one container, of the pod, and of emptyDirs. */
int check_container_storage(const Rules *rules, const ContainerAt *at);
int check_container_devices(const Rules *rules, const ContainerAt *at);
int check_pod_storage(const Rules *rules);
int check_empty_dir(const Rules *rules, size_t i);

/* Security contexts, namespaces shared with the host or with one another, sysctls, priority. */
int check_security(const Rules *rules);
/* hostUsers and the fields that depend on it. */
int check_users(const Rules *rules);

/* env and envFrom: sources, references, expressions in paths. */
int check_environment(const Rules *rules, const ContainerAt *at);

/* Probes and hooks. */
int check_probes(const Rules *rules, const ContainerAt *at);

/* A reference to a field of the pod or to a resource of a container, in a variable or a file, at a
 * formatted path. Exactly one of the two is not NULL. */
typedef struct FieldReference {
        const ObjectFieldSelector *field;
        const ResourceFieldSelector *resource;
        bool is_file;
} FieldReference;

/* Object, downward API and projected volumes. */
int check_data_volume(const Rules *rules, size_t i);

/* nodeSelector, affinity, tolerations: operators and values. */
int check_placement(const Rules *rules);

/* A label selector at a formatted path. */
int check_label_selector(const Rules *rules, const LabelSelector *selector, const char *place);
/* Checks that the paths of a projected volume's files differ. 'i' is the index of the volume. */
int check_projected_files(const Rules *rules, size_t i);

/* The options of the j-th mount of a container: propagation, subPath, read-only. */
int check_mount_options(const Rules *rules, const ContainerAt *at, size_t j);

/* Names, restart policies and rules, and fields of init containers only. */
int check_container_kind(const Rules *rules, const ContainerAt *at);
