/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The HTTP server on the local unix socket, for the mainstay CLI, mainstay-api and tools of the
 * kubelet: status, logs, exec, metrics. It calls the agent through HttpServerHandlers and keeps no
 * state but its connections. Requests that change something are for root, not for the socket's
 * group. */

#include "agent/model/object.h"
#include "agent/model/system-log-query.h"
#include "common/error.h"

#include <stdint.h>
#include <stdio.h>
#include <systemd/sd-event.h>

typedef struct HttpServer HttpServer;

/* The log of one attempt of a container. */
typedef struct HttpContainerLog {
        char *directory;  /* absolute; holds "<attempt>.log" and its rotated files */
        unsigned attempt; /* as counted in the file name */
        bool is_live;     /* more may be written; http_server_notify_log_end() will be called */
} HttpContainerLog;

/* One file of the manifest directory. Strings are borrowed. */
typedef struct HttpManifestStatus {
        const char *file;
        char *const *pods;       /* "namespace/name" each */
        char *const *daemonsets; /* the same; their pods are among the pods */
        char *const *warnings;
        const char *error;    /* NULL: the file is valid */
        uint64_t error_since; /* realtime, microseconds */
} HttpManifestStatus;

/* The reply to /manifests, which the agent fills in. */
typedef struct HttpManifestReport HttpManifestReport;

/* 'error' is the reason why the directory as a whole cannot be read, 'warning' another problem of
 * it; or NULL. */
void http_report_manifest_directory(HttpManifestReport *report, const char *directory,
                                    const char *error, const char *warning);
void http_report_manifest(HttpManifestReport *report, const HttpManifestStatus *manifest);
void http_report_archive_error(HttpManifestReport *report, const char *archive,
                               const char *message);

/* A command to run in a container, or (NULL) the container itself to attach to, and the streams
 * that the client requests. */
typedef struct HttpExecOptions {
        char *const *argv;
        bool has_input, has_output, has_error, has_terminal;
        bool is_held; /* the command starts with the client's message of CHANNEL_START */
} HttpExecOptions;

/* A client of mainstay-api: the request and the credentials it presented; NULL: none. */
typedef struct HttpAccessQuestion {
        const char *ticket, *token;
        const char *method, *path; /* of the agent's request, or of the kubelet's */
        bool is_session;           /* a command, a port: "create", regardless of the method */
} HttpAccessQuestion;

typedef struct HttpAccess HttpAccess;

/* The decision: 200, or the status and the text of the reply. 'user' is JSON; NULL: it is not
 * known. */
void http_access_done(HttpAccess *access, unsigned status, const char *message, const char *user);

typedef int (*http_each_object_t)(const char *key, const char *json, void *context);

/* The functions of the agent that the server needs. All functions are called from the loop, return
 * at once, and get the 'userdata' of http_server_new(). */
