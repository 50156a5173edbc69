/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cli/debug-pod.h"

#include "agent/cli/agent-client.h"
#include "agent/cli/command-attach.h"
#include "agent/cli/target.h"
#include "agent/cli/watch.h"
#include "agent/cli/words.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/json-text.h"
#include "common/text.h"
#include "common/url-escape.h"

#include <stdio.h>
#include <unistd.h>

enum {
        REPLY_MAX = 4096,
};

/* ---- the container ---- */

/* The additions of a profile to the container, as in kubectl debug. */
static const struct {
        const char *name;
        const char *security_context; /* JSON; NULL: none */
} debug_profiles[] = {
        { "general", "{\"capabilities\":{\"add\":[\"SYS_PTRACE\"]}}" },
        { "baseline", NULL },
        { "netadmin", "{\"capabilities\":{\"add\":[\"NET_ADMIN\",\"NET_RAW\"]}}" },
        { "sysadmin", "{\"privileged\":true}" },
};

/* 0 with a new reference or NULL; -ENOENT; -ENOMEM. */
static int make_security_context(const char *profile, json_t **ret) {
        for (size_t i = 0; i < N_ELEMENTS(debug_profiles); i++) {
                const char *context = debug_profiles[i].security_context;

                if (!streq(debug_profiles[i].name, profile))
                        continue;
                *ret = context ? json_loads(context, 0, NULL) : NULL;
                return context && !*ret ? -ENOMEM : 0;
        }
        return -ENOENT;
}

static json_t *make_command(char *const *words) {
        json_t *command = json_array();

        for (; *words; words++)
                if (json_array_append_new(command, json_string(*words)) < 0) {
                        json_decref(command);
                        return NULL;
                }
        return command;
}

static int put_text(json_t *container, const char *key, const char *value) {
        if (!value)
                return 0;
        return json_object_set_new(container, key, json_string(value)) < 0 ? -EINVAL : 0;
}

static int put_true(json_t *container, const char *key, bool value) {
        return value && json_object_set_new(container, key, json_true()) < 0 ? -ENOMEM : 0;
}

/* A command with input from a pipe must receive the end of the input. */
static int fill_container(const Options *options, json_t *container) {
        bool is_piped = options->interactive && !options->tty;

        if (put_text(container, "name", options->container) < 0 ||
            put_text(container, "image", options->image) < 0 ||
            put_text(container, "targetContainerName", options->target) < 0)
                return -EINVAL;
        if (options->n_words > 1 &&
            json_object_set_new(container, "command", make_command(options->words + 1)) < 0)
                return -EINVAL;
        if (put_true(container, "stdin", options->interactive) < 0 ||
            put_true(container, "stdinOnce", is_piped) < 0 ||
            put_true(container, "tty", options->tty) < 0)
                return -ENOMEM;
        return 0;
}

/* The v1.EphemeralContainer as JSON, which the caller frees. */
static int print_container(const Options *options, char **ret, Error *reterr) {
        cleanup_json json_t *container = json_object();
        json_t *context = NULL;
        int r = container ? fill_container(options, container) : -ENOMEM;

        if (r == -EINVAL)
                return error_setf(reterr, EINVAL, "the arguments must be UTF-8");
        if (r < 0)
                return r;
        r = make_security_context(options->profile ? options->profile : "general", &context);
        if (r < 0)
                return r;
        if (context && json_object_set_new(container, "securityContext", context) < 0)
                return -ENOMEM;
        *ret = json_to_text(container, JSON_COMPACT);
        return *ret ? 0 : -ENOMEM;
}

/* ---- the request ---- */

typedef struct DebugReply {
        char text[REPLY_MAX];
        size_t length;
} DebugReply;

static int on_debug_reply(const char *data, size_t length, void *userdata) {
        DebugReply *reply = userdata;

        if (length > sizeof(reply->text) - reply->length)
                return -EMSGSIZE;
        memcpy(reply->text + reply->length, data, length);
        reply->length += length;
        return 0;
}

/* The name of the new container, which the caller frees. */
static int add_container(const Options *options, const json_t *pod, char **ret, Error *reterr) {
        cleanup_free char *container = NULL, *escaped = NULL, *path = NULL;
        cleanup_json json_t *json = NULL;
        DebugReply reply = { .length = 0 };
        const char *name;
        int r = print_container(options, &container, reterr);

        if (r < 0)
                return r;
        escaped = url_escape(container);
        path = escaped ? text_format(
                                 "/api/v1/namespaces/%s/pods/%s/ephemeralcontainers?container=%s",
                                 strna(json_text(pod, "metadata", "namespace")),
                                 strna(json_text(pod, "metadata", "name")), escaped)
                       : NULL;
        if (!path)
                return -ENOMEM;
        r = client_request(options->socket, "POST", path, on_debug_reply, &reply, reterr);
        if (r < 0)
                return r;
        json = json_loadb(reply.text, reply.length, 0, NULL);
        name = json_text(json, "name");
        if (!name)
                return error_setf(reterr, EBADMSG, "the agent did not reply with a name");
        *ret = strdup(name);
        return *ret ? 0 : -ENOMEM;
}

