/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node-api/process/agent-reply.h"

#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

/* "HTTP/1.1 200 OK" */
static int parse_status_line(const char *line, size_t length, unsigned *ret) {
        static const char start[] = "HTTP/1.";

        if (length < 12 || memcmp(line, start, sizeof(start) - 1) != 0 || line[8] != ' ')
                return -EBADMSG;
        *ret = 0;
        for (unsigned i = 9; i < 12; i++) {
                if (!isdigit((unsigned char) line[i]))
                        return -EBADMSG;
                *ret = *ret * 10 + (unsigned) (line[i] - '0');
        }
        return 0;
}

static bool header_is(const char *line, size_t length, const char *name, const char **ret_value,
                      size_t *ret_length) {
        size_t n = strlen(name);

        if (length <= n || strncasecmp(line, name, n) != 0 || line[n] != ':')
                return false;
        for (n++; n < length && line[n] == ' '; n++)
                ;
        *ret_value = line + n;
        *ret_length = length - n;
        return true;
}

static int parse_reply_header(const char *line, size_t length, AgentReplyHead *head) {
        const char *value;
        size_t n;
        char *end;

        if (header_is(line, length, "Content-Type", &value, &n) && n < sizeof(head->content_type)) {
                memcpy(head->content_type, value, n);
                head->content_type[n] = '\0';
        }
        if (header_is(line, length, "Content-Length", &value, &n)) {
                if (n == 0 || !isdigit((unsigned char) value[0]))
                        return -EBADMSG;
                errno = 0;
                head->body_length = strtoul(value, &end, 10); /* a CR follows the number */
                if (errno != 0 || end != value + n)
                        return -EBADMSG;
        }
        /* This client's request prevents the agent from replying in chunks. */
        return header_is(line, length, "Transfer-Encoding", &value, &n) ? -EBADMSG : 0;
}

int agent_reply_head_parse(const char *text, size_t length, AgentReplyHead *ret) {
        const char *end = memmem(text, length, "\r\n\r\n", 4), *line = text, *next;
        AgentReplyHead head = { .body_length = SIZE_MAX };
        int r;

        if (!end)
                return 0;
        head.length = (size_t) (end - text) + 4;
        for (; line < end; line = next + 2) {
                next = memmem(line, (size_t) (end + 2 - line), "\r\n", 2);
                if (!next)
                        return -EBADMSG;
                r = line == text ? parse_status_line(line, (size_t) (next - line), &head.status)
                                 : parse_reply_header(line, (size_t) (next - line), &head);
                if (r < 0)
                        return r;
        }
        if (head.status == 0)
                return -EBADMSG;
        *ret = head;
        return 1;
}
