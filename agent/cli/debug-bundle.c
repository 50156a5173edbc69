/* SPDX-License-Identifier: Apache-2.0 */
/* Each member has a limit. A member that is not available, for example because the agent is not
 * running, is named in errors.txt of the archive. All texts are filtered by redact.c. */

#include "agent/cli/debug-bundle.h"

#include "agent/cli/agent-client.h"
#include "agent/cli/tar.h"
#include "common/buffer.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/json-text.h"
#include "common/redact.h"
#include "common/spawn.h"
#include "common/text.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#define MEMBER_BYTES_MAX (8 * MIB)
#define LOGS_BYTES_MAX   (64 * MIB) /* of all containers */
#define LOG_QUERY        "?tailLines=500&limitBytes=131072&timestamps=true"
#define DIRECTORY        "mainstay-debug/"
#define CUT              "\n(cut here)\n"
#define JOURNAL_PROGRAM  "journalctl"

typedef struct DebugBundle {
        const Options *options;
        TarGz *tar;
        Buffer errors;
        size_t logs_length;
} DebugBundle;

/* ---- members ---- */

static int note_error(DebugBundle *bundle, const char *member, int r, const Error *error) {
        cleanup_free char *line = text_format("%s: %s\n", member, error_message(error, r));

        return line ? buffer_append(&bundle->errors, line, strlen(line), MEMBER_BYTES_MAX)
                    : -ENOMEM;
}

static int add_bundle_member(DebugBundle *bundle, const char *name, const char *text,
                             RedactedText kind, Error *reterr) {
        cleanup_free char *redacted = redact_text(text, kind),
                          *path = text_format(DIRECTORY "%s", name);

        return redacted && path ? tar_gz_add(bundle->tar, path, redacted, strlen(redacted), reterr)
                                : -ENOMEM;
}

static int add_json(DebugBundle *bundle, const char *name, json_t *json, Error *reterr) {
        cleanup_free char *text = NULL, *path = text_format(DIRECTORY "%s", name);

        if (redact_json(json) < 0 || !path)
                return -ENOMEM;
        text = json_to_text(json, JSON_INDENT(2));
        return text ? tar_gz_add(bundle->tar, path, text, strlen(text), reterr) : -ENOMEM;
}

static int add_json_of_agent(DebugBundle *bundle, const char *name, const char *path,
                             Error *reterr) {
        cleanup_error Error error = ERROR_NULL;
        cleanup_json json_t *json = NULL;
        int r = client_get_json(bundle->options->socket, path, &json, &error);

        if (r < 0)
                return note_error(bundle, name, r, &error);
        return add_json(bundle, name, json, reterr);
}

/* Limit of a text; the rest of a longer one is omitted. */
static int collect_text(const char *data, size_t length, void *userdata) {
        Buffer *text = userdata;
        size_t room = MEMBER_BYTES_MAX - MIN(text->length, (size_t) MEMBER_BYTES_MAX);

        return buffer_append(text, data, MIN(length, room), SIZE_MAX);
}

static int finish_text(Buffer *text) {
        const char *end = text->length >= MEMBER_BYTES_MAX ? CUT : "";

        for (size_t i = 0; i < text->length; i++)
                if (text->data[i] == '\0')
                        text->data[i] = '?';
        return buffer_append(text, end, strlen(end), SIZE_MAX);
}

static int add_text_of_agent(DebugBundle *bundle, const char *name, const char *path,
                             RedactedText kind, size_t *length, Error *reterr) {
        cleanup_error Error error = ERROR_NULL;
        cleanup_with(buffer_erase) Buffer text = { 0 };
        int r = client_stream(bundle->options->socket, path, collect_text, &text, &error);

        if (r < 0)
                return note_error(bundle, name, r, &error);
        if (finish_text(&text) < 0)
                return -ENOMEM;
        if (length)
                *length += text.length;
        return add_bundle_member(bundle, name, text.data, kind, reterr);
}

/* ---- this machine ---- */

static int add_versions(DebugBundle *bundle, Error *reterr) {
        cleanup_free char *release = NULL, *text = NULL;
        struct utsname system;
        size_t length;

        if (uname(&system) < 0)
                return -errno;
        (void) read_file_at(AT_FDCWD, "/etc/os-release", MEMBER_BYTES_MAX, &release, &length);
        text = text_format("mainstay %s\n%s %s %s %s\n\n%s", MAINSTAY_VERSION, system.sysname,
                           system.release, system.version, system.machine, strna(release));
        return text ? add_bundle_member(bundle, "versions.txt", text, REDACT_AGENT, reterr)
                    : -ENOMEM;
}

static int run_journalctl(int output) {
        char *argv[] = { (char[]){ JOURNAL_PROGRAM },
                         (char[]){ "--unit=mainstay.service" },
                         (char[]){ "--lines=5000" },
                         (char[]){ "--output=short-iso-precise" },
                         (char[]){ "--quiet" },
                         (char[]){ "--no-pager" },
                         NULL };
        cleanup_close int input = open("/dev/null", O_RDONLY | O_CLOEXEC);
        int r, status;
        pid_t pid = -1;

        if (input < 0)
                return -errno;
        r = spawn_with_streams(argv, input, output, &pid);
        if (r < 0)
                return r;
        while (waitpid(pid, &status, 0) < 0)
                if (errno != EINTR)
                        return -errno;
        return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EIO;
}

