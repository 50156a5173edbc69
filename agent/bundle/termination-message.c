/* SPDX-License-Identifier: Apache-2.0 */
/* The termination message of a container (terminationMessagePath; terminationMessagePolicy File or
 * FallbackToLogsOnError). The content is untrusted and unbounded: only its end is read, and the
 * result is a text without NULs. */

#include "agent/bundle/bundle.h"
#include "agent/bundle/volume-mounts.h"
#include "agent/model/containers.h"
#include "common/cleanup.h"
#include "common/file.h"

#include <fcntl.h>
#include <sys/stat.h>

/* The kubelet's limits. */
enum {
        MESSAGE_MAX = 4096,
        MESSAGES_OF_POD_MAX = 12288,
        LOG_LINES_MAX = 80,
        LOG_BYTES_MAX = 2048,
        /* The number of bytes of the log on disk that are read to find the last lines. */
        LOG_READ_MAX = 64 * 1024,
};

/* The end of a regular file, at most 'max' bytes, NUL-terminated, with '?' for each NUL in it;
 * *ret_is_cut is true if the file is longer. NULL if it cannot be read. */
static char *read_file_tail(const char *path, size_t max, size_t *ret_length, bool *ret_is_cut) {
        cleanup_close int fd =
                open_no_symlinks(AT_FDCWD, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
        cleanup_free char *data = malloc(max + 1);
        struct stat st;
        off_t start;
        ssize_t n;

        if (fd < 0 || !data || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
                return NULL;
        start = st.st_size > (off_t) max ? st.st_size - (off_t) max : 0;
        n = pread(fd, data, max, start);
        if (n < 0)
                return NULL;
        for (ssize_t i = 0; i < n; i++)
                if (data[i] == '\0')
                        data[i] = '?';
        data[n] = '\0';
        *ret_length = (size_t) n;
        *ret_is_cut = start > 0;
        return TAKE_PTR(data);
}

/* "<time> <stream> <tag> <message>": returns the message, or NULL if the line has another
 * format. */
static const char *log_line_message(const char *line, bool *ret_is_partial) {
        const char *stream = strchr(line, ' ');
        const char *tag = stream ? strchr(stream + 1, ' ') : NULL;
        const char *message = tag ? strchr(tag + 1, ' ') : NULL;

        if (!message)
                return NULL;
        *ret_is_partial = tag[1] == 'P';
        return message + 1;
}

/* The start of the last lines. */
static char *keep_last_lines(char *text, size_t length, unsigned n) {
        char *p = text + length;

        if (p > text && p[-1] == '\n')
                p--;
        while (p > text && !(p[-1] == '\n' && --n == 0))
                p--;
        return p;
}

static char *read_log_tail(const char *path) {
        size_t length = 0, size;
        bool is_cut = false, is_partial = false;
        cleanup_free char *data = read_file_tail(path, LOG_READ_MAX, &length, &is_cut);
        char *rest = data, *line, *text = NULL;
        FILE *out;

        if (!data)
                return NULL;
        if (is_cut)
                (void) strsep(&rest, "\n");
        if (!rest)
                return NULL;
        rest = keep_last_lines(rest, length - (size_t) (rest - data), LOG_LINES_MAX);
        out = open_memstream(&text, &size);
        if (!out)
                return NULL;
        while ((line = strsep(&rest, "\n"))) {
                const char *message = log_line_message(line, &is_partial);

                if (message)
                        (void) fprintf(out, "%s%s", message, is_partial ? "" : "\n");
        }
        if (fclose(out) != 0) {
                free(text);
                return NULL;
        }
        if (size > LOG_BYTES_MAX)
                memmove(text, text + size - LOG_BYTES_MAX, LOG_BYTES_MAX + 1);
        return text;
}

static char *read_termination_log(const BundleConfig *config, const Pod *pod,
                                  const Container *container, unsigned attempt) {
        cleanup_free char *path =
                termination_log_path(config, pod->metadata.uid, container->name, attempt);
        size_t length = 0;
        bool is_cut;

        return path ? read_file_tail(path, MESSAGE_MAX, &length, &is_cut) : NULL;
}

char *bundle_termination_message(const BundleConfig *config, const Pod *pod,
                                 const Container *container, unsigned attempt, bool has_failed) {
        size_t share = MESSAGES_OF_POD_MAX / MAX(pod_count_containers(&pod->spec), 1);
        cleanup_with(bundle_done) Bundle bundle = { 0 };
        cleanup_free char *message = read_termination_log(config, pod, container, attempt);

        if (!(message && *message) && has_failed &&
            container->termination_message_policy == TERMINATION_MESSAGE_FALLBACK_TO_LOGS) {
                free(message);
                message = NULL;
                if (bundle_attempt_paths(config, pod, container->name, attempt, &bundle) >= 0)
                        message = read_log_tail(bundle.log);
        }
        if (!(message && *message))
                return NULL;
        if (strlen(message) > share)
                message[share] = '\0';
        return TAKE_PTR(message);
}
