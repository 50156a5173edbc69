/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The command of a container and its environment: command and args, env and envFrom, and the
 * expansion of $(NAME). Has no side effects. */

#include "agent/bundle/bundle-settings.h"
#include "agent/bundle/variable-set.h"

enum {
        EXPANSION_MAX = 128 * KIB - 1 /* limit of execve(2) for one string */
};

/* The command line, according to Kubernetes' rule: command replaces the image's entrypoint and its
 * command; args replace only its command. $(NAME) is expanded with the variables of the pod; $$ is
 * a '$'. -BUNDLE_CONFIG_ERROR if the result is too long. */
int container_argv(const Container *container, const Image *image, const VariableSet *variables,
                   char ***ret, Error *reterr);

/* The variables of the spec: envFrom, then env, in which $(NAME) refers to earlier ones.
 * -BUNDLE_CONFIG_ERROR with the kubelet's message if a referenced object or key does not exist, or
 * if variables are too long. */
int container_variables(const BundleConfig *config, const Pod *pod, const Container *container,
                        VariableSet *ret, Error *reterr);

/* The environment: the variables of the image, then those of the container. 0, -ENOMEM, or
 * -BUNDLE_CONFIG_ERROR if it is too large. */
int container_environment(const Image *image, const char *hostname, const VariableSet *variables,
                          VariableSet *ret, Error *reterr);

/* Sets the error for variables that would take more than EXEC_BYTES_MAX. Returns
 * -BUNDLE_CONFIG_ERROR. */
int too_large_environment(Error *reterr);

/* Kubernetes' expansion of "$(NAME)". 'ret_missing' may be NULL; it is set to the first name that
 * is unset or empty, or NULL. 0, -ENOMEM, or -E2BIG if a reference is replaced and the result is
 * longer than EXPANSION_MAX. */
int expand_variables(const char *text, const VariableSet *variables, char **ret,
                     char **ret_missing);

/* The same for the words of a command. -E2BIG, with the place, such as "args[3]", is also returned
 * if the total exceeds EXEC_BYTES_MAX. */
int expand_words(const char *field, char *const *words, const VariableSet *variables, char ***ret,
                 Error *reterr);
