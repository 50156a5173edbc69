/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the files of this room share: the server, its connections, and answers that are streams. */

#include "agent/http/http-server.h"

#include <microhttpd.h>
#include <sys/types.h>

enum {
        HTTP_CONNECTIONS_MAX = 32,
        UNBOUNDED_STREAMS_MAX = 24, /* of the connections; so a question is always answered */
        HTTP_CONNECTION_MEMORY = 32 * 1024,
        WATCH_QUEUE_BYTES_MAX = 1024 * 1024,
};

typedef struct ResponseStream ResponseStream;
typedef struct HttpConnection HttpConnection;
typedef struct ExecUpgrade ExecUpgrade;

struct HttpServer {
        sd_event *event;
        const HttpServerHandlers *handlers;
        void *userdata;
        uint64_t request_timeout_usec;

        char *socket_path;
        dev_t socket_device; /* of the socket we made, to remove no other */
        ino_t socket_inode;

        sd_event_source *listen_source; /* a client is at the door; off while there are too many */
        sd_event_source *accept_retry_timer; /* timer: descriptors had run out */
        sd_event_source *mhd_source;         /* microhttpd's epoll descriptor */
        sd_event_source *deferred_run;       /* deferred: microhttpd or a stream has more to do */
        struct MHD_Daemon *mhd;

        unsigned n_connections;
        unsigned n_unbounded_streams; /* streams that last as long as the client likes */
        unsigned n_pod_watchers;
        ResponseStream *streams;
};

/* Lets microhttpd do what there is to do, soon. */
void http_server_schedule_run(HttpServer *server);

/* One client. It has request_timeout_usec to say a whole request, and the same again to take a step
 * of the answer, unless the answer is an endless stream. */
struct HttpConnection {
        HttpServer *server;
        int fd; /* microhttpd's */
        sd_event_source *deadline;
        ExecUpgrade *upgrade; /* that was promised; a client may go before it comes to that */
};

void http_connection_set_deadline(HttpConnection *connection);
void http_connection_clear_deadline(HttpConnection *connection);
HttpConnection *http_connection_of(struct MHD_Connection *http);

/* route.c: answers a request. As microhttpd's MHD_AccessHandlerCallback. */
enum MHD_Result http_route_request(void *userdata, struct MHD_Connection *http, const char *url,
                                   const char *method, const char *version, const char *upload,
                                   size_t *upload_size, void **request);

/* Answers with a text of ours, which is copied. */
enum MHD_Result http_reply_text(struct MHD_Connection *http, unsigned status, const char *type,
                                const char *text);

/* Answers with one sentence; takes the place of what went wrong. */
enum MHD_Result http_reply_error(struct MHD_Connection *http, unsigned status, const char *format,
                                 ...) printf_like(3, 4);

/* Answers with JSON that is the agent's, and frees it; NULL: memory has ended. */
enum MHD_Result http_reply_json_consume(struct MHD_Connection *http, char *json);

/* The status of an answer for what went wrong. */
unsigned http_status_from_errno(int r);

/* The routes that have a file of their own. 'rest' is what follows the route's name. */
enum MHD_Result http_handle_get_pods(HttpServer *server, struct MHD_Connection *http,
                                     const char *rest);
enum MHD_Result http_handle_get_events(HttpServer *server, struct MHD_Connection *http,
                                       const char *rest);
enum MHD_Result http_handle_get_config_maps(HttpServer *server, struct MHD_Connection *http,
                                            const char *rest);
enum MHD_Result http_handle_get_secrets(HttpServer *server, struct MHD_Connection *http,
                                        const char *rest);
enum MHD_Result http_handle_get_priority_classes(HttpServer *server, struct MHD_Connection *http,
                                                 const char *rest);
enum MHD_Result http_handle_get_runtime_classes(HttpServer *server, struct MHD_Connection *http,
                                                const char *rest);
enum MHD_Result http_handle_get_manifests(HttpServer *server, struct MHD_Connection *http,
                                          const char *rest);
enum MHD_Result http_handle_get_images(HttpServer *server, struct MHD_Connection *http,
                                       const char *rest);
enum MHD_Result http_handle_pull_image(HttpServer *server, struct MHD_Connection *http,
                                       const char *rest);