static int add_agent_journal(DebugBundle *bundle, Error *reterr) {
        cleanup_error Error error = ERROR_NULL;
        cleanup_close int output = memfd_create("journal", MFD_CLOEXEC);
        cleanup_with(buffer_erase) Buffer text = { 0 };
        char chunk[16 * KIB];
        ssize_t n;
        int r = output < 0 ? -errno : run_journalctl(output);

        if (r < 0) {
                (void) error_prefixf(&error, r, JOURNAL_PROGRAM);
                return note_error(bundle, "agent.log", r, &error);
        }
        if (lseek(output, 0, SEEK_SET) < 0)
                return -errno;
        while ((n = read(output, chunk, sizeof(chunk))) > 0)
                if (collect_text(chunk, (size_t) n, &text) < 0)
                        return -ENOMEM;
        if (n < 0)
                return -errno;
        return finish_text(&text) < 0
                       ? -ENOMEM
                       : add_bundle_member(bundle, "agent.log", text.data, REDACT_AGENT, reterr);
}

/* ---- logs of containers ---- */

static int add_log(DebugBundle *bundle, const json_t *pod, const char *container, bool previous,
                   Error *reterr) {
        const char *namespace = strna(json_text(pod, "metadata", "namespace"));
        const char *name = strna(json_text(pod, "metadata", "name"));
        cleanup_free char *member = text_format("logs/%s_%s/%s%s.log", namespace, name, container,
                                                previous ? ".previous" : "");
        cleanup_free char *path = text_format("/containerLogs/%s/%s/%s" LOG_QUERY "%s", namespace,
                                              name, container, previous ? "&previous=true" : "");

        if (!member || !path)
                return -ENOMEM;
        if (bundle->logs_length < LOGS_BYTES_MAX)
                return add_text_of_agent(bundle, member, path, REDACT_CONTAINER,
                                         &bundle->logs_length, reterr);
        return note_error(bundle, member, -EFBIG, NULL);
}

static int add_logs_of_pod(DebugBundle *bundle, const json_t *pod, Error *reterr) {
        static const char *const lists[] = { "initContainerStatuses", "containerStatuses",
                                             "ephemeralContainerStatuses" };
        int r = 0;

        for (size_t l = 0; l < N_ELEMENTS(lists); l++) {
                const json_t *status, *statuses = json_at(pod, "status", lists[l]);
                size_t i;

                json_array_foreach(statuses, i, status) {
                        const char *name = json_text(status, "name");
                        const json_t *restarts = json_at(status, "restartCount");

                        if (!name || !json_text(status, "containerID"))
                                continue;
                        r = add_log(bundle, pod, name, /* previous= */ false, reterr);
                        if (r >= 0 && json_integer_value(restarts) > 0)
                                r = add_log(bundle, pod, name, /* previous= */ true, reterr);
                        if (r < 0)
                                return r;
                }
        }
        return 0;
}

static int add_pods(DebugBundle *bundle, Error *reterr) {
        cleanup_error Error error = ERROR_NULL;
        cleanup_json json_t *pods = NULL;
        const json_t *pod;
        size_t i;
        int r = client_get_json(bundle->options->socket, "/pods", &pods, &error);

        if (r < 0)
                return note_error(bundle, "pods.json", r, &error);
        r = add_json(bundle, "pods.json", pods, reterr);
        json_array_foreach(json_at(pods, "items"), i, pod)
                if (r >= 0)
                        r = add_logs_of_pod(bundle, pod, reterr);
        return r;
}

/* ---- the archive ---- */

static int add_state_of_agent(DebugBundle *bundle, Error *reterr) {
        static const struct {
                const char *name, *path;
        } objects[] = {
                { "configuration.json", "/debug/configuration" },
                { "node.json", "/node" },
                { "events.json", "/events" },
                { "daemonsets.json", "/daemonsets" },
                { "revisions.json", "/revisions" },
                { "manifests.json", "/manifests" },
                { "images.json", "/images" },
                { "usage.json", "/stats/summary" },
        }, texts[] = {
                { "dump.txt", "/debug/dump" },
                { "metrics.txt", "/metrics" },
        };
        int r = 0;

        for (size_t i = 0; i < N_ELEMENTS(objects) && r >= 0; i++)
                r = add_json_of_agent(bundle, objects[i].name, objects[i].path, reterr);
        for (size_t i = 0; i < N_ELEMENTS(texts) && r >= 0; i++)
                r = add_text_of_agent(bundle, texts[i].name, texts[i].path, REDACT_AGENT, NULL,
                                      reterr);
        return r;
}

static int write_bundle(DebugBundle *bundle, int fd, Error *reterr) {
        int r = tar_gz_new(fd, &bundle->tar, reterr);

        if (r >= 0)
                r = add_versions(bundle, reterr);
        if (r >= 0)
                r = add_state_of_agent(bundle, reterr);
        if (r >= 0)
                r = add_agent_journal(bundle, reterr);
        if (r >= 0)
                r = add_pods(bundle, reterr);
        if (r >= 0 && bundle->errors.length > 0)
                r = add_bundle_member(bundle, "errors.txt", bundle->errors.data, REDACT_AGENT,
                                      reterr);
        if (r >= 0)
                r = tar_gz_finish(bundle->tar, reterr);
        return r;
}

int debug_bundle(const Options *options, const char *file) {
        cleanup_close int fd = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        cleanup_error Error error = ERROR_NULL;
        DebugBundle bundle = { .options = options };
        int r = fd < 0 ? -errno : write_bundle(&bundle, fd, &error);

        if (fd >= 0 && r < 0)
                (void) unlink(file);
        tar_gz_free(bundle.tar);
        if (r >= 0 && bundle.errors.length > 0)
                fprintf(stderr, "warning: parts are missing in %s:\n%s", file, bundle.errors.data);
        buffer_done(&bundle.errors);
        if (r < 0)
                return fail_with_error(error_prefixf(&error, r, "%s", file), &error);
        printf("Wrote %s. Secrets, values of variables and data of ConfigMaps are not in it, but "
               "logs of containers are: read them before you give it away.\n",
               file);
        return STATUS_OK;
}
