/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The HTTP server on the local unix socket, for the mainstay CLI, mainstay-api and tools of the
 * kubelet: status, logs, exec, metrics. It calls the agent through HttpServerHandlers and has no
 * state except its connections. Requests that change something are permitted only for root, not for
 * the socket's group. */

#include "agent/model/object.h"
#include "agent/model/system-log-query.h"
#include "common/error.h"

#include <stdint.h>
#include <stdio.h>
#include <systemd/sd-event.h>

typedef struct HttpServer HttpServer;

/* The log of one attempt of a container. */
typedef struct HttpContainerLog {
        char *directory;  /* absolute; contains "<attempt>.log" and its rotated files */
        unsigned attempt; /* the number in the file name */
        bool is_live;     /* more may be written; http_server_notify_log_end() follows */
} HttpContainerLog;

/* One file of the manifest directory. Strings are borrowed. */
typedef struct HttpManifestStatus {
        const char *file;
        char *const *pods;       /* "namespace/name" each */
        char *const *daemonsets; /* likewise; the pods of DaemonSets are among the pods */
        char *const *warnings;
        const char *error;    /* NULL: the file is valid */
        uint64_t error_since; /* realtime, microseconds */
} HttpManifestStatus;

/* The reply to /manifests, which the agent fills in. */
typedef struct HttpManifestReport HttpManifestReport;

/* 'error' is the reason why the directory as a whole cannot be read, 'warning' another problem of
 * the directory; both may be NULL. */
void http_report_manifest_directory(HttpManifestReport *report, const char *directory,
                                    const char *error, const char *warning);
void http_report_manifest(HttpManifestReport *report, const HttpManifestStatus *manifest);
void http_report_archive_error(HttpManifestReport *report, const char *archive,
                               const char *message);

/* A command to run in a container, or NULL to attach to the container itself, and the streams that
 * the client requests. */
typedef struct HttpExecOptions {
        char *const *argv;
        bool has_input, has_output, has_error, has_terminal;
        bool is_held; /* the command waits for the client's message CHANNEL_START */
} HttpExecOptions;

/* A request of a client of mainstay-api, with the credentials that it presented; NULL: none. */
typedef struct HttpAccessQuestion {
        const char *ticket, *token;
        const char *method, *path; /* of the agent's request, or of the kubelet's */
        bool is_session;           /* for a command or a port: "create" is required, regardless of
                                    * the method */
} HttpAccessQuestion;

typedef struct HttpAccess HttpAccess;

/* The decision: 200, or the status and the text of the reply. 'user' is JSON; NULL: unknown. */
void http_access_done(HttpAccess *access, unsigned status, const char *message, const char *user);

typedef int (*http_each_object_t)(const char *key, const char *json, void *context);

/* The functions of the agent that the server needs. They are called from the loop, return
 * immediately, and receive the 'userdata' of http_server_new(). */
