/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Values of Secrets of the types kubernetes.io/dockerconfigjson and kubernetes.io/dockercfg. Users
 * of the cluster wrote them, so they are parsed by confined processes only. */

#include "agent/image-helper/registry/endpoint.h"

/* For a fetcher: adds the credentials of endpoints->pull_secrets, which have precedence over those
 * that the endpoints have. Invalid entries are skipped. 0 or -ENOMEM. */
int pull_secrets_add_credentials(Endpoints *endpoints);

/* Whether the kubelet would accept a value: 0; -EINVAL with the reason, which quotes no part of the
 * value except the name of a registry; -ENOMEM. */
int pull_secret_check(const char *document, bool has_auths, Error *reterr);

/* Prints a line for each invalid value: {"secret": <its number>, "problem": "<reason>"}. */
void pull_secrets_print_problems(const json_t *pull_secrets);
