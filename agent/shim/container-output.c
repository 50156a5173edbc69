/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shim/container-output.h"

#include "agent/shim/journal-log.h"
#include "agent/shim/terminal.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/pipe.h"

#include <fcntl.h>
#include <sys/mman.h>

enum {
        LAST_LINE_MAX = 4 * 1024,
        HOLD_CHUNK = 64 * 1024,
        HOLD_MAX = 16 * 1024 * 1024, /* beyond it, the writer blocks until the runtime call ends */
};

typedef struct OutputPipe {
        EpollSource source; /* in the loop before the commit */
        ContainerOutput *output;
        int held_fd; /* a memfd, created when bytes arrive before the commit */
        off_t held;
} OutputPipe;

/* An attached session. */
typedef struct AttachedClient {
        struct AttachedClient *next;
        unsigned id;
        bool has_output, has_error;
        AttachmentEnds ends;
} AttachedClient;

struct ContainerOutput {
        Copier *copier;
        unsigned id;
        RotatedLog *file;
        OpenedLog log; /* before the commit */
        LogLimits limits;
        char *journal_fields; /* NULL: not to the journal */
        bool is_committed;
        bool is_draining; /* COPIER_DRAINED is expected */
        bool keeps_early;
        Terminal *terminal; /* handed over by the runtime; NULL: no terminal */
        int terminal_fd;
        OutputPipe pipes[2];
        int input_fd;
        unsigned last_attachment;
        AttachedClient *clients;
};

static int open_output_log(ContainerOutput *output, const char *path, Error *reterr) {
        int r = rotated_log_new(path, &output->file, reterr);

        if (r < 0)
                return r;
        r = rotated_log_open(output->file, &output->log);
        if (r < 0 && !rotated_log_may_open_later(r))
                return error_setf(reterr, -r, "cannot open the log '%s': %s", path, strerror(-r));
        return 0;
}

/* Moves bytes that must not be copied to the log yet out of the pipe, without reading them. When
 * the limit is reached, bytes stay in the pipe; a runtime that writes so much is ended by the
 * deadline of its call. */
static void hold_output(OutputPipe *pipe) {
        ssize_t n = -1;

        if (pipe->held_fd < 0)
                pipe->held_fd = memfd_create("mainstay-output", MFD_CLOEXEC);
        errno = ENOSPC;
        if (pipe->held_fd >= 0 && pipe->held < HOLD_MAX)
                n = splice(pipe->source.fd, NULL, pipe->held_fd, &pipe->held, HOLD_CHUNK,
                           SPLICE_F_NONBLOCK);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
                epoll_source_remove(pipe->output->copier->epoll_fd, &pipe->source);
}

static void on_held_output(EpollSource *source, uint32_t events) {
        hold_output(container_of(source, OutputPipe, source));
}

static int open_output_pipes(ContainerOutput *output, int write_fds[2]) {
        for (size_t i = 0; i < 2; i++) {
                int pipes[2], r = pipe_open(PIPE_READ_END, pipes);

                if (r < 0)
                        return r;
                write_fds[i] = pipes[PIPE_WRITE_END];
                output->pipes[i].source.fd = pipes[PIPE_READ_END];
                r = epoll_source_add(output->copier->epoll_fd, &output->pipes[i].source, EPOLLIN);
                if (r < 0)
                        return r;
        }
        return 0;
}

int container_output_new(Copier *copier, const char *log_path, LogLimits limits,
                         const StringList *journal_fields, ContainerOutput **ret,
                         int ret_write_fds[2], Error *reterr) {
        ContainerOutput *output = calloc(1, sizeof(*output));
        int write_fds[2] = { -EBADF, -EBADF };
        int r = 0;

        if (!output)
                return -ENOMEM;
        *output = (ContainerOutput){ .copier = copier,
                                     .id = copier_new_id(copier),
                                     .log.fd = -EBADF,
                                     .limits = limits,
                                     .terminal_fd = -EBADF,
                                     .input_fd = -EBADF };
        for (size_t i = 0; i < N_ELEMENTS(output->pipes); i++)
                output->pipes[i] = (OutputPipe){ .source = { -EBADF, on_held_output },
                                                 .output = output,
                                                 .held_fd = -EBADF };
        if (journal_fields->n > 0) {
                output->journal_fields = journal_fields_format(journal_fields);
                r = output->journal_fields ? 0 : -ENOMEM;
        }
        if (r >= 0)
                r = open_output_log(output, log_path, reterr);
        if (r >= 0)
                r = open_output_pipes(output, write_fds);
        if (r < 0) {
                close_fd(write_fds[0]);
                close_fd(write_fds[1]);
                container_output_free(output);
                return r;
        }
        memcpy(ret_write_fds, write_fds, sizeof(write_fds));
        *ret = output;
        return 0;
}

