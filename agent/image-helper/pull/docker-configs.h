/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Values of Secrets of the types kubernetes.io/dockerconfigjson and kubernetes.io/dockercfg. Users
 * of the cluster wrote them, so they are parsed by confined processes only. */

#include "agent/image-helper/registry/endpoint.h"

/* For a fetcher: adds the credentials of endpoints->pull_secrets, which are preferred over those
 * that the endpoints have. Invalid entries are skipped. 0 or -ENOMEM. */
int pull_secrets_add_credentials(Endpoints *endpoints);

/* Whether a value is one that the kubelet accepts: 0; -EINVAL with the reason, which quotes nothing
 * of it except the name of a registry; -ENOMEM. */
int pull_secret_check(const char *document, bool has_auths, Error *reterr);

/* Prints a line for each value that is invalid: {"secret": <its number>, "problem": "<reason>"}. */
void pull_secrets_print_problems(const json_t *pull_secrets);
