/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* HTTP on a unix socket: what the agent knows, for the person at the machine and for tools that
 * speak to a kubelet. Asks the agent through HttpServerHandlers and keeps no state of its own but
 * the connections. What changes anything is for root, not for the socket's group. */

#include "agent/model/object.h"
#include "common/error.h"

#include <stdint.h>
#include <systemd/sd-event.h>

typedef struct HttpServer HttpServer;

/* The log of one attempt of a container. */
typedef struct HttpContainerLog {
        char *directory;  /* absolute; holds "<attempt>.log" and its rotated files */
        unsigned attempt; /* as counted in the file name */
        bool is_live; /* more may be written: http_server_notify_log_end() will be called for it */
} HttpContainerLog;

/* One file of the manifest directory. Strings are borrowed. */
typedef struct HttpManifestStatus {
        const char *file;
        char *const *pods;       /* "namespace/name" each */
        char *const *daemonsets; /* likewise; their pods are among the pods */
        char *const *warnings;
        const char *error;    /* NULL: its bytes are in use */
        uint64_t error_since; /* realtime, microseconds */
} HttpManifestStatus;

/* The answer to /manifests, which the agent fills in. */
typedef struct HttpManifestReport HttpManifestReport;

/* 'trouble' is why the directory as a whole cannot be read, or NULL. */
void http_report_manifest_directory(HttpManifestReport *report, const char *directory,
                                    const char *error);
void http_report_manifest(HttpManifestReport *report, const HttpManifestStatus *manifest);
void http_report_archive_error(HttpManifestReport *report, const char *archive,
                               const char *message);

/* A command to run in a container, and the streams that its client wants. */
typedef struct HttpExecOptions {
        char *const *argv;
        bool has_input, has_output, has_error, has_terminal;
} HttpExecOptions;

typedef int (*http_each_object_t)(const char *key, const char *json, void *context);

/* What serve asks of the agent. All are called from the loop, return at once, and are given the
 * 'userdata' of http_server_new(). */
typedef struct HttpServerHandlers {
        /* The first pod whose key is greater (by strcmp) than 'after'; NULL asks for the very
         * first. The pod that 'after' names may be gone. Keys are unique, and opaque here:
         * "<namespace>/<name>/<uid>" does it. 1 with the key and the v1.Pod as compact JSON, both
         * of which serve frees; 0 when there is none; -ENOMEM.
         *
         * A list is sent pod by pod, over many turns of the loop where the reader is slow, so that
         * it never lies in memory as a whole. */
        int (*next_pod)(void *userdata, const char *after, char **ret_key, char **ret_json);

        /* The first event that came after the one with this number, 0: the oldest. 1
         * with its number and the v1.Event as compact JSON, which serve frees; 0 when there is
         * none; -ENOMEM. What is counted again comes again, with a greater number. */
        int (*next_event)(void *userdata, uint64_t after, uint64_t *ret_number, char **ret_json);

        /* The first object of the kind whose "<namespace>/<name>" is greater than 'after', as
         * next_pod(). What a Secret holds is not in its JSON. */
        int (*next_object)(void *userdata, ObjectKind kind, const char *after, char **ret_key,
                           char **ret_json);

        /* Tells all files and archives, by serve_report_…(). */
        void (*report)(void *userdata, HttpManifestReport *report);

        /* Where the log of a container's latest attempt lies, or of the one before that. 'pod' is
         * the full name, with the node's suffix. -ENOENT (404): no such pod, container or earlier
         * attempt; -EAGAIN (400): it has not started; both with a sentence. The agent fills in
         * 'ret'; serve frees its directory. */
        int (*find_log)(void *userdata, const char *namespace, const char *pod,
                        const char *container, bool previous, HttpContainerLog *ret, Error *reterr);

        /* Ends a pod ('pod' is the full name), which begins anew where its manifest is still there.
         * 'grace_seconds' is -1 for the pod's own. -ENOENT (404), -EAGAIN (503), with a
         * sentence. */
        int (*delete_pod)(void *userdata, const char *namespace, const char *pod,
                          int64_t grace_seconds, Error *reterr);

        /* Runs a command for a client, who speaks and hears WebSocket on the socket from now on;
         * the descriptor is copied. Where it is negative, it is only asked whether that could be.
         * -ENOENT (404), -EAGAIN (400): the container does not run; with a sentence. */
        int (*exec)(void *userdata, const char *namespace, const char *pod, const char *container,
                    const HttpExecOptions *exec, int socket_fd, Error *reterr);

        /* The images that are here, as JSON that serve frees, or NULL. */
        char *(*images)(void *userdata);

        /* Each with a reference, or a digest: -EINVAL (400), -ENOENT (404), -EBUSY (409). Pruning
         * is given none, and says how many go. */
        int (*pull_image)(void *userdata, const char *image, Error *reterr);
        int (*remove_image)(void *userdata, const char *image, Error *reterr);
        int (*prune_images)(void *userdata, const char *image, Error *reterr);

        /* 0, or -errno with a sentence while the first scan has not been acted on. */
        int (*is_ready)(void *userdata, Error *reterr);

        /* Tells of each DaemonSet, in an order that does not change: its "<namespace>/<name>", and
         * itself as compact JSON. 0, what 'each' gave below that, or -ENOMEM. */
        int (*foreach_daemonset)(void *userdata, http_each_object_t each, void *context);

        /* A ControllerRevisionList as JSON that serve frees, or NULL; and this node as a v1.Node.
         */
        char *(*revisions)(void *userdata);
        char *(*node)(void *userdata);

        /* What a person asks of a DaemonSet: "undo" (to a revision; 0: the one before), "restart",
         * "delete", "orphan" (delete it and leave its pods). 0, 1 where it is so already; -ENOENT
         * (404), -EINVAL (400), -EAGAIN (503), with a sentence. */
        int (*run_daemonset_action)(void *userdata, const char *namespace, const char *name,
                                    const char *verb, int64_t revision, Error *reterr);

        /* Prometheus text (agent_metrics_format()) that serve frees, or NULL. */
        char *(*metrics)(void *userdata);

        /* What containers use, likewise (resource_metrics_format()). */
        char *(*resource_metrics)(void *userdata);
} HttpServerHandlers;