typedef struct HttpServerHandlers {
        /* The first pod whose key is greater (by strcmp) than 'after'; NULL: the very first. The
         * pod of 'after' may be gone. Keys are unique and opaque to the server, for example
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

        /* The first object of the kind whose "<namespace>/<name>" is greater than 'after', as
         * next_pod(). The values of a Secret are not in its JSON. */
        int (*next_object)(void *userdata, ObjectKind kind, const char *after, char **ret_key,
                           char **ret_json);

        /* Reports all files and archives, by http_report_…(). */
        void (*report)(void *userdata, HttpManifestReport *report);

        /* The log of a container's latest attempt, or of the previous one. 'pod' is the full name,
         * with the node's suffix. -ENOENT (404): no such pod, container or earlier attempt;
         * -EAGAIN (400): it has not started; both with a message. The server frees the directory of
         * 'ret'. */
        int (*find_log)(void *userdata, const char *namespace, const char *pod,
                        const char *container, bool previous, HttpContainerLog *ret, Error *reterr);

        /* Deletes a pod ('pod' is the full name), which starts again if its manifest is still
         * there. 'grace_seconds' is -1 for the pod's own grace period. -ENOENT (404), -EAGAIN
         * (503), with a message. */
        int (*delete_pod)(void *userdata, const char *namespace, const char *pod,
                          int64_t grace_seconds, Error *reterr);

        /* Runs a command for a client, which speaks WebSocket on the socket from now on; the
         * descriptor is duplicated. If it is negative, the request is only checked. -ENOENT (404),
         * -EAGAIN (400): the container does not run; with a message. */
        int (*exec)(void *userdata, const char *namespace, const char *pod, const char *container,
                    const HttpExecOptions *exec, int socket_fd, Error *reterr);

        /* Attaches a client to the container itself, in the same way. -ENOTSUP (501): its shim
         * cannot. The terminal is the container's, regardless of the options. */
        int (*attach)(void *userdata, const char *namespace, const char *pod, const char *container,
                      const HttpExecOptions *attach, int socket_fd, Error *reterr);

        /* Adds an ephemeral container, a v1.EphemeralContainer as JSON, to a pod, and returns its
         * name, which the server frees. -ENOENT (404), -EINVAL (400), -EAGAIN (400): the pod does
         * not run; with a message. */
        int (*add_ephemeral_container)(void *userdata, const char *namespace, const char *pod,
                                       const char *json, char **ret_name, Error *reterr);

        /* Checks that the pod runs, and that its UID is this one; NULL: any. 0; -ENOENT (404),
         * another -errno (500), with a message. */
        int (*check_pod)(void *userdata, const char *namespace, const char *pod, const char *uid,
                         Error *reterr);

        /* The same, and requests a connection to a TCP port of the pod's loopback address, for
         * port-forward. The socket over which it comes, or -errno. */
        int (*connect_to_port)(void *userdata, const char *namespace, const char *pod,
                               const char *uid, unsigned port, bool is_ipv6, Error *reterr);

        /* Opens a file below /var/log, or the list of a directory as HTML; or, with a query, starts
         * it. A descriptor, with the type of its content; -EPERM (405): the configuration disables
         * it; -EISDIR (301): the path of a directory does not end in a slash; -ENOENT (404);
         * -EAGAIN (429): there are too many queries; with a message. */
        int (*open_system_log)(void *userdata, const char *path, const SystemLogQuery *query,
                               const char **ret_type, Error *reterr);

        /* The settings of mainstay-api as JSON, which the server frees; secret settings go to the
         * signer. 0, or -errno with a message. */
        int (*node_api_settings)(void *userdata, char **ret_json, Error *reterr);

        /* A connection to the signer, for mainstay-api. A descriptor, or -errno with a message. */
        int (*connect_signer)(void *userdata, Error *reterr);

        /* The data of a kubeconfig for mainstay-api, as JSON that the server frees: "nodeName", and
         * in PEM "certificateAuthority", "clientCertificate", "clientKey". -EINVAL (400) with a
         * message if the node has joined an API server. */
        int (*make_kubeconfig)(void *userdata, char **ret_json, Error *reterr);

        /* The identity of the node for encrypted Secrets, as JSON that the server frees, or NULL;
         * and the start of a change, by its name: -EINVAL (400), -EBUSY (503), with a message. */
        char *(*identity)(void *userdata);
        int (*change_identity)(void *userdata, const char *action, Error *reterr);

        /* Which encrypted Secrets there are, and whether this node can open them, as JSON that the
         * server frees, or NULL. */
        char *(*encrypted_secrets)(void *userdata);

        /* Decides about a client's request, and calls http_access_done() once, before or after it
         * returns, unless cancel_access() is called with '*ret_check'. 0 or -ENOMEM. */
        int (*check_access)(void *userdata, const HttpAccessQuestion *question, HttpAccess *access,
                            void **ret_check);
        void (*cancel_access)(void *check);

        /* The images of the store, as JSON that the server frees, or NULL. */
        char *(*images)(void *userdata);

        /* Each for an image reference or digest: -EINVAL (400), -ENOENT (404), -EBUSY (409). Prune
         * gets an empty one, and returns how many images are removed. */
        int (*pull_image)(void *userdata, const char *image, Error *reterr);
        int (*remove_image)(void *userdata, const char *image, Error *reterr);
        int (*prune_images)(void *userdata, const char *image, Error *reterr);

        /* 0, or -errno with a message while the first scan has not been acted on. */
        int (*is_ready)(void *userdata, Error *reterr);

        /* Calls 'each' for every DaemonSet, always in the same order, with "<namespace>/<name>" and
         * its compact JSON; the second one for every ControllerRevision. 0, a negative value that
         * 'each' returned, or -ENOMEM. */
        int (*foreach_daemonset)(void *userdata, http_each_object_t each, void *context);
        int (*foreach_revision)(void *userdata, http_each_object_t each, void *context);

        /* This node as a v1.Node, as JSON that the server frees; or NULL. */
        char *(*node)(void *userdata);

        /* An action on a DaemonSet: "undo" (to a revision; 0: the previous one), "restart",
         * "delete", "orphan" (delete it and keep its pods). 0; 1: there is nothing to do; -ENOENT
         * (404), -EINVAL (400), -EAGAIN (503), with a message. */
        int (*run_daemonset_action)(void *userdata, const char *namespace, const char *name,
                                    const char *verb, int64_t revision, Error *reterr);

        /* Prometheus text (agent_metrics_format()) that the server frees, or NULL. */
        char *(*metrics)(void *userdata);

        /* The resource metrics of containers, likewise (resource_metrics_format()). */
        char *(*resource_metrics)(void *userdata);

        /* The same of cAdvisor's metrics and of the results of probes. */
        char *(*cadvisor_metrics)(void *userdata);
        char *(*probe_metrics)(void *userdata);

        /* The kubelet's summary of resource usage, pods with running containers as a v1.PodList,
         * and the configuration, as JSON that the server frees; or NULL. */
        char *(*stats_summary)(void *userdata, bool only_cpu_and_memory);
        char *(*running_pods)(void *userdata);
        char *(*configuration)(void *userdata);

        /* The configuration with its secrets masked as JSON that the server frees, or NULL. */
        char *(*whole_configuration)(void *userdata);

        /* The dump of the agent's state as text that the server frees, or NULL. */
        char *(*dump)(void *userdata);
} HttpServerHandlers;