typedef struct HttpServerHandlers {
        /* The first pod whose key is greater (by strcmp) than 'after'; NULL: the very first. The
         * pod of 'after' may no longer exist. Keys are unique and opaque to the server, for example
         * "<namespace>/<name>/<uid>". 1 with the key and the v1.Pod as compact JSON, both of which
         * the server frees; 0 if there is none; -ENOMEM.
         *
         * A list is sent pod by pod, over many turns of the loop if the client is slow, so that it
         * is never completely in memory. */
        int (*next_pod)(void *userdata, const char *after, char **ret_key, char **ret_json);

        /* The first event after the one with this number; 0: the oldest. 1 with its number and the
         * v1.Event as compact JSON, which the server frees; 0 if there is none; -ENOMEM. An event
         * that repeats is returned again, with a greater number. */
        int (*next_event)(void *userdata, uint64_t after, uint64_t *ret_number, char **ret_json);

        /* The first object of the kind whose "<namespace>/<name>" is greater than 'after';
         * otherwise like next_pod(). The values of a Secret are not in its JSON. */
        int (*next_object)(void *userdata, ObjectKind kind, const char *after, char **ret_key,
                           char **ret_json);

        /* Reports all files and archives, with http_report_…(). */
        void (*report)(void *userdata, HttpManifestReport *report);

        /* The log of a container's latest attempt, or of the previous one. 'pod' is the full name,
         * with the node's suffix. -ENOENT (404): no such pod, container or earlier attempt;
         * -EAGAIN (400): it has not started; both with a message. The server frees the directory of
         * 'ret'. */
        int (*find_log)(void *userdata, const char *namespace, const char *pod,
                        const char *container, bool previous, HttpContainerLog *ret, Error *reterr);

        /* Deletes a pod ('pod' is the full name), which starts again if its manifest still exists.
         * 'grace_seconds' is -1 for the pod's own grace period. -ENOENT (404), -EAGAIN (503), with
         * a message. */
        int (*delete_pod)(void *userdata, const char *namespace, const char *pod,
                          int64_t grace_seconds, Error *reterr);

        /* Runs a command for a client, which speaks WebSocket on the socket from now on; the
         * descriptor is duplicated. If it is negative, the request is only checked. -ENOENT (404),
         * -EAGAIN (400): the container is not running; with a message. */
        int (*exec)(void *userdata, const char *namespace, const char *pod, const char *container,
                    const HttpExecOptions *exec, int socket_fd, Error *reterr);

        /* Attaches a client to the container itself, with the same conditions and errors. -ENOTSUP
         * (501): the shim does not support it. The container decides whether there is a terminal,
         * regardless of the options. */
        int (*attach)(void *userdata, const char *namespace, const char *pod, const char *container,
                      const HttpExecOptions *attach, int socket_fd, Error *reterr);

        /* Adds an ephemeral container, a v1.EphemeralContainer as JSON, to a pod, and returns its
         * name, which the server frees. -ENOENT (404), -EINVAL (400), -EAGAIN (400): the pod is not
         * running; with a message. */
        int (*add_ephemeral_container)(void *userdata, const char *namespace, const char *pod,
                                       const char *json, char **ret_name, Error *reterr);

        /* Checks that the pod is running and has this UID; NULL: any. 0; -ENOENT (404), another
         * -errno (500), with a message. */
        int (*check_pod)(void *userdata, const char *namespace, const char *pod, const char *uid,
                         Error *reterr);

        /* Does the same check, then requests a connection to a TCP port on the pod's loopback
         * address, for port-forward. Returns the socket through which the connection arrives, or
         * -errno. */
        int (*connect_to_port)(void *userdata, const char *namespace, const char *pod,
                               const char *uid, unsigned port, bool is_ipv6, Error *reterr);

        /* Opens a file below /var/log or the listing of a directory as HTML, or starts a query.
         * Returns a descriptor, with the type of its content; -EPERM (405): disabled in the
         * configuration; -EISDIR (301): the path of a directory does not end in a slash; -ENOENT
         * (404); -EAGAIN (429): too many queries; with a message. */
        int (*open_system_log)(void *userdata, const char *path, const SystemLogQuery *query,
                               const char **ret_type, Error *reterr);

        /* The settings of mainstay-api as JSON, which the server frees; secret settings go to the
         * signer. 0, or -errno with a message. */
        int (*node_api_settings)(void *userdata, char **ret_json, Error *reterr);

        /* Connects mainstay-api to the signer. Returns a descriptor, or -errno with a message. */
        int (*connect_signer)(void *userdata, Error *reterr);

        /* The data of a kubeconfig for mainstay-api, as JSON that the server frees: "nodeName", and
         * in PEM "certificateAuthority", "clientCertificate", "clientKey". -EINVAL (400) with a
         * message if the node has joined an API server. */
        int (*make_kubeconfig)(void *userdata, char **ret_json, Error *reterr);

        /* The identity of the node for encrypted Secrets, as JSON that the server frees, or NULL;
         * and a function that starts a change, by its name: -EINVAL (400), -EBUSY (503), with a
         * message. */
        char *(*identity)(void *userdata);
        int (*change_identity)(void *userdata, const char *action, Error *reterr);

        /* The encrypted Secrets, and whether this node can open them, as JSON that the server
         * frees, or NULL. */
        char *(*encrypted_secrets)(void *userdata);

        /* Decides on a client's request, and calls http_access_done() once, before or after it
         * returns, unless cancel_access() is called with '*ret_check'. 0 or -ENOMEM. */
        int (*check_access)(void *userdata, const HttpAccessQuestion *question, HttpAccess *access,
                            void **ret_check);
        void (*cancel_access)(void *check);

        /* The images of the store, as JSON that the server frees, or NULL. */
        char *(*images)(void *userdata);

        /* Each function receives an image reference or digest: -EINVAL (400), -ENOENT (404), -EBUSY
         * (409). Prune receives an empty string, and returns the number of removed images. */
        int (*pull_image)(void *userdata, const char *image, Error *reterr);
        int (*remove_image)(void *userdata, const char *image, Error *reterr);
        int (*prune_images)(void *userdata, const char *image, Error *reterr);

        /* 0, or -errno with a message until the result of the first scan has been applied. */
        int (*is_ready)(void *userdata, Error *reterr);

        /* Calls 'each' for every DaemonSet, always in the same order, with "<namespace>/<name>" and
         * its compact JSON; the second function does the same for every ControllerRevision. 0, a
         * negative value that 'each' returned, or -ENOMEM. */
        int (*foreach_daemonset)(void *userdata, http_each_object_t each, void *context);
        int (*foreach_revision)(void *userdata, http_each_object_t each, void *context);

        /* This node as a v1.Node, as JSON that the server frees; or NULL. */
        char *(*node)(void *userdata);

        /* An action on a DaemonSet: "undo" (to a revision; 0: the previous one), "restart",
         * "delete", "orphan" (delete it and keep its pods). 0; 1: there is nothing to do; -ENOENT
         * (404), -EINVAL (400), -EAGAIN (503), with a message. */
        int (*run_daemonset_action)(void *userdata, const char *namespace, const char *name,
                                    const char *verb, int64_t revision, Error *reterr);

        /* The metrics as Prometheus text (agent_metrics_format()), which the server frees; or
         * NULL. */
        char *(*metrics)(void *userdata);

        /* The resource metrics of containers, in the same form (resource_metrics_format()). */
        char *(*resource_metrics)(void *userdata);

        /* The same for cAdvisor's metrics and for the results of probes. */
        char *(*cadvisor_metrics)(void *userdata);
        char *(*probe_metrics)(void *userdata);

        /* The kubelet's summary of resource usage, the pods with running containers as a
         * v1.PodList, and the configuration, each as JSON that the server frees; or NULL. */
        char *(*stats_summary)(void *userdata, bool only_cpu_and_memory);
        char *(*running_pods)(void *userdata);
        char *(*configuration)(void *userdata);

        /* The configuration, with its secrets masked, as JSON that the server frees, or NULL. */
        char *(*whole_configuration)(void *userdata);

        /* The dump of the agent's state as text that the server frees, or NULL. */
        char *(*dump)(void *userdata);
} HttpServerHandlers;

