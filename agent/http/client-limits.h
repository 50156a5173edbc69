/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Limits how many clients of the local socket are served at the same time, in total and per user,
 * so that incomplete requests of one user delay no other user, and never root. Clients beyond the
 * limit wait, accepted but not read. This module neither accepts nor serves clients itself. */

#include "common/macros.h"

#include <sys/types.h>

enum {
        CLIENTS_MAX = 40,
        CLIENTS_OF_ROOT = 8, /* of these, reserved for root */
        CLIENTS_OF_USER_MAX = 16,
        WAITING_CLIENTS_MAX = 128,
        WAITING_CLIENTS_OF_USER_MAX = 32,
};

typedef struct WaitingClient {
        uid_t uid;
        int fd;
} WaitingClient;

/* Initialized to zero, except for 'service_uid'. */
typedef struct ClientLimits {
        uid_t service_uid; /* mainstay-api's user, which represents many clients; 0: there is
                            * none */
        uid_t served[CLIENTS_MAX];
        size_t n_served;
        WaitingClient waiting[WAITING_CLIENTS_MAX]; /* in the order of arrival */
        size_t n_waiting;
} ClientLimits;

/* Whether a client of the user can be served now. */
bool client_limits_allow(const ClientLimits *limits, uid_t uid);

/* A client is being served, or is no longer served. */
void client_limits_add(ClientLimits *limits, uid_t uid);
void client_limits_remove(ClientLimits *limits, uid_t uid);

/* Keeps a client until it can be served. False: too many clients are waiting, in total or of this
 * user; the caller then keeps the descriptor. */
bool client_limits_wait_take(ClientLimits *limits, uid_t uid, int fd);

/* The descriptor of the first waiting client that can be served now, owned by the caller; -EAGAIN:
 * there is none. */
int client_limits_next(ClientLimits *limits);

/* Closes the waiting connections. */
void client_limits_done(ClientLimits *limits);