typedef struct HttpServerConfig {
        sd_event *event;
        const char *socket_path; /* "<run-dir>/mainstay.sock"; at most 102 bytes, for ".new" */
        const HttpServerHandlers *handlers; /* outlive the server, as do userdata and event */
        void *userdata;
        uint64_t request_timeout_usec; /* for a client to send a whole request; 0: 10 s */
        bool is_alone;                 /* without an API server: mainstay-api serves kubectl */
} HttpServerConfig;

/* Opens the socket, mode 0660, and starts to serve. The socket appears by rename, so a client finds
 * the old one or this one; the socket of an agent that died is replaced. The caller makes sure that
 * no other agent runs. 0 or -errno. */
int http_server_new(const HttpServerConfig *config, HttpServer **ret, Error *reterr);

/* Looks the user of mainstay-api up, and lets it use the socket: it may have been created after the
 * server. Without this it is done when /etc/passwd changes. False: there is no such user, or the
 * socket cannot be given to its group, which is logged. The server is 'userdata' of a callback. */
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

/* True while there is a watch of pods: only then is it worth the work to make JSON for
 * http_server_notify_pod(). */
bool http_server_has_pod_watchers(HttpServer *server);

/* Sends the new state of a pod to all watches; 'key' is that of next_pod(). For HTTP_WATCH_DELETED
 * 'json' is its last state. Called after next_pod() would return the same. The strings are copied.
 */
void http_server_notify_pod(HttpServer *server, HttpWatchEventType change, const char *key,
                            const char *json);

/* next_event() has a new event, for the watches of events. */
void http_server_notify_event(HttpServer *server);

/* Objects that are compared with those that a watch has sent. */
typedef enum HttpObjects {
        HTTP_DAEMONSETS,   /* of foreach_daemonset() */
        HTTP_NODE,         /* of node() */
        HTTP_DATA_OBJECTS, /* of next_object() */
} HttpObjects;

/* They may be different now, for the watches of them. */
void http_server_notify_objects(HttpServer *server, HttpObjects kind);

/* The attempt has ended and its log is complete: streams that follow it read the rest and end.
 * 'directory' and 'attempt' are those of find_log(); unknown ones are ignored. Also called when the
 * pod is forgotten. */
void http_server_notify_log_end(HttpServer *server, const char *directory, unsigned attempt);
