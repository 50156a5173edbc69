/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the agent and a pod's shim say to each other: one JSON object a packet, on a SEQPACKET
 * socket.
 *
 * Requests go down, events come up. A new agent meets old shims after every upgrade, so a message
 * may carry members that its reader does not know (they are skipped) and may lack those that its
 * writer did not know (numbers are 0 then, strings are NULL). Pure: no sockets here. */

#include "common/error.h"

#include <stdint.h>
#include <sys/types.h>

enum {
        SHIM_PROTOCOL_VERSION = 3, /* 1 had neither exec-in nor note, and no delay of a stop; before
                                    * 3 the greeting brought no network namespace */
        SHIM_PROTOCOL_PACKET_MAX = 64 * 1024,
        SHIM_PROTOCOL_NOTE_MAX = 1024,
        SHIM_PROTOCOL_MESSAGE_MAX = 4096,
        SHIM_PROTOCOL_OUTPUT_MAX = 48 * 1024, /* bytes of a program's output; less where the packet
                                               * is full before */
};

typedef struct StringList {
        const char *const *items;
        size_t n;
} StringList;

typedef enum ShimRequestType {
        SHIM_REQUEST_HELLO,    /* version */
        SHIM_REQUEST_SETUP,    /* fstab, hostname, log_max_size, log_max_files */
        SHIM_REQUEST_RUN,      /* id, name, attempt, bundle, log, journal_fields, events_file, note,
                                * has_input, has_terminal */
        SHIM_REQUEST_STOP,     /* id, signal, delay_usec, grace_usec */
        SHIM_REQUEST_DELETE,   /* id, directories */
        SHIM_REQUEST_TEARDOWN, /* nothing */
        SHIM_REQUEST_EXEC, /* id, arguments, environment, input, in_host, timeout_usec; interface,
                            * address */
        SHIM_REQUEST_SESSION, /* id (of a container), arguments, has_…; with a descriptor */
        SHIM_REQUEST_EXEC_IN, /* id, container, arguments, timeout_usec */
        SHIM_REQUEST_NOTE,    /* id, note */
        N_SHIM_REQUEST_TYPES,
} ShimRequestType;

typedef struct ShimRequest {
        ShimRequestType type;
        unsigned version;
        const char *fstab;
        const char *hostname;  /* of the pod's UTS namespace; NULL: as it is */
        uint64_t log_max_size; /* bytes; 0: no limit */
        unsigned log_max_files;
        const char *id;
        const char *name;
        unsigned attempt;
        const char *bundle;
        const char *log;
        StringList journal_fields; /* "NAME=value": its lines go to the journal, too, with these */
        const char *events_file;
        const char *note;
        bool has_input;    /* its standard input is open; but in a session nobody writes to it */
        bool has_output;   /* of a session: the client wants to see what it says */
        bool has_error;    /* likewise */
        bool has_terminal; /* config.json, or the session's client, asks for one */
        int signal;
        uint64_t delay_usec;   /* before the signal */
        uint64_t grace_usec;   /* before SIGKILL */
        const char *container; /* its ID */
        StringList directories;
        StringList arguments;   /* arguments[0] is a path */
        StringList environment; /* all of it */
        const char *input;      /* for the standard input; NULL: nothing */
        bool in_host;           /* in the node's network and UTS namespaces */
        uint64_t timeout_usec;  /* 0: none */
        const char *interface;  /* run it only in a stand-in for this one, should it be gone */
        const char *address;    /* of the stand-in */
        void *storage;          /* of a decoded request: what the strings live in */
} ShimRequest;

typedef enum ShimEventType {
        SHIM_EVENT_HELLO,        /* version, pid of the shim */
        SHIM_EVENT_SYNCED,       /* ready */
        SHIM_EVENT_READY,        /* nothing */
        SHIM_EVENT_SETUP_FAILED, /* message */
        SHIM_EVENT_STARTING,     /* id, name, attempt, note; replayed */
        SHIM_EVENT_STARTED,      /* id, name, attempt, note, pid, started_at, replayed */
        SHIM_EVENT_START_FAILED, /* id, name, attempt, note, message, runtime_failed, replayed,
                                  * deleted
                                  */
        SHIM_EVENT_EXITED,    /* as started; exit_code, signal, oom_killed, finished_at, deleted */
        SHIM_EVENT_DELETED,   /* id, name, attempt, note */
        SHIM_EVENT_EXEC_DONE, /* id, exit_code, signal, timed_out, output, error; message where it
                               * did not run */
        SHIM_EVENT_ERROR,     /* message; id where it is about one: a request that was refused */
        N_SHIM_EVENT_TYPES,
} ShimEventType;

typedef struct ShimEvent {
        ShimEventType type;
        unsigned version;
        const char *id;
        const char *name;
        const char *note;
        const char *message; /* bytes that are not UTF-8 travel as '?' */
        const char *output;  /* likewise */
        const char *error;   /* likewise; the last line of standard error */
        unsigned attempt;
        pid_t pid;
        int exit_code;
        int signal;
        bool oom_killed;
        bool runtime_failed;
        bool replayed;
        bool ready;
        bool deleted;
        bool timed_out;
        uint64_t started_at;  /* realtime, microseconds */
        uint64_t finished_at; /* realtime, microseconds */
        void *storage;        /* of a decoded event */
} ShimEvent;

/* One packet, in memory that the caller frees. 0; -EMSGSIZE when it would be longer than
 * SHIM_PROTOCOL_PACKET_MAX; -EILSEQ when a string is not UTF-8; -ENOMEM. */
int shim_request_encode(const ShimRequest *request, char **ret_packet, size_t *ret_length);
int shim_event_encode(const ShimEvent *event, char **ret_packet, size_t *ret_length);

/* Reads one packet. 0; -EBADMSG for what is no message, or lacks a string that its type needs, or
 * has a number out of range; -ENOTSUP for a type that we do not know. What was decoded is freed
 * with shim_request_done() and shim_event_done(); both are safe on what failed. */
int shim_request_decode(const char *packet, size_t length, ShimRequest *ret, Error *reterr);
int shim_event_decode(const char *packet, size_t length, ShimEvent *ret, Error *reterr);

void shim_request_done(ShimRequest *request);
void shim_event_done(ShimEvent *event);

#define cleanup_shim_request cleanup_with(shim_request_done)
#define cleanup_shim_event   cleanup_with(shim_event_done)

/* Packets that a socket did not take yet, in order. */
typedef struct QueuedPacket {
        struct QueuedPacket *next;
        size_t length;
        char *data;
} QueuedPacket;

typedef struct PacketQueue {
        QueuedPacket *first;
        size_t bytes;
} PacketQueue;

/* Appends; owns 'data' on success. 0; -ENOBUFS when there would be more than 'max_bytes' in it;
 * -ENOMEM. */
int packet_queue_append(PacketQueue *queue, size_t max_bytes, char *data, size_t length);
void packet_queue_pop(PacketQueue *queue);
void packet_queue_clear(PacketQueue *queue);