enum MHD_Result http_handle_remove_image(HttpServer *server, struct MHD_Connection *http,
                                         const char *rest);
enum MHD_Result http_handle_prune_images(HttpServer *server, struct MHD_Connection *http,
                                         const char *rest);
enum MHD_Result http_handle_delete_pod(HttpServer *server, struct MHD_Connection *http,
                                       const char *rest);
enum MHD_Result http_handle_get_daemonsets(HttpServer *server, struct MHD_Connection *http,
                                           const char *rest);
enum MHD_Result http_handle_get_revisions(HttpServer *server, struct MHD_Connection *http,
                                          const char *rest);
enum MHD_Result http_handle_get_node(HttpServer *server, struct MHD_Connection *http,
                                     const char *rest);
enum MHD_Result http_handle_daemonset_action(HttpServer *server, struct MHD_Connection *http,
                                             const char *rest);
enum MHD_Result http_handle_exec(HttpServer *server, struct MHD_Connection *http, const char *rest);
ExecUpgrade *exec_upgrade_free(ExecUpgrade *upgrade);
enum MHD_Result http_handle_container_logs(HttpServer *server, struct MHD_Connection *http,
                                           const char *rest);

/* A parameter of the query, or NULL. A flag is true as Go's ParseBool has it, and when it is there
 * without a value. */
const char *http_query_parameter(struct MHD_Connection *http, const char *name);
bool http_query_flag(struct MHD_Connection *http, const char *name);

/* A whole number of at least 'min'. 0 with '*ret' left alone where the parameter is not there. */
int http_query_number(struct MHD_Connection *http, const char *name, int64_t min, int64_t *ret,
                      Error *reterr);

/* Cuts "<namespace>/<pod>/<container>" apart in place. 0 or -EINVAL. */
int http_split_container_path(char *path, const char *ret_names[3]);

/* True where the client is root, or who the agent is; else it is told so. */
bool http_require_root(struct MHD_Connection *http, enum MHD_Result *ret);

/* stream.c */

/* Where a stream's bytes come from. */
typedef struct ResponseStreamKind {
        const char *content_type;
        bool is_unbounded; /* may last; counts against UNBOUNDED_STREAMS_MAX and has no deadline */

        /* Bytes written (> 0), or
         * 0: nothing now; response_stream_wake() will be called,
         * -EAGAIN: call again in another turn,
         * -ENODATA: the end,
         * another -errno: the answer breaks off. */
        ssize_t (*read)(void *source, char *buffer, size_t size);
        void (*free)(void *source);
} ResponseStreamKind;

struct ResponseStream {
        HttpServer *server;
        struct MHD_Connection *http;
        HttpConnection *connection;
        const ResponseStreamKind *kind;
        void *source;
        sd_event_source *hangup; /* the client is gone while we have nothing to say to it */
        bool is_suspended;
        bool is_yielding; /* suspended for one turn only */
        bool is_aborted;
        ResponseStream *previous, *next;
};

/* Answers with what the kind reads from the source, which it takes over whatever happens. */
enum MHD_Result response_stream_start(HttpServer *server, struct MHD_Connection *http,
                                      const ResponseStreamKind *kind, void *source_consume,
                                      ResponseStream **ret);

/* There is something to read. */
void response_stream_wake(ResponseStream *stream);

/* The client is not worth waiting for: the connection ends, whatever it is doing. */
void response_stream_abort(ResponseStream *stream);

/* Those that gave way for a turn go on. */
void response_streams_resume_yielding(HttpServer *server);

/* Wakes all, so that microhttpd can be stopped. */
void response_streams_abort_all(HttpServer *server);

/* ---- text.c: an answer that is made a piece at a time ---- */

typedef struct StreamText {
        char *text; /* what is being given out */
        size_t length, taken;
} StreamText;

/* The next piece. 1, or -ENOMEM. */
int stream_text_format(StreamText *text, const char *before, const char *json, const char *after);

/* Fills the buffer from what 'next' says by stream_text_format(). 'next' gives 1, or what a
 * ResponseStreamKind's read() gives. */
ssize_t stream_text_read(StreamText *text, int (*next)(void *), void *userdata, char *buffer,
                         size_t size);
void stream_text_done(StreamText *text);
