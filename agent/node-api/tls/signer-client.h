/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The connection to the signer. An answer takes the time of one signature, and is waited for:
 * GnuTLS signs while it handles a handshake. */

#include "common/error.h"

typedef struct SignerClient {
        int fd; /* -EBADF: there is none */
} SignerClient;

/* 'fd' is owned from the call on. */
void signer_client_connect(SignerClient *client, int fd_consume);
void signer_client_disconnect(SignerClient *client);

/* A TlsSigner's function: 'userdata' is a SignerClient. -EACCES with the signer's message; another
 * -errno: the connection cannot be used any more. */
int signer_client_ask(void *userdata, const void *request, size_t length, char **ret,
                      size_t *ret_length, Error *reterr);