unsigned container_output_id(const ContainerOutput *output) {
        return output->id;
}

/* ---- the copier ---- */

static void send_output_message(const ContainerOutput *output, CopierMessageType type) {
        const CopierMessage message = COPIER_MESSAGE(type, output->id);

        copier_send(output->copier, &message, NULL, 0);
}

static void send_output_limits(const ContainerOutput *output) {
        CopierMessage message = COPIER_MESSAGE(COPIER_LIMITS, output->id);

        message.max_size = output->limits.max_size;
        message.max_files = output->limits.max_files;
        copier_send(output->copier, &message, NULL, 0);
}

/* Only the copier has the log, and the output from before the commit. */
static void send_output(ContainerOutput *output) {
        const char *fields = strna(output->journal_fields);
        CopierMessage message = COPIER_MESSAGE(COPIER_ADD, output->id);

        message.max_size = output->limits.max_size;
        message.max_files = output->limits.max_files;
        message.has_journal = output->journal_fields != NULL;
        message.keeps_early = output->keeps_early;
        for (size_t i = 0; i < N_ELEMENTS(output->pipes); i++) {
                message.fds[COPIER_FD_OUTPUT + i] = output->pipes[i].source.fd;
                message.fds[COPIER_FD_HELD_OUTPUT + i] = output->pipes[i].held_fd;
        }
        message.fds[COPIER_FD_TERMINAL] = output->terminal_fd;
        message.fds[COPIER_FD_LOG] = output->log.fd;
        copier_send(output->copier, &message, fields,
                    MIN(strlen(fields), (size_t) COPIER_DATA_MAX));
        output->log.fd = close_fd(output->log.fd);
}

static void send_client(const ContainerOutput *output, const AttachedClient *client) {
        CopierMessage message = COPIER_MESSAGE(COPIER_ATTACH, output->id);

        message.attachment = client->id;
        message.has_output = client->has_output;
        message.has_error = client->has_error;
        message.has_terminal = output->terminal_fd >= 0;
        message.fds[COPIER_FD_OUTPUT] = client->ends.output_fd;
        message.fds[COPIER_FD_ERROR] = client->ends.error_fd;
        message.fds[COPIER_FD_RESUME] = client->ends.resume_fd;
        copier_send(output->copier, &message, NULL, 0);
}

void container_output_send_all(ContainerOutput *output) {
        if (!output->is_committed)
                return;
        (void) rotated_log_open(output->file, &output->log); /* else for the next line */
        send_output(output);
        for (const AttachedClient *client = output->clients; client; client = client->next)
                send_client(output, client);
        if (output->is_draining)
                send_output_message(output, COPIER_DRAIN);
}

static void close_output_pipes(ContainerOutput *output) {
        for (size_t i = 0; i < N_ELEMENTS(output->pipes); i++) {
                OutputPipe *pipe = &output->pipes[i];

                epoll_source_remove(output->copier->epoll_fd, &pipe->source);
                pipe->source.fd = close_fd(pipe->source.fd);
                pipe->held_fd = close_fd(pipe->held_fd);
        }
}

void container_output_commit(ContainerOutput *output) {
        if (output->terminal) {
                terminal_receive_master(output->terminal);
                output->terminal = terminal_free(output->terminal);
                /* These pipes contained only messages of the runtime, and nothing else writes to
                 * them. */
                close_output_pipes(output);
        }
        for (size_t i = 0; i < N_ELEMENTS(output->pipes); i++)
                epoll_source_remove(output->copier->epoll_fd, &output->pipes[i].source);
        output->is_committed = true;
        send_output(output);
}

void container_output_drain(ContainerOutput *output) {
        output->input_fd = close_fd(output->input_fd);
        output->is_draining = true;
        send_output_message(output, COPIER_DRAIN);
}

void container_output_take_request(ContainerOutput *output, const CopierMessage *request,
                                   CopierMessage *answer) {
        OpenedLog opened = { .fd = -EBADF };

        switch (request->type) {
        case COPIER_OPEN:
                answer->result = rotated_log_open(output->file, &opened);
                break;
        case COPIER_ROTATE:
                answer->result = rotated_log_rotate(output->file, output->limits.max_files,
                                                    now_realtime_usec(), &opened);
                break;
        case COPIER_JOURNAL:
                answer->result =
                        output->journal_fields ? journal_socket_open(JOURNAL_SOCKET_PATH) : -EINVAL;
                answer->fds[COPIER_FD_OUTPUT] = MAX(answer->result, -1);
                break;
        default:
                break;
        }
        answer->is_rotated = opened.is_rotated;
        answer->fds[COPIER_FD_LOG] = opened.fd;
}

/* ---- attached clients ---- */

