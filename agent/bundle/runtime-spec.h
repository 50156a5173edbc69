/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* config.json as the OCI runtime specification (1.0.2) has it. Pure functions: text out. */

#include "agent/bundle/bundle.h"

typedef struct RuntimeSpecInput {
        const BundleConfig *config;
        const Pod *pod;
        const Container *container;
        const Image *image;
        const char *id;
        unsigned attempt;
        pid_t sandbox_pid; /* whose namespaces are joined */
        int cgroup_version;
} RuntimeSpecInput;

/* The text of config.json, freed by the caller; or -errno and the sentence that belongs to
 * Kubernetes' CreateContainerError, as where neither the pod nor the image names a command. */
int runtime_spec(const RuntimeSpecInput *input, char **ret, Error *reterr);

/* What runs, by Kubernetes' rule: command replaces the image's entrypoint and its command; args
 * replace its command only. $(NAME) is replaced by what 'env' ("NAME=value" strings) has, $$ is a
 * '$'. */
int container_argv(const Container *container, const Image *image, char *const *env, char ***ret,
                   Error *reterr);

/* The environment: the image's, then the container's own, in which $(NAME) refers to what stands
 * before. */
int container_environment(const Pod *pod, const Container *container, const Image *image,
                          const char *hostname, char ***ret);