/* ---- until it runs ---- */

typedef struct ContainerWait {
        const char *container;
        char *message;   /* printed last */
        json_t *started; /* the pod, once the container has started */
} ContainerWait;

static void container_wait_done(ContainerWait *wait) {
        free(wait->message);
        json_decref(wait->started);
}

static void print_waiting_message(ContainerWait *wait, const char *message) {
        if (!message || streq_ptr(message, wait->message))
                return;
        (void) text_replace(&wait->message, message);
        print_line(stderr, "Container %s: %s", wait->container, message);
}

/* 1 when it has started, or has already ended; or when its pod is gone. */
static int on_debugged_pod(const char *type, json_t *pod, void *userdata) {
        ContainerWait *wait = userdata;
        const json_t *status;

        if (streq(type, "DELETED"))
                return 1;
        status = find_container_status_of(pod, wait->container);
        if (json_at(status, "state", "running") || json_at(status, "state", "terminated")) {
                wait->started = json_incref(pod);
                return 1;
        }
        print_waiting_message(wait, json_text(status, "state", "waiting", "message"));
        return 0;
}

static int print_debug_log(const char *data, size_t length, void *userdata) {
        return write_all(STDOUT_FILENO, data, length);
}

/* The container had ended before a client could be attached. */
static int print_container_log(const Options *options, const json_t *pod, const char *container,
                               Error *reterr) {
        cleanup_free char *path = text_format("/containerLogs/%s/%s/%s",
                                              strna(json_text(pod, "metadata", "namespace")),
                                              strna(json_text(pod, "metadata", "name")), container);

        if (!path)
                return -ENOMEM;
        return client_stream(options->socket, path, print_debug_log, NULL, reterr);
}

static bool has_container_ended(const json_t *pod, const char *container) {
        return json_at(find_container_status_of(pod, container), "state", "terminated");
}

/* The container may end at any time before a client is attached. */
static int show_container(const Options *options, const json_t *pod, const char *container,
                          Error *reterr) {
        cleanup_json json_t *later = NULL;
        int r;

        if (has_container_ended(pod, container))
                return print_container_log(options, pod, container, reterr);
        r = attach_container_streams(options, pod, container, reterr);
        if (r >= 0 || find_pod(options, options->words[0], &later, NULL) < 0 ||
            !has_container_ended(later, container))
                return r;
        error_done(reterr);
        return print_container_log(options, later, container, reterr);
}

static int attach_when_started(const Options *options, const json_t *pod, const char *container) {
        cleanup_error Error error = ERROR_NULL;
        cleanup_with(container_wait_done) ContainerWait wait = { .container = container };
        cleanup_json json_t *pods = json_pack("[O]", pod);
        int r = pods ? watch_pods(options->socket, pods, on_debugged_pod, &wait, &error) : -ENOMEM;

        if (r >= 0 && !wait.started)
                r = error_setf(&error, ESRCH, "the pod has been removed");
        if (r >= 0)
                r = show_container(options, wait.started, container, &error);
        return r < 0 ? fail_with_error(r, &error) : STATUS_OK;
}

int debug_pod(const Options *options) {
        const char *names[N_ELEMENTS(debug_profiles)];
        cleanup_error Error error = ERROR_NULL;
        cleanup_json json_t *pod = NULL;
        cleanup_free char *container = NULL;
        int r;

        if (!options->image)
                return fail_usage("an image is required: 'mainstay debug POD --image=IMAGE'");
        if (options->n_words == 0)
                return fail_usage("a pod is required: 'mainstay debug POD --image=IMAGE'");
        for (size_t i = 0; i < N_ELEMENTS(names); i++)
                names[i] = debug_profiles[i].name;
        r = find_pod(options, options->words[0], &pod, &error);
        if (r >= 0)
                r = add_container(options, pod, &container, &error);
        if (r == -ENOENT && !error.message)
                return fail_unknown("profile", options->profile, names, N_ELEMENTS(names));
        if (r < 0)
                return fail_with_error(r, &error);
        if (!options->container)
                fprintf(stderr, "Defaulting debug container name to %s.\n", container);
        return options->interactive ? attach_when_started(options, pod, container) : STATUS_OK;
}
