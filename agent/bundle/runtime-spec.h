/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* config.json as the OCI runtime specification (1.0.2) has it. Pure functions: text out. */

#include "agent/bundle/selinux-labels.h"

typedef struct RuntimeSpecInput {
        const BundleConfig *config;
        const Pod *pod;
        const Container *container;
        const Image *image;
        const char *id;
        unsigned attempt;
        pid_t sandbox_pid;    /* whose namespaces are joined */
        unsigned first_id;    /* of the pod's own users; 0: it has the node's */
        const char *users;    /* the file of their namespace, or NULL */
        SeLinuxLabels labels; /* see labels.h */
        int cgroup_version;
        const char *pod_group; /* see groups.h; NULL: where a new pod would be */
} RuntimeSpecInput;

/* The text of config.json, freed by the caller; or -errno and the sentence that belongs to
 * Kubernetes' CreateContainerError, as where neither the pod nor the image names a command;
 * -BUNDLE_CONFIG_ERROR: to CreateContainerConfigError, see container_variables(). */
int make_runtime_spec(const RuntimeSpecInput *input, char **ret, Error *reterr);

/* What runs, by Kubernetes' rule: command replaces the image's entrypoint and its command; args
 * replace its command only. $(NAME) is replaced by what 'env' (the pod's variables, "NAME=value")
 * has, $$ is a
 * '$'. */
int container_argv(const Container *container, const Image *image, char *const *env, char ***ret,
                   Error *reterr);

/* The variables that the pod gives: envFrom, then env, in which $(NAME) refers to what stands
 * before. -BUNDLE_CONFIG_ERROR with the kubelet's sentence where what one refers to is not there.
 */
int container_variables(const BundleConfig *config, const Pod *pod, const Container *container,
                        char ***ret, Error *reterr);

/* The environment: the image's, then the container's own variables. */
int container_environment(const Image *image, const char *hostname, char *const *variables,
                          char ***ret);

/* Replaces an entry of the same name, or appends. 0 or -ENOMEM. */
int env_set(char ***env, const char *name, const char *value);

/* Appends, where no entry has the name. 0 or -ENOMEM. */
int env_set_default(char ***env, const char *name, const char *value);

/* Kubernetes' expansion of "$(NAME)". 'ret_missing' may be NULL; it gets the first name that has no
 * value or an empty one, or NULL. 0 or -ENOMEM. */
int expand_variables(const char *text, char *const *env, char **ret, char **ret_missing);