static void end_client(AttachedClient **link, AttachmentNotice notice) {
        AttachedClient *client = *link;

        *link = client->next;
        attachment_ends_close(&client->ends, notice);
        free(client);
}

static AttachedClient **find_client(ContainerOutput *output, unsigned id) {
        AttachedClient **link = &output->clients;

        while (*link && (*link)->id != id)
                link = &(*link)->next;
        return link;
}

void container_output_end(ContainerOutput *output) {
        output->is_draining = false;
        while (output->clients)
                end_client(&output->clients, ATTACHMENT_ENDED);
}

void container_output_take_dropped(ContainerOutput *output, unsigned attachment) {
        AttachedClient **link = find_client(output, attachment);

        if (*link)
                end_client(link, ATTACHMENT_DROPPED);
}

int container_output_attach(ContainerOutput *output, const ContainerAttach *attach,
                            AttachmentStreams *ret) {
        AttachedClient *client = calloc(1, sizeof(*client));
        AttachmentStreams streams;
        int r = client ? attachment_streams_open(&client->ends, &streams) : -ENOMEM;

        if (r < 0) {
                free(client);
                return r;
        }
        client->id = ++output->last_attachment;
        client->has_output = attach->has_output;
        client->has_error = attach->has_error;
        client->next = output->clients;
        output->clients = client;
        send_client(output, client);
        output->keeps_early = false;
        streams.terminal_fd = output->terminal_fd;
        if (attach->has_input)
                streams.input_fd =
                        output->terminal_fd >= 0 ? output->terminal_fd : output->input_fd;
        *ret = streams;
        return (int) client->id;
}

void container_output_attached(ContainerOutput *output, const ContainerAttach *attach) {
        /* From now on only the session can write, so the container's input ends with the session.
         */
        if (attach->has_input && attach->is_input_once)
                output->input_fd = close_fd(output->input_fd);
}

void container_output_detach(ContainerOutput *output, unsigned attachment) {
        CopierMessage message = COPIER_MESSAGE(COPIER_DETACH, output->id);
        AttachedClient **link = find_client(output, attachment);

        if (!*link)
                return;
        message.attachment = attachment;
        copier_send(output->copier, &message, NULL, 0);
        end_client(link, ATTACHMENT_ENDED);
}

/* ---- before the container runs ---- */

static void on_container_terminal(int master_fd, void *userdata) {
        ContainerOutput *output = userdata;

        output->terminal_fd = master_fd;
}

int container_output_expect_terminal(ContainerOutput *output, const char *path, Error *reterr) {
        return terminal_new(output->copier->epoll_fd, path, on_container_terminal, output,
                            &output->terminal, reterr);
}

int container_output_open_input(ContainerOutput *output) {
        int pipes[2], r;

        /* The session's process does not wait for the container. */
        r = pipe_open(PIPE_WRITE_END, pipes);
        if (r < 0)
                return r;
        close_fd(output->input_fd);
        output->input_fd = pipes[PIPE_WRITE_END];
        return pipes[PIPE_READ_END];
}

void container_output_keep_early(ContainerOutput *output) {
        output->keeps_early = true;
}

/* This is a message of the runtime, because no container has run that could have written it. */
static char *last_line_of(OutputPipe *pipe) {
        char text[LAST_LINE_MAX + 1], *newline;
        ssize_t n;

        if (pipe->source.fd >= 0)
                hold_output(pipe);
        if (pipe->held == 0)
                return NULL;
        n = pread(pipe->held_fd, text, LAST_LINE_MAX, MAX(pipe->held - LAST_LINE_MAX, (off_t) 0));
        while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == ' ' || text[n - 1] == '\0'))
                n--;
        if (n <= 0)
                return NULL;
        text[n] = '\0';
        newline = memrchr(text, '\n', (size_t) n);
        return strdup(newline ? newline + 1 : text);
}

char *container_output_last_line(ContainerOutput *output) {
        char *line = last_line_of(&output->pipes[1]);

        return line ? line : last_line_of(&output->pipes[0]);
}

/* ---- both ---- */

void container_output_set_limits(ContainerOutput *output, LogLimits limits) {
        output->limits = limits;
        if (output->is_committed)
                send_output_limits(output);
}

ContainerOutput *container_output_free(ContainerOutput *output) {
        if (!output)
                return NULL;
        if (output->is_committed)
                send_output_message(output, COPIER_REMOVE);
        container_output_end(output);
        terminal_free(output->terminal);
        close_output_pipes(output);
        close_fd(output->terminal_fd);
        close_fd(output->input_fd);
        close_fd(output->log.fd);
        rotated_log_free(output->file);
        free(output->journal_fields);
        free(output);
        return NULL;
}

ContainerOutput *container_output_discard(ContainerOutput *output) {
        if (output)
                rotated_log_remove_empty(output->file);
        return container_output_free(output);
}
