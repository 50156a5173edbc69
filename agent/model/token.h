/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Service account tokens, which an API server issues for one pod, one audience and a limited time.
 * The wiring connects the module that requests and stores them. */

#include "agent/model/pod.h"
#include "common/error.h"

typedef struct IssuedToken {
        const char *text;
        uint64_t expires_at; /* realtime; a lower bound, because a token from an earlier agent may
                              * last longer */
} IssuedToken;

typedef struct TokenLookup {
        /* 0 with the token, whose text is valid until the next iteration of the event loop; -EAGAIN
         * with a message if there is none yet: it is being requested, and the pod is notified when
         * it arrives. The projection's path is ignored. */
        int (*find)(const Pod *pod, const TokenProjection *projection, IssuedToken *ret,
                    Error *reterr, void *userdata);
        void *userdata;
} TokenLookup;