typedef struct HttpServerConfig {
        sd_event *event;
        const char *socket_path; /* "<run-dir>/mainstay.sock"; at most 102 bytes, for ".new" */
        const HttpServerHandlers *handlers; /* outlive the Serve, as do userdata and event */
        void *userdata;
        uint64_t request_timeout_usec; /* for a client to say a whole request; 0: 10 s */
} HttpServerConfig;

/* Opens the socket, mode 0660, and begins to answer. It appears by rename, so a client finds the
 * old one or this one; what a dead agent left under the name is replaced. That no other agent lives
 * is for the caller to know. 0 or -errno. */
int http_server_new(const HttpServerConfig *config, HttpServer **ret, Error *reterr);

/* Closes all connections and removes the socket, unless a successor has replaced it. */
HttpServer *http_server_free(HttpServer *server);
DEFINE_CLEANUP(HttpServer *, http_server_free)

typedef enum HttpWatchEventType {
        HTTP_WATCH_ADDED,
        HTTP_WATCH_MODIFIED,
        HTTP_WATCH_DELETED,
        N_HTTP_WATCH_EVENT_TYPES,
} HttpWatchEventType;

/* True while somebody watches: only then is it worth the work to write JSON for
 * http_server_notify_pod(). */
bool http_server_has_pod_watchers(const HttpServer *server);

/* Tells the watchers that the pod with this key (as next_pod() gives it) is now as 'json' says; for
 * HTTP_WATCH_DELETED that is its last state. Call it after next_pod() would tell the same. Copies.
 */
void http_server_notify_pod(HttpServer *server, HttpWatchEventType change, const char *key,
                            const char *json);

/* next_event() has one more to give; for those who watch. */
void http_server_notify_event(HttpServer *server);

/* foreach_daemonset() may tell other things now, likewise. */
void http_server_notify_daemonsets(HttpServer *server);

/* The attempt is over and the last byte of its log is written. Those who follow it read what there
 * is and are done. 'directory' and 'attempt' as find_log() gave them; an unknown one is ignored.
 * Call it too when the pod is forgotten. */
void http_server_notify_log_end(HttpServer *server, const char *directory, unsigned attempt);
