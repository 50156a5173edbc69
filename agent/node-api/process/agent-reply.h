/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The head of an HTTP reply from the agent. Pure. */

#include "common/macros.h"

typedef struct AgentReplyHead {
        size_t length; /* including the empty line */
        unsigned status;
        char content_type[128]; /* "" if it is missing or too long */
        size_t body_length;     /* SIZE_MAX: until the connection is closed */
} AgentReplyHead;

/* 1 with the head at the start of the text, 0 if it is incomplete, -EBADMSG if it is invalid. */
int agent_reply_head_parse(const char *text, size_t length, AgentReplyHead *ret);
