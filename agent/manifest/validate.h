/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Within the room: the pod that is being validated, and how a rule says where it is broken. */

#include "agent/manifest/rules.h"
#include "agent/model/containers.h"

#include <stdarg.h>

typedef struct Rules {
        const Decoder *decoder;
        const YamlNode *root;
        const DecodePath *path;
        const Pod *pod; /* NULL for an object of another kind */
        Error *reterr;
} Rules;

/* One of the pod's containers, and where it stands: "spec.initContainers[0]". */
typedef struct ContainerAt {
        const Container *container;
        ContainerRole role;
        size_t n; /* among all of the pod's, those of init first */
        char path[48];
} ContainerAt;
ContainerAt container_at(const Rules *rules, size_t n);

/* Adds the place of a field, whose path from the pod is printed, to the sentence that was said.
 * Returns r. */
int rules_at(const Rules *rules, int r, const char *format, ...) printf_like(3, 4);
int rules_vat(const Rules *rules, int r, const char *format, va_list ap)
        __attribute__((format(printf, 3, 0)));

/* After a rule that is one of several; see decode_keep_error(). */
static inline int rules_keep(const Rules *rules, int r) {
        return decode_keep_error(rules->decoder, r);
}

/* Labels and annotations of an object of any kind. */
int check_metadata(const Rules *rules, const ObjectMeta *metadata);

/* Annotations that were profiles once, against the fields that took their place. */
int check_profile_annotations(const Rules *rules);

/* What the pod asks for as a whole, against what its containers do. */
int check_pod_resources(const Rules *rules);

/* Huge pages and ephemeral storage: of the container at this place, of the pod as a whole, and
 * emptyDirs. */
int check_container_storage(const Rules *rules, const ContainerAt *at);
int check_pod_storage(const Rules *rules);
int check_empty_dir(const Rules *rules, size_t i);

/* Security contexts, namespaces shared with the host or with one another, sysctls, priority. */
int check_security(const Rules *rules);
/* hostUsers and what goes with it. */
int check_users(const Rules *rules);

/* env and envFrom: sources, references, what is spelled in their paths. */
int check_environment(const Rules *rules, const ContainerAt *at);

/* Probes and hooks. */
int check_probes(const Rules *rules, const ContainerAt *at);

/* A reference to a field of the pod or to a resource of a container, in a variable or a file, at a
 * path that is printed. One of both is not NULL. */
typedef struct FieldReference {
        const ObjectFieldSelector *field;
        const ResourceFieldSelector *resource;
        bool is_file;
} FieldReference;
int check_field_reference(const Rules *rules, const FieldReference *reference, const char *path);

/* Volumes that are made of objects and of the pod's own fields. */
int check_data_volume(const Rules *rules, size_t i);

/* nodeSelector, affinity, tolerations; what goes with which operator. */
int check_placement(const Rules *rules);

/* A label selector at a path that is printed, whatever has it. */
int check_label_selector(const Rules *rules, const LabelSelector *selector, const char *place);
/* The files that a projected volume is made of; no two of them may have one path. 'i' is the
 * volume's. */
int check_projected_files(const Rules *rules, size_t i);

/* What the j-th mount of a container says beside its name and path. */
int check_mount_options(const Rules *rules, const ContainerAt *at, size_t j);

/* Names, and what they say of restarts; what may stand in a container of init only. */
int check_container_kind(const Rules *rules, const ContainerAt *at);
