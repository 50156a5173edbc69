/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The protocol between the agent and a pod's shim: one JSON object in each packet of a SEQPACKET
 * socket.
 *
 * Requests go to the shim, events come from it. After an upgrade a new agent communicates with old
 * shims. So a message may contain members that its reader does not know, which are skipped, and
 * members that its writer does not know may be missing: numbers are then 0, and strings NULL. Pure;
 * this module uses no sockets. */

#include "common/error.h"

#include <stdint.h>
#include <sys/types.h>

enum {
        SHIM_PROTOCOL_VERSION = 7, /* version 1 had neither exec-in nor note, nor a delayed stop;
                                      before 3 the greeting had no network namespace; before 4 there
                                      was no attach, and no target of a container; before 5 there
                                      was no usage; before 6 the fstab had neither copy nor
                                      mountpoint; before 7 there were no devices */
        SHIM_PROTOCOL_PACKET_MAX = 64 * 1024,
        SHIM_PROTOCOL_NOTE_MAX = 1024,
        SHIM_PROTOCOL_MESSAGE_MAX = 4096,
        SHIM_PROTOCOL_OUTPUT_MAX =
                48 * 1024, /* bytes of a program's output; fewer if the packet is full earlier */
};

typedef struct StringList {
        const char *const *items;
        size_t n;
} StringList;

typedef enum ShimRequestType {
        SHIM_REQUEST_HELLO,    /* version */
        SHIM_REQUEST_SETUP,    /* fstab, hostname, log_max_size, log_max_files */
        SHIM_REQUEST_RUN,      /* id, name, attempt, bundle, log, journal_fields, events_file, note,
                                * has_input, has_terminal, keeps_early, target; with a descriptor
                                * of a copy of the runtime if there is one */
        SHIM_REQUEST_STOP,     /* id, signal, delay_usec, grace_usec */
        SHIM_REQUEST_DELETE,   /* id, directories */
        SHIM_REQUEST_TEARDOWN, /* nothing */
        SHIM_REQUEST_EXEC, /* id, arguments, environment, input, in_host, timeout_usec; interface,
                            * address, keeps_router_advertisements */
        SHIM_REQUEST_SESSION, /* id (of a container), arguments, has_…; with a descriptor */
        SHIM_REQUEST_EXEC_IN, /* id, container, arguments, timeout_usec */
        SHIM_REQUEST_NOTE,    /* id, note */
        SHIM_REQUEST_ATTACH,  /* id (of a container), has_…, is_input_once; with a descriptor */
        SHIM_REQUEST_USAGE,   /* nothing */
        SHIM_REQUEST_DEVICES, /* id (of a container), devices */
        N_SHIM_REQUEST_TYPES,
} ShimRequestType;

typedef struct ShimRequest {
        ShimRequestType type;
        unsigned version;
        const char *fstab;
        const char *hostname;  /* for the pod's UTS namespace; NULL: unchanged */
        uint64_t log_max_size; /* in bytes; 0: no limit */
        unsigned log_max_files;
        const char *id;
        const char *name;
        unsigned attempt;
        const char *bundle;
        const char *log;
        StringList journal_fields; /* "NAME=value": output lines also go to the journal, with these
                                      fields */
        const char *events_file;
        const char *note;
        bool has_input;     /* its standard input is open; without an attached session it has no
                             * data */
        bool has_output;    /* for a session: the client reads standard output */
        bool has_error;     /* likewise */
        bool has_terminal;  /* config.json requests a terminal, or the session's client does */
        bool is_held;       /* the session's command waits for CHANNEL_START */
        bool keeps_early;   /* the first client that attaches also gets the earlier output */
        bool is_input_once; /* when the first client's input ends, the container's input ends */
        const char *target; /* ID of a running container whose PID namespace is bound to
                               <bundle>/pid-namespace; NULL: none */
        int signal;
        uint64_t delay_usec;   /* delay before the stop signal */
        uint64_t grace_usec;   /* delay before SIGKILL; the grace period */
        const char *container; /* its ID */
        StringList directories;
        StringList devices;     /* all attached hot-plug devices, as in mainstay.devices of
                                   config.json */
        StringList arguments;   /* arguments[0] is a path */
        StringList environment; /* the whole environment */
        const char *input;      /* standard input; NULL: empty */
        bool in_host;           /* in the node's network and UTS namespaces */
        uint64_t timeout_usec;  /* 0: no limit */
        const char *interface;  /* run the program only if this interface is missing, with a dummy
                                 * interface */
        const char *address;    /* address of the dummy interface */
        bool keeps_router_advertisements; /* the program makes the node forward IPv6; see
                                             shim/router-advertisements.h */
        void *storage;                    /* owns the strings of a decoded request */
} ShimRequest;

