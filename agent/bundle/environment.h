/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a container runs and with which environment variables: command and args, env and envFrom,
 * and the expansion of $(NAME). Computes only. */

#include "agent/bundle/config.h"

/* The command line, by Kubernetes' rule: command replaces the image's entrypoint and its command;
 * args replace its command only. $(NAME) is expanded from 'env' (the pod's variables,
 * "NAME=value"); $$ is a '$'. */
int container_argv(const Container *container, const Image *image, char *const *env, char ***ret,
                   Error *reterr);

/* The variables of the spec: envFrom, then env, in which $(NAME) refers to earlier ones.
 * -BUNDLE_CONFIG_ERROR with the kubelet's message where a referenced object or key does not exist.
 */
int container_variables(const BundleConfig *config, const Pod *pod, const Container *container,
                        char ***ret, Error *reterr);

/* The environment: the variables of the image, then those of the container. */
int container_environment(const Image *image, const char *hostname, char *const *variables,
                          char ***ret);

/* Replaces the entry of the same name, or appends one. 0 or -ENOMEM. */
int env_set(char ***env, const char *name, const char *value);

/* Appends an entry where the name is not set. 0 or -ENOMEM. */
int env_set_default(char ***env, const char *name, const char *value);

/* Kubernetes' expansion of "$(NAME)". 'ret_missing' may be NULL; it is set to the first name that
 * is unset or empty, or NULL. 0 or -ENOMEM. */
int expand_variables(const char *text, char *const *env, char **ret, char **ret_missing);
