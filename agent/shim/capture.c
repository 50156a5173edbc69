/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shim/capture.h"

#include "common/cleanup.h"

enum {
        CHUNKS_PER_TURN = 64,
};

static void close_captured_pipe(Capture *capture) {
        epoll_source_remove(capture->epoll_fd, &capture->source);
        capture->source.fd = close_fd(capture->source.fd);
}

static void append_captured(Capture *capture, const char *data, size_t length) {
        length = MIN(length, capture->max - capture->length);
        if (!capture->text)
                capture->text = malloc(capture->max + 1);
        if (!capture->text)
                return;
        memcpy(capture->text + capture->length, data, length);
        capture->length += length;
}

void capture_read(Capture *capture) {
        char chunk[4096];

        for (unsigned i = 0; i < CHUNKS_PER_TURN && capture->source.fd >= 0; i++) {
                ssize_t n = read(capture->source.fd, chunk, sizeof(chunk));

                if (n < 0 && (errno == EAGAIN || errno == EINTR))
                        return;
                if (n <= 0)
                        close_captured_pipe(capture);
                else
                        append_captured(capture, chunk, (size_t) n);
        }
}

static void on_captured_pipe_readable(EpollSource *source, uint32_t events) {
        capture_read(container_of(source, Capture, source));
}

int capture_open(Capture *capture, int epoll_fd, int fd_consume, size_t max) {
        *capture = (Capture){ .source = { fd_consume, on_captured_pipe_readable },
                              .epoll_fd = epoll_fd,
                              .max = max };
        return epoll_source_add(epoll_fd, &capture->source, EPOLLIN);
}

const char *capture_text(Capture *capture) {
        if (!capture->text)
                return "";
        for (size_t i = 0; i < capture->length; i++)
                if (capture->text[i] == '\0')
                        capture->text[i] = '?';
        capture->text[capture->length] = '\0';
        return capture->text;
}

const char *capture_last_line(Capture *capture) {
        const char *text = capture_text(capture), *newline;
        size_t length = strlen(text);

        while (length > 0 && (text[length - 1] == '\n' || text[length - 1] == ' '))
                length--;
        if (length == 0)
                return "";
        capture->text[length] = '\0';
        newline = strrchr(text, '\n');
        return newline ? newline + 1 : text;
}

void capture_done(Capture *capture) {
        close_captured_pipe(capture);
        free(TAKE_PTR(capture->text));
        capture->length = 0;
}
