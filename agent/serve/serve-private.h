/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the files of this room share: the server, its connections, and answers that are streams. */

#include "agent/serve/serve.h"

#include <microhttpd.h>
#include <sys/types.h>

enum {
        CONNECTIONS_MAX = 32,
        STREAMS_MAX = 24, /* of the connections; so a question is always answered */
        CONNECTION_MEMORY = 32 * 1024,
        WATCH_QUEUE_MAX = 1024 * 1024,
};

typedef struct Stream Stream;
typedef struct Connection Connection;
typedef struct Upgrade Upgrade;

struct Serve {
        sd_event *event;
        const ServeHandlers *handlers;
        void *userdata;
        uint64_t request_timeout_usec;

        char *socket_path;
        dev_t socket_device; /* of the socket we made, to remove no other */
        ino_t socket_inode;

        sd_event_source *listen;   /* a client is at the door; off while there are too many */
        sd_event_source *reopen;   /* timer: descriptors had run out */
        sd_event_source *readable; /* microhttpd's epoll descriptor */
        sd_event_source *turn;     /* deferred: microhttpd or a stream has more to do */
        struct MHD_Daemon *daemon;

        unsigned n_connections;
        unsigned n_endless; /* streams that last as long as the client likes */
        unsigned n_watchers;
        Stream *streams;
};

/* Lets microhttpd do what there is to do, soon. */
void serve_schedule(Serve *serve);

/* One client. It has request_timeout_usec to say a whole request, and the same again to take a step
 * of the answer, unless the answer is an endless stream. */
struct Connection {
        Serve *serve;
        int fd; /* microhttpd's */
        sd_event_source *deadline;
        Upgrade *upgrade; /* that was promised; a client may go before it comes to that */
};

void connection_set_deadline(Connection *connection);
void connection_clear_deadline(Connection *connection);
Connection *connection_of(struct MHD_Connection *http);

/* route.c: answers a request. As microhttpd's MHD_AccessHandlerCallback. */
enum MHD_Result serve_route(void *userdata, struct MHD_Connection *http, const char *url,
                            const char *method, const char *version, const char *upload,
                            size_t *upload_size, void **request);

/* Answers with a text of ours, which is copied. */
enum MHD_Result serve_answer(struct MHD_Connection *http, unsigned status, const char *type,
                             const char *text);

/* Answers with one sentence; takes the place of what went wrong. */
enum MHD_Result serve_refuse(struct MHD_Connection *http, unsigned status, const char *format, ...)
        printf_like(3, 4);

/* Answers with JSON that is the agent's, and frees it; NULL: memory has ended. */
enum MHD_Result serve_answer_json_take(struct MHD_Connection *http, char *json);

/* The status of an answer for what went wrong. */
unsigned serve_status_of(int r);

/* The routes that have a file of their own. 'rest' is what follows the route's name. */
enum MHD_Result serve_pods(Serve *serve, struct MHD_Connection *http, const char *rest);
enum MHD_Result serve_events(Serve *serve, struct MHD_Connection *http, const char *rest);
enum MHD_Result serve_config_maps(Serve *serve, struct MHD_Connection *http, const char *rest);
enum MHD_Result serve_secrets(Serve *serve, struct MHD_Connection *http, const char *rest);
enum MHD_Result serve_priority_classes(Serve *serve, struct MHD_Connection *http, const char *rest);
enum MHD_Result serve_runtime_classes(Serve *serve, struct MHD_Connection *http, const char *rest);
enum MHD_Result serve_manifests(Serve *serve, struct MHD_Connection *http, const char *rest);
enum MHD_Result serve_images(Serve *serve, struct MHD_Connection *http, const char *rest);
enum MHD_Result serve_pull(Serve *serve, struct MHD_Connection *http, const char *rest);
enum MHD_Result serve_remove_image(Serve *serve, struct MHD_Connection *http, const char *rest);
enum MHD_Result serve_prune(Serve *serve, struct MHD_Connection *http, const char *rest);
enum MHD_Result serve_delete(Serve *serve, struct MHD_Connection *http, const char *rest);
enum MHD_Result serve_daemonsets(Serve *serve, struct MHD_Connection *http, const char *rest);
enum MHD_Result serve_revisions(Serve *serve, struct MHD_Connection *http, const char *rest);
enum MHD_Result serve_node(Serve *serve, struct MHD_Connection *http, const char *rest);
enum MHD_Result serve_order(Serve *serve, struct MHD_Connection *http, const char *rest);
enum MHD_Result serve_exec(Serve *serve, struct MHD_Connection *http, const char *rest);
Upgrade *upgrade_free(Upgrade *upgrade);
enum MHD_Result serve_logs(Serve *serve, struct MHD_Connection *http, const char *rest);

/* A parameter of the query, or NULL. A flag is true as Go's ParseBool has it, and when it is there
 * without a value. */
const char *serve_parameter(struct MHD_Connection *http, const char *name);
bool serve_flag(struct MHD_Connection *http, const char *name);

/* A whole number of at least 'min'. 0 with '*ret' left alone where the parameter is not there. */
int serve_number(struct MHD_Connection *http, const char *name, int64_t min, int64_t *ret,
                 Error *reterr);

/* Cuts "<namespace>/<pod>/<container>" apart in place. 0 or -EINVAL. */
int serve_split_path(char *path, const char *ret_names[3]);

/* True where the client is root, or who the agent is; else it is told so. */
bool serve_may_change(struct MHD_Connection *http, enum MHD_Result *ret);

/* stream.c */

/* Where a stream's bytes come from. */
typedef struct StreamKind {
        const char *content_type;
        bool is_endless; /* may last; counts against STREAMS_MAX and has no deadline */

        /* Bytes written (> 0), or
         * 0: nothing now; stream_wake() will be called,
         * -EAGAIN: call again in another turn,
         * -ENODATA: the end,
         * another -errno: the answer breaks off. */
        ssize_t (*read)(void *source, char *buffer, size_t size);
        void (*free)(void *source);
} StreamKind;

struct Stream {
        Serve *serve;
        struct MHD_Connection *http;
        Connection *connection;
        const StreamKind *kind;
        void *source;
        sd_event_source *hangup; /* the client is gone while we have nothing to say to it */
        bool is_suspended;
        bool is_yielding; /* suspended for one turn only */
        bool is_dropped;
        Stream *previous, *next;
};

/* Answers with what the kind reads from the source, which it takes over whatever happens. */
enum MHD_Result stream_answer(Serve *serve, struct MHD_Connection *http, const StreamKind *kind,
                              void *source_consume, Stream **ret);

/* There is something to read. */
void stream_wake(Stream *stream);

/* The client is not worth waiting for: the connection ends, whatever it is doing. */
void stream_drop(Stream *stream);

/* Those that gave way for a turn go on. */
void streams_on_turn(Serve *serve);

/* Wakes all, so that microhttpd can be stopped. */
void streams_drop_all(Serve *serve);

/* ---- text.c: an answer that is made a piece at a time ---- */

typedef struct Text {
        char *text; /* what is being given out */
        size_t length, taken;
} Text;

/* The next piece. 1, or -ENOMEM. */
int text_say(Text *text, const char *before, const char *json, const char *after);

/* Fills the buffer from what 'next' says by text_say(). 'next' gives 1, or what a StreamKind's
 * read() gives. */
ssize_t text_read(Text *text, int (*next)(void *), void *userdata, char *buffer, size_t size);
void text_done(Text *text);
