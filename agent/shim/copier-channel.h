/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Messages between the shim and its copier (copier.h). Both run the same program, so a message is a
 * struct; but the shim does not trust the copier's messages. */

#include "common/macros.h"

#include <stdint.h>
#include <sys/types.h>

typedef enum CopierMessageType {
        /* Messages to the copier. 'id' identifies an output or a capture. */
        COPIER_ADD,     /* an output, with all descriptors; data: the lines for JournalLog, if
                         * has_journal */
        COPIER_LIMITS,  /* max_size, max_files */
        COPIER_DRAIN,   /* the container has ended: COPIER_DRAINED follows */
        COPIER_REMOVE,  /* the output */
        COPIER_ATTACH,  /* attachment and its options; COPIER_FD_OUTPUT to COPIER_FD_RESUME */
        COPIER_DETACH,  /* attachment */
        COPIER_CAPTURE, /* keep the beginning of COPIER_FD_OUTPUT, at most max_size bytes */
        COPIER_FINISH,  /* the capture ends: COPIER_CAPTURED follows */

        /* From the copier. */
        COPIER_DRAINED,  /* everything that the container wrote is in its log */
        COPIER_DROPPED,  /* attachment: its client did not read its output */
        COPIER_CAPTURED, /* data: the captured output */

        /* Messages on the second socket; the copier waits for each answer. */
        COPIER_OPEN,    /* the log of an output; answer: result, COPIER_FD_LOG */
        COPIER_ROTATE,  /* the same; is_rotated */
        COPIER_JOURNAL, /* answer: result, COPIER_FD_OUTPUT: a socket of the journal */
        COPIER_ANSWER,

        /* Messages between the process that starts the command of a session and the one that copies
         * its streams. */
        SESSION_START,    /* from the copier: the command may start */
        SESSION_TERMINAL, /* COPIER_FD_TERMINAL */
        SESSION_RUNS,     /* data in the pipes comes from the command from now on */
        SESSION_ENDED,    /* result: waitpid(2) status; or data: why it has not started */
} CopierMessageType;

enum {
        COPIER_FD_OUTPUT,
        COPIER_FD_ERROR,
        COPIER_FD_RESUME,
        COPIER_FD_TERMINAL = COPIER_FD_RESUME,
        COPIER_FD_LOG,
        COPIER_FD_HELD_OUTPUT, /* earlier output: files */
        COPIER_FD_HELD_ERROR,
        N_COPIER_FDS,

        COPIER_DATA_MAX = 64 * 1024,
        COPIER_CAPTURE_MAX = 10 * 1024, /* of COPIER_CAPTURED */
};

typedef struct CopierMessage {
        uint32_t type;
        uint32_t id;
        uint32_t attachment;
        uint32_t max_files;
        uint64_t max_size;
        int32_t result;
        bool has_journal, keeps_early, is_drained;
        bool has_output, has_error, has_terminal;
        bool is_rotated;
        int fds[N_COPIER_FDS]; /* negative: none */
} CopierMessage;

#define COPIER_MESSAGE(message_type, message_id)                                              \
        (CopierMessage) {                                                                     \
                .type = (message_type), .id = (message_id), .fds = { -1, -1, -1, -1, -1, -1 } \
        }

/* Sends without blocking. The caller keeps the descriptors. 0 or -errno. */
int copier_channel_send(int socket_fd, const CopierMessage *message, const void *data,
                        size_t length);

/* The same without descriptors, but blocking: for the copier, which must not call sendmsg(2). */
int copier_channel_write(int socket_fd, const CopierMessage *message, const void *data,
                         size_t length);

/* Receives a message, and its data into 'data', a buffer of 'size' bytes. The caller owns the
 * descriptors, which are O_CLOEXEC. Returns the length of the data; -EAGAIN if 'waits' is false and
 * there is no message; -EBADMSG, without descriptors, for an invalid message; -ENOTCONN at the end;
 * or another -errno. */
ssize_t copier_channel_receive(int socket_fd, bool waits, CopierMessage *ret, void *data,
                               size_t size);

/* Closes the descriptors that nobody has taken. */
void copier_message_close(CopierMessage *message);
#define cleanup_copier_message cleanup_with(copier_message_close)
