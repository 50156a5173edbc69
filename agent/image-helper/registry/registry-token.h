/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Bearer tokens of registries ("Token Authentication Specification" of distribution): the registry
 * names its token server, which exchanges the credential for a token. */

#include "agent/image-helper/registry/http-transport.h"

/* Requests a token to pull 'endpoint->repository' from the challenge's realm; 'credential' may be
 * NULL. The credential is sent only to a server that belongs to the registry
 * (token_server_is_trusted()). 0, and the caller frees the token; or -errno with a message: -EACCES
 * if the server refuses, -EAGAIN if a retry may succeed. */
int registry_token_get(HttpTransport *http, const Endpoint *endpoint, const Challenge *challenge,
                       const Credential *credential, char **ret, Error *reterr);

/* Whether a password of the registry may be sent to that host: the registry itself, a sub- or
 * parent domain, or a sibling in its parent domain, like "auth.docker.io" for
 * "registry-1.docker.io". Neither name includes a port. */
bool token_server_is_trusted(const char *server, const char *registry);
