/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What happens to a Pod between decoding and the caller: Kubernetes' defaults, Kubernetes' rules,
 * and the identity of a pod that comes from a file. */

#include "agent/manifest/decode.h"
#include "agent/model/object.h"

/* As core/v1 defaults them: restartPolicy, grace period, pull policies, protocols, host ports under
 * hostNetwork, requests from limits, the namespace. 0 or -ENOMEM. */
int pod_set_defaults(Pod *pod);

/* A part of it: what a pod that says something of all its containers together does not say of them:
 * their requests together, or else its limit. 0 or -ENOMEM. */
int pod_set_default_resources(PodSpec *spec);

/* What a table cannot say: uniqueness, references, and what depends on another field. 'root' is the
 * pod's node, 'path' where it lies in its file. 0 or -EINVAL with the place. */
int pod_validate(const Decoder *decoder, const Node *root, const DecodePath *path, const Pod *pod,
                 const char *node_name);

/* dnsPolicy and dnsConfig. What is wrong, and in '*ret_field' below spec it is. */
int pod_validate_dns(const PodSpec *spec, const char **ret_field, Error *reterr);

/* A ConfigMap or Secret: decoded, defaulted, checked; what it holds is in 'values', sorted. 0,
 * -EINVAL with the place, -ENOMEM. */
int data_object_parse(Decoder *decoder, const Node *node, const DecodePath *path, ObjectKind kind,
                      DataObject **ret);

/* A PriorityClass or RuntimeClass, likewise. */
int class_object_parse(Decoder *decoder, const Node *node, const DecodePath *path, ObjectKind kind,
                       DataObject **ret);

/* "<name>-<node>", spec.nodeName, the UID and the kubelet's annotations. The UID is computed from
 * node, namespace, name and spec: the file's name, its comments and labels do not change it. 0 or
 * -ENOMEM. */
int pod_set_identity(Pod *pod, const char *node_name);
