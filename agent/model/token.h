/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Service account tokens, which an API server issues for one pod, one audience and a limited time.
 * The wiring plugs in the module that requests and stores them. */

#include "agent/model/pod.h"
#include "common/error.h"

typedef struct TokenLookup {
        /* 0 with the token, which is valid until the next iteration of the event loop; -EAGAIN with
         * a message while there is none: it is being requested, and the pod is notified when it
         * arrives. */
        int (*find)(const Pod *pod, const TokenProjection *projection, const char **ret_token,
                    Error *reterr, void *userdata);
        void *userdata;
} TokenLookup;
