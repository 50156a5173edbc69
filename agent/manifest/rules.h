/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What happens to a Pod between decoding and the caller: Kubernetes' defaults, Kubernetes' rules,
 * and the identity of a pod that comes from a file. */

#include "agent/manifest/decode.h"
#include "agent/model/daemonset.h"
#include "agent/model/object.h"

/* Adds warnings of what is written in a pod that was decoded and will not be done. 0 or -ENOMEM. */
int pod_warn(Decoder *decoder, const YamlNode *root, const DecodePath *path, const Pod *pod);

/* The field of a security context that does what this annotation does no more, if it is not set
 * either; or NULL. */
const char *find_unset_profile_field(const Pod *pod, const char *key);

/* As core/v1 defaults them: restartPolicy, grace period, pull policies, protocols, host ports under
 * hostNetwork, requests from limits, the namespace. 0 or -ENOMEM. */
int pod_set_defaults(Pod *pod);

/* A part of it: the probes and hooks of a container. 0 or -ENOMEM. */
int probes_set_defaults(Container *container);

/* Likewise: what a pod that says something of all its containers together does not say of them:
 * their requests together, or else its limit. 0 or -ENOMEM. */
int pod_set_default_resources(PodSpec *spec);

/* What a table cannot say: uniqueness, references, and what depends on another field. 'root' is the
 * pod's node, 'path' where it lies in its file. 0 or -EINVAL with the place. */
int pod_validate(const Decoder *decoder, const YamlNode *root, const DecodePath *path,
                 const Pod *pod, const char *node_name);

/* The same without what a pod's own name and node are asked: for a template, whose node 'root' is.
 */
int pod_validate_template(const Decoder *decoder, const YamlNode *root, const DecodePath *path,
                          const Pod *pod);

/* Affinity as the annotation of 2016 has it, scheduler.alpha.kubernetes.io/affinity: moved into the
 * spec, unless the spec has one. 'root' is the pod's or the template's node. 0, -EINVAL with the
 * place, -ENOMEM. */
int pod_take_affinity_annotation(const Decoder *decoder, const YamlNode *root,
                                 const DecodePath *path, Pod *pod);

/* A DaemonSet: decoded, defaulted as its API version does it, checked, its template as a pod is;
 * with the UID that it has on this node. 0, -EINVAL with the place, -ENOMEM. */
int daemonset_parse(Decoder *decoder, const YamlNode *node, const DecodePath *path,
                    const char *node_name, DaemonSet **ret);

/* dnsPolicy and dnsConfig. What is wrong, and in '*ret_field' below spec it is. */
int pod_validate_dns(const PodSpec *spec, const char **ret_field, Error *reterr);

/* hostnameOverride, likewise. */
int pod_validate_hostname(const PodSpec *spec, const char **ret_field, Error *reterr);

/* A ConfigMap or Secret: decoded, defaulted, checked; what it holds is in 'values', sorted. 0,
 * -EINVAL with the place, -ENOMEM. */
int data_object_parse(Decoder *decoder, const YamlNode *node, const DecodePath *path,
                      ObjectKind kind, DataObject **ret);

/* A PriorityClass or RuntimeClass, likewise. */
int class_object_parse(Decoder *decoder, const YamlNode *node, const DecodePath *path,
                       ObjectKind kind, DataObject **ret);

/* What the type of a Secret promises to those who use it, by the values that it holds. 0, or
 * -EINVAL with the sentence; then '*ret_map' (and '*ret_key' in it, or NULL) is where. */
int secret_check_type(const DataObject *secret, const char **ret_map, const char **ret_key,
                      Error *reterr);

/* "<name>-<node>", spec.nodeName, the UID and the kubelet's annotations. The UID is computed from
 * node, namespace, name and spec: the file's name, its comments and labels do not change it. 0 or
 * -ENOMEM. */
int pod_set_identity(Pod *pod, const char *node_name);

/* The annotations by which the kubelet tells where a pod comes from. -EINVAL for one without UID.
 */
int pod_set_api_identity(Pod *pod, Error *reterr);
