/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Bearer tokens, as distribution's "Token Authentication Specification" has them: the registry says
 * where they are given, and we show what we have there. */

#include "agent/image-helper/http-transport.h"

/* Asks the challenge's realm for a token to pull 'endpoint->repository'; 'credential' may be NULL.
 * It is shown only to a server that belongs to the registry (token_server_is_trusted()). 0 with
 * memory that the caller frees; or -errno with the sentence: -EACCES where the server refuses,
 * -EAGAIN where it may go better another time. */
int registry_token_get(HttpTransport *http, const Endpoint *endpoint, const Challenge *challenge,
                       const Credential *credential, char **ret, Error *reterr);

/* Whether a password for the registry may be shown to that host: it is the registry's own, lies
 * below or above it, or beside it in its parent domain, as "auth.docker.io" does to
 * "registry-1.docker.io". Neither has a port. */
bool token_server_is_trusted(const char *server, const char *registry);
