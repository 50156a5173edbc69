/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Tokens of service accounts, which an API server gives for one pod, one audience and a time. How
 * rooms find them: agent.c plugs in who asks for them and keeps them. */

#include "agent/model/pod.h"
#include "common/error.h"

typedef struct TokenLookup {
        /* 0 with the token, which is valid until the next turn of the loop; -EAGAIN with a
         * sentence while there is none: then it is asked for, and the pod hears when it came. */
        int (*find)(const Pod *pod, const TokenProjection *projection, const char **ret_token,
                    Error *reterr, void *userdata);
        void *userdata;
} TokenLookup;
