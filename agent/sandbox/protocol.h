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
        PROTOCOL_VERSION = 3, /* 1 had neither exec-in nor note, and no delay of a stop; before 3
                               * the greeting brought no network namespace */
        PROTOCOL_PACKET_MAX = 64 * 1024,
        PROTOCOL_NOTE_MAX = 1024,
        PROTOCOL_MESSAGE_MAX = 4096,
        PROTOCOL_OUTPUT_MAX = 48 * 1024, /* bytes of a program's output; less where the packet is
                                          * full before */
};

typedef struct StringList {
        const char *const *items;
        size_t n;
} StringList;

typedef enum RequestType {
        REQUEST_HELLO,    /* version */
        REQUEST_SETUP,    /* fstab, hostname, log_max_size, log_max_files */
        REQUEST_RUN,      /* id, name, attempt, bundle, log, journal_fields, events_file, note,
                           * has_input, has_terminal */
        REQUEST_STOP,     /* id, signal, delay_usec, grace_usec */
        REQUEST_DELETE,   /* id, directories */
        REQUEST_TEARDOWN, /* nothing */
        REQUEST_EXEC,     /* id, arguments, environment, input, in_host, timeout_usec; interface,
                           * address */
        REQUEST_SESSION,  /* id (of a container), arguments, has_…; with a descriptor */
        REQUEST_EXEC_IN,  /* id, container, arguments, timeout_usec */
        REQUEST_NOTE,     /* id, note */
        N_REQUEST_TYPES,
} RequestType;

typedef struct Request {
        RequestType type;
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
} Request;

typedef enum EventType {
        EVENT_HELLO,        /* version, pid of the shim */
        EVENT_SYNCED,       /* ready */
        EVENT_READY,        /* nothing */
        EVENT_SETUP_FAILED, /* message */
        EVENT_STARTING,     /* id, name, attempt, note; replayed */
        EVENT_STARTED,      /* id, name, attempt, note, pid, started_at, replayed */
        EVENT_START_FAILED, /* id, name, attempt, note, message, runtime_failed, replayed, deleted
                             */
        EVENT_EXITED,       /* as started; exit_code, signal, oom_killed, finished_at, deleted */
        EVENT_DELETED,      /* id, name, attempt, note */
        EVENT_EXEC_DONE,    /* id, exit_code, signal, timed_out, output, error; message where it
                             * did not run */
        EVENT_ERROR,        /* message; id where it is about one: a request that was refused */
        N_EVENT_TYPES,
} EventType;

typedef struct Event {
        EventType type;
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
} Event;

/* One packet, in memory that the caller frees. 0; -EMSGSIZE when it would be longer than
 * PROTOCOL_PACKET_MAX; -EILSEQ when a string is not UTF-8; -ENOMEM. */
int request_encode(const Request *request, char **ret_packet, size_t *ret_length);
int event_encode(const Event *event, char **ret_packet, size_t *ret_length);

/* Reads one packet. 0; -EBADMSG for what is no message, or lacks a string that its type needs, or
 * has a number out of range; -ENOTSUP for a type that we do not know. What was decoded is freed
 * with request_done() and event_done(); both are safe on what failed. */
int request_decode(const char *packet, size_t length, Request *ret, Error *reterr);
int event_decode(const char *packet, size_t length, Event *ret, Error *reterr);

void request_done(Request *request);
void event_done(Event *event);

#define cleanup_request cleanup_with(request_done)
#define cleanup_event   cleanup_with(event_done)

/* Packets that a socket did not take yet, in order. */
typedef struct Packet {
        struct Packet *next;
        size_t length;
        char *data;
} Packet;

typedef struct PacketQueue {
        Packet *first;
        size_t bytes;
} PacketQueue;

/* Appends; owns 'data' on success. 0; -ENOBUFS when there would be more than 'max_bytes' in it;
 * -ENOMEM. */
int packet_queue_append(PacketQueue *queue, size_t max_bytes, char *data, size_t length);
void packet_queue_pop(PacketQueue *queue);
void packet_queue_clear(PacketQueue *queue);
