/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The connection to the signer. A response takes as long as one signature. The client blocks until
 * it arrives, because GnuTLS signs during a handshake. */

#include "common/error.h"

typedef struct SignerClient {
        int fd; /* -EBADF: there is none */
} SignerClient;

/* Takes ownership of 'fd'. */
void signer_client_connect(SignerClient *client, int fd_consume);
void signer_client_disconnect(SignerClient *client);

/* The function for a TlsSigner: 'userdata' is a SignerClient. -EACCES with the signer's message;
 * another -errno: the connection is no longer usable. */
int signer_client_ask(void *userdata, const void *request, size_t length, char **ret,
                      size_t *ret_length, Error *reterr);