typedef enum ShimEventType {
        SHIM_EVENT_HELLO,        /* version, pid of the shim */
        SHIM_EVENT_SYNCED,       /* its complete state has been reported after a connection:
                                  * ready */
        SHIM_EVENT_READY,        /* setup is complete */
        SHIM_EVENT_SETUP_FAILED, /* message; setup may be requested again */
        SHIM_EVENT_STARTING,     /* only replayed: the attempt is being started, its result follows;
                                  * id, name, attempt, note */
        SHIM_EVENT_STARTED,      /* a container runs: id, name, attempt, note, pid, started_at,
                                  * replayed */
        SHIM_EVENT_START_FAILED, /* no process of the attempt is left: id, name, attempt, note,
                                  * message, runtime_failed, replayed, deleted */
        SHIM_EVENT_EXITED,       /* like SHIM_EVENT_STARTED; exit_code, signal, oom_killed,
                                  * finished_at, deleted */
        SHIM_EVENT_DELETED,      /* only the attempt's log is left: id, name, attempt, note */
        SHIM_EVENT_EXEC_DONE, /* id of the request, exit_code, signal, timed_out, output, error; or
                               * message if the program could not be started */
        SHIM_EVENT_ERROR,     /* a refused request: message; id if the request has one */
        SHIM_EVENT_USAGE,     /* of a running container: id, n_descriptors, n_sockets,
                               * open_files_max; without id: the end of the list */
        N_SHIM_EVENT_TYPES,   /* number of types that a packet may have */

        /* Never in a packet: the agent's end reports this when the shim is gone, because it was
         * torn down or died. */
        SHIM_EVENT_LOST,
} ShimEventType;

typedef struct ShimEvent {
        ShimEventType type;
        unsigned version;
        const char *id;      /* of the container or request; NULL for events of the sandbox */
        const char *name;    /* container name */
        const char *note;    /* as in the request */
        const char *message; /* bytes that are not UTF-8 are sent as '?' */
        const char *output;  /* likewise */
        const char *error;   /* likewise; the last line of standard error */
        unsigned attempt;
        pid_t pid;
        int exit_code; /* 0..255; 128 + signal if a signal ended the process, as container runtimes
                        * report it */
        int signal;    /* 0 if it exited by itself */
        bool oom_killed;
        bool runtime_failed; /* true: the OCI runtime failed or is missing; false: an earlier mount
                                or file failed */
        bool replayed;       /* reported after a connection, not when it happened */
        bool ready;
        bool deleted; /* only replayed: the remains of the attempt are already deleted */
        bool timed_out;
        uint64_t started_at;                               /* realtime, microseconds */
        uint64_t finished_at;                              /* realtime, microseconds */
        uint64_t n_descriptors, n_sockets, open_files_max; /* as in common/process-usage.h */
        void *storage;                                     /* owns the strings of a decoded event */
} ShimEvent;

/* Encodes one packet, which the caller frees. 0; -EMSGSIZE if it would be longer than
 * SHIM_PROTOCOL_PACKET_MAX; -EILSEQ if a string is not UTF-8; -ENOMEM. */
int shim_request_encode(const ShimRequest *request, char **ret_packet, size_t *ret_length);
int shim_event_encode(const ShimEvent *event, char **ret_packet, size_t *ret_length);

/* Decodes one packet. 0; -EBADMSG if it is not a message, if a string that its type requires is
 * missing, or if a number is out of range; -ENOTSUP for an unknown type. Free the result with
 * shim_request_done() or shim_event_done(); both are safe after a failure. Missing strings of an
 * event are "", but a missing id is NULL. */
int shim_request_decode(const char *packet, size_t length, ShimRequest *ret, Error *reterr);
int shim_event_decode(const char *packet, size_t length, ShimEvent *ret, Error *reterr);

void shim_request_done(ShimRequest *request);
void shim_event_done(ShimEvent *event);

#define cleanup_shim_request cleanup_with(shim_request_done)
#define cleanup_shim_event   cleanup_with(shim_event_done)

/* Packets that the socket has not accepted yet, in order. */
typedef struct QueuedPacket {
        struct QueuedPacket *next;
        size_t length;
        char *data;
} QueuedPacket;

typedef struct PacketQueue {
        QueuedPacket *first;
        size_t bytes;
} PacketQueue;

/* Appends a packet; owns 'data' on success. 0; -ENOBUFS if the queue would exceed 'max_bytes';
 * -ENOMEM. */
int packet_queue_append(PacketQueue *queue, size_t max_bytes, char *data, size_t length);
void packet_queue_pop(PacketQueue *queue);
void packet_queue_clear(PacketQueue *queue);
