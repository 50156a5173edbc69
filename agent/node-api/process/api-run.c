/* SPDX-License-Identifier: Apache-2.0 */

/* /run/<namespace>/<pod>[/<uid>]/<container>?cmd=a+b: runs a command without streams, and replies
 * with its output. The command is a session of the agent, like those of exec. */

#include "agent/node-api/http/byte-queue.h"
#include "agent/node-api/http/request-url.h"
#include "agent/node-api/process/node-api-private.h"
#include "agent/node-api/session/session-result.h"
#include "common/channels.h"
#include "common/cleanup.h"
#include "common/file.h"

#include <sys/epoll.h>

enum {
        RUN_OUTPUT_MAX = 1024 * 1024,
};

struct ApiRun {
        ApiConnection *connection;
        int fd;
        Channels *shim;
        sd_event_source *source;
        ByteQueue output;
        char *status; /* the result; NULL: none yet */
        int error;
};

void api_run_free(ApiRun *run) {
        if (!run)
                return;
        sd_event_source_disable_unref(run->source);
        channels_free(run->shim);
        close_fd(run->fd);
        byte_queue_done(&run->output);
        free(run->status);
        free(run);
}

static void on_run_message(unsigned char channel, const char *data, size_t length, void *userdata) {
        ApiRun *run = userdata;
        int r = 0;

        if (channel == CHANNEL_STATUS && !run->status)
                run->status = strndup(data, length);
        else if (channel == CHANNEL_OUTPUT || channel == CHANNEL_ERROR)
                r = byte_queue_append(&run->output, RUN_OUTPUT_MAX, data, length);
        if (r < 0)
                run->error = r;
}

static int on_run_shim(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        ApiRun *run = userdata;
        int r = channels_read(run->shim);

        /* A write fails if the shim has exited, but data that it sent before must still be read. */
        if (r >= 0)
                (void) channels_write(run->shim);
        if (r >= 0 && !run->status && channels_is_closed_by_peer(run->shim))
                r = -ECONNRESET;
        if (r < 0 && run->error == 0)
                run->error = r;
        (void) sd_event_source_set_io_events(
                source, channels_wants_write(run->shim) ? EPOLLIN | EPOLLOUT : EPOLLIN);
        if (!run->status && run->error == 0)
                return 0;
        (void) sd_event_source_set_enabled(source, SD_EVENT_OFF);
        api_connection_resume(run->connection);
        return 0;
}

static ApiStepResult start_api_run(ApiRequest *request) {
        ApiRun *run = request->run = calloc(1, sizeof(*run));
        int r;

        if (!run)
                return API_STEP_ABORT;
        run->connection = request->connection;
        run->fd = TAKE_FD(request->reply_fd);
        r = channels_new(run->fd, /* is_client= */ true, on_run_message, run, &run->shim);
        if (r < 0)
                return API_STEP_ABORT;
        r = sd_event_add_io(request->server->event, &run->source, run->fd, EPOLLIN, on_run_shim,
                            run);
        return r < 0 ? API_STEP_ABORT : API_STEP_WAIT;
}

static ApiStepResult reply_run_result(ApiRequest *request) {
        const ApiRun *run = request->run;
        cleanup_free char *failure = run->status ? session_result_failure(run->status) : NULL;
        size_t length = byte_queue_length(&run->output);
        struct MHD_Response *response;

        if (!run->status || failure)
                return api_replyf(request, MHD_HTTP_INTERNAL_SERVER_ERROR, "%s",
                                  failure ? failure : strerror(-run->error));
        response = MHD_create_response_from_buffer(
                length, length > 0 ? (void *) (uintptr_t) byte_queue_bytes(&run->output) : NULL,
                MHD_RESPMEM_MUST_COPY);
        if (response)
                (void) MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE,
                                               "application/json"); /* as the kubelet calls it */
        return api_queue_reply(request, MHD_HTTP_OK, response);
}

/* The command is split at blanks, as in the kubelet. */
static char *format_run_path(const ApiRequest *request, const char *const *parts, int n) {
        cleanup_free char *command = strdup(strna(api_parameter(request->http, "cmd")));
        const char *names[] = { parts[0], parts[1], parts[n - 1] };
        char *text = NULL, *rest = command;
        size_t size;
        FILE *out = command ? open_memstream(&text, &size) : NULL;

        if (!out)
                return NULL;
        fputs("/exec", out);
        url_write_components(out, names, N_ELEMENTS(names));
        fputc('?', out);
        for (const char *word = strsep(&rest, " "); word; word = strsep(&rest, " "))
                url_write_argument(out, "command", word);
        url_write_argument(out, "uid", n == 4 ? parts[2] : NULL);
        fputs("output=1&error=1", out);
        return memstream_finish(out, &text);
}

ApiStepResult api_handle_run(ApiRequest *request, const char *rest) {
        cleanup_free char *text = strdup(rest), *path = NULL;
        const char *parts[4];
        int n = text ? split_url_path(text, parts, 4) : -ENOMEM;

        if (n < 3)
                return api_reply_text(request, MHD_HTTP_NOT_FOUND, "404: Page Not Found");
        if (request->run)
                return reply_run_result(request);
        if (request->has_reply)
                return request->reply_fd >= 0 ? start_api_run(request)
                                              : api_reply_agent_error(request);
        path = format_run_path(request, parts, n);
        if (!path)
                return API_STEP_ABORT;
        return api_request_ask_agent(request,
                                     &(AgentRequestSpec){ .kind = AGENT_WEBSOCKET, .path = path });
}
