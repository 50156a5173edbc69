/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The processing of a Pod after decoding: defaults, validation, and the identity of a static pod.
 * Internal to this module. */

#include "agent/manifest/decode.h"
#include "agent/model/daemonset.h"
#include "agent/model/object.h"
#include "agent/model/pod-source.h"

/* Adds warnings about settings of a decoded pod that are ignored. 0 or -ENOMEM. */
int pod_warn(Decoder *decoder, const YamlNode *root, const DecodePath *path, const Pod *pod);

/* The security context field that replaces an annotation, if that field is unset as well; or NULL.
 */
const char *find_unset_profile_field(const Pod *pod, const char *key);

/* The defaults of core/v1: restartPolicy, grace period, pull policies, protocols, host ports with
 * hostNetwork, requests from limits, the namespace. 0 or -ENOMEM. */
int pod_set_defaults(Pod *pod);

/* The defaults of a container's probes and hooks. 0 or -ENOMEM. */
int probes_set_defaults(Container *container);

/* Sets the default requests of a pod that sets pod-level resources: the sum of its containers'
 * requests, or else its limit. 0 or -ENOMEM. */
int pod_set_default_resources(PodSpec *spec);

/* Validation beyond the tables: uniqueness, references, dependencies between fields. 'root' is the
 * pod's node in the tree, 'path' its position in the file. 0 or -EINVAL with the place. */
int pod_validate(const Decoder *decoder, const YamlNode *root, const DecodePath *path,
                 const Pod *pod, const char *node_name);

/* The same without the rules for name and node of a pod: for a template, whose node is 'root'. */
int pod_validate_template(const Decoder *decoder, const YamlNode *root, const DecodePath *path,
                          const Pod *pod);

/* Converts the forms of a pod that Kubernetes still accepts from older manifests to current ones.
 * 'root' is the node of the pod or template. 0, -EINVAL with the place, -ENOMEM. */
int pod_take_old_forms(Decoder *decoder, const YamlNode *root, const DecodePath *path, Pod *pod);

/* One of these conversions: moves the affinity annotation of 2016,
 * scheduler.alpha.kubernetes.io/affinity, into the spec, unless the spec has an affinity. */
int pod_take_affinity_annotation(const Decoder *decoder, const YamlNode *root,
                                 const DecodePath *path, Pod *pod);

/* Another of these conversions: the AppArmor annotations of containers that have no profile in
 * their fields. 0 or -ENOMEM. */
int pod_take_app_armor_annotations(Pod *pod);

/* Parses a DaemonSet: decodes it, applies the defaults of its API version, validates it, and sets
 * the UID that it has on this node. 0, -EINVAL with the place, -ENOMEM. */
int daemonset_parse(Decoder *decoder, const YamlNode *node, const DecodePath *path,
                    const char *node_name, DaemonSet **ret);

/* Validates dnsPolicy and dnsConfig. On error '*ret_field' is the field below spec. */
int pod_validate_dns(const PodSpec *spec, const char **ret_field, Error *reterr);

/* The same for hostnameOverride. */
int pod_validate_hostname(const PodSpec *spec, const char **ret_field, Error *reterr);

/* Parses a ConfigMap or Secret: decodes it, applies defaults, validates it; 'values' receives its
 * values, sorted. 0, -EINVAL with the place, -ENOMEM. */
int data_object_parse(Decoder *decoder, const YamlNode *node, const DecodePath *path,
                      ObjectKind kind, DataObject **ret);

/* The same for a PriorityClass or RuntimeClass. */
int class_object_parse(Decoder *decoder, const YamlNode *node, const DecodePath *path,
                       ObjectKind kind, DataObject **ret);

/* The same for a PersistentVolumeClaim or PersistentVolume of an API server. */
int storage_object_parse(Decoder *decoder, const YamlNode *node, const DecodePath *path,
                         ObjectKind kind, DataObject **ret);

/* Checks the keys that the type of a Secret requires. 0; or -EINVAL with a message, in which case
 * '*ret_map' (and '*ret_key' in it, or NULL) is the place. */
int secret_check_type(const DataObject *secret, const char **ret_map, const char **ret_key,
                      Error *reterr);

/* Marks the values that the annotation mainstay.dev/encrypted-keys names as encrypted. Returns the
 * same as secret_check_type(). */
int secret_mark_encrypted(DataObject *secret, const char **ret_map, const char **ret_key,
                          Error *reterr);

/* Sets the identity of a static pod: name "<name>-<node>", spec.nodeName, UID, the kubelet's
 * annotations with its config source ("file" or "http"). The UID is computed from node, namespace,
 * name and spec; file name, comments and labels do not change it. 0 or -ENOMEM. */
int pod_set_identity(Pod *pod, const char *node_name, const PodSource *source);

/* Sets the kubelet's annotations for the pod's config source. -EINVAL for a pod without UID. */
int pod_set_api_identity(Pod *pod, Error *reterr);