typedef struct HttpServerConfig {
        sd_event *event;
        const char *socket_path; /* "<run-dir>/mainstay.sock"; at most 102 bytes, for ".new" */
        const HttpServerHandlers *handlers; /* outlive the server, as do userdata and event */
        void *userdata;
        uint64_t request_timeout_usec; /* time for a client to send a whole request; 0: 10 s */
        bool is_alone;                 /* without an API server: mainstay-api serves kubectl */
} HttpServerConfig;

/* Opens the socket, mode 0660, and starts to serve. The socket is renamed into place, so a client
 * finds either the old or the new one; the socket of a dead agent is replaced. The caller ensures
 * that no other agent is running. 0 or -errno. */
int http_server_new(const HttpServerConfig *config, HttpServer **ret, Error *reterr);

/* Looks up the user of mainstay-api, and permits it to use the socket: the user may have been
 * created after the server started. Otherwise this happens when /etc/passwd changes. False: there
 * is no such user, or the group of the socket cannot be set, which is logged. The server is
 * 'userdata' of a callback. */
bool http_server_admit_api_user(void *server);

/* Closes all connections, and removes the socket unless the next agent has replaced it. */
HttpServer *http_server_free(HttpServer *server);
DEFINE_CLEANUP(HttpServer *, http_server_free)

/* Prints the connections and streams for `mainstay debug dump`. */
void http_server_dump(const HttpServer *server, FILE *out);

typedef enum HttpWatchEventType {
        HTTP_WATCH_ADDED,
        HTTP_WATCH_MODIFIED,
        HTTP_WATCH_DELETED,
        N_HTTP_WATCH_EVENT_TYPES,
} HttpWatchEventType;

/* True while there is a watch of pods; otherwise no JSON is needed for http_server_notify_pod(). */
bool http_server_has_pod_watchers(HttpServer *server);

/* Sends the new state of a pod to all watches; 'key' is its key in next_pod(). For
 * HTTP_WATCH_DELETED, 'json' is its last state. To be called once next_pod() returns the same
 * state. The strings are copied.
 */
void http_server_notify_pod(HttpServer *server, HttpWatchEventType change, const char *key,
                            const char *json);

/* Notifies the watches of events that next_event() returns a new event. */
void http_server_notify_event(HttpServer *server);

/* Kinds of objects that are compared with the state that a watch has sent. */
typedef enum HttpObjects {
        HTTP_DAEMONSETS,   /* of foreach_daemonset() */
        HTTP_NODE,         /* of node() */
        HTTP_DATA_OBJECTS, /* of next_object() */
} HttpObjects;

/* Objects of this kind may have changed: checks the watches of the kind. */
void http_server_notify_objects(HttpServer *server, HttpObjects kind);

/* The attempt has ended and its log is complete: streams that follow it send the rest and end.
 * 'directory' and 'attempt' are those of find_log(); unknown ones are ignored. Also called when the
 * pod is removed. */
void http_server_notify_log_end(HttpServer *server, const char *directory, unsigned attempt);
