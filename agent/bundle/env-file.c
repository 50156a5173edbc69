/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the file of a fileKeyRef. Its content may be secret, so no message includes a value. */

#include "agent/bundle/env-file.h"

#include "agent/bundle/pod-paths.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/text.h"
#include "common/utf8.h"

#include <fcntl.h>
#include <sys/stat.h>

/* ---- parsing ---- */

static const char blanks[] = " \t\r";

static const char *skip_characters(const char *text, const char *characters) {
        return text + strspn(text, characters);
}

/* The result of one assignment, which may span several lines. */
typedef struct EnvFileAssignment {
        const char *name, *value;
        size_t name_length, value_length;
} EnvFileAssignment;

/* The position after the line, or NULL if it is not an assignment. */
static const char *parse_assignment(const char *line, EnvFileAssignment *ret) {
        const char *equals, *end;

        ret->name = line;
        ret->name_length = strcspn(line, " \t\r\n='");
        equals = skip_characters(line + ret->name_length, blanks);
        if (ret->name_length == 0 || *equals != '=')
                return NULL;
        ret->value = skip_characters(equals + 1, blanks);
        if (*ret->value != '\'')
                return NULL;
        ret->value++;
        ret->value_length = strcspn(ret->value, "'");
        end = ret->value + ret->value_length;
        if (*end != '\'')
                return NULL;
        end = skip_characters(end + 1, blanks);
        return *end == '\n' || *end == '\0' ? end : NULL;
}

static unsigned line_number_at(const char *text, const char *at) {
        unsigned n = 1;

        for (; text < at; text++)
                n += *text == '\n';
        return n;
}

int env_file_find(const char *text, const char *name, char **ret, Error *reterr) {
        const char *at = text;

        *ret = NULL;
        for (;;) {
                EnvFileAssignment assignment;
                const char *line = skip_characters(at, " \t\r\n");

                if (*line == '\0')
                        return 0;
                if (*line == '#') {
                        at = line + strcspn(line, "\n");
                        continue;
                }
                at = parse_assignment(line, &assignment);
                if (!at)
                        return error_setf(reterr, EBADMSG,
                                          "invalid environment variable format at line %u: must be "
                                          "NAME='value'",
                                          line_number_at(text, line));
                if (strlen(name) != assignment.name_length ||
                    strncmp(name, assignment.name, assignment.name_length) != 0)
                        continue;
                *ret = strndup(assignment.value, assignment.value_length);
                return *ret ? 0 : -ENOMEM;
        }
}

/* ---- reading ---- */

/* The directory of an emptyDir: on the node, or, if it is a separate mount, through the mount
 * namespace of the shim. */
static int open_pod_volume(const BundleConfig *config, const Pod *pod, const Volume *volume) {
        cleanup_free char *path = volume_path(config, pod->metadata.uid, volume), *through = NULL;
        int fd;

        if (!path)
                return -ENOMEM;
        if (volume->empty_dir->medium != MEDIUM_UNSET) {
                through = text_format("/proc/%d/root%s", (int) config->sandbox_pid, path);
                if (!through)
                        return -ENOMEM;
        }
        fd = open(through ? through : path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

/* The file is first opened with O_PATH and must be a regular file, because opening a device could
 * have side effects. */
static int read_env_file_in_volume(int volume_fd, const char *path, char **ret) {
        cleanup_close int fd = open_beneath(volume_fd, path, O_PATH, 0);
        char again[32];
        struct stat st;
        size_t length;
        int r;

        if (fd < 0)
                return fd;
        if (fstat(fd, &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode))
                return -EINVAL;
        (void) snprintf(again, sizeof(again), "/proc/self/fd/%d", fd);
        r = read_file_at(AT_FDCWD, again, ENV_FILE_MAX, ret, &length);
        if (r < 0)
                return r;
        if (!utf8_is_text(*ret, length)) {
                free(*ret);
                *ret = NULL;
                return -EILSEQ;
        }
        return r;
}

static int env_file_error(const FileKeySelector *selector, Error *reterr, const char *sentence) {
        return error_setf(reterr, BUNDLE_CONFIG_ERROR, "file %s of volume %s: %s", selector->path,
                          selector->volume_name, sentence);
}

int env_file_value(const BundleConfig *config, const Pod *pod, const FileKeySelector *selector,
                   char **ret, Error *reterr) {
        const Volume *volume = pod_find_volume(&pod->spec, selector->volume_name);
        cleanup_close int fd = open_pod_volume(config, pod, volume);
        cleanup_error Error error = ERROR_NULL;
        cleanup_free char *text = NULL;
        int r = fd < 0 ? fd : read_env_file_in_volume(fd, selector->path, &text);

        *ret = NULL;
        if (r == -ENOMEM || ((r == -ENOENT || r == -ENOTDIR) && selector->optional))
                return r == -ENOMEM ? r : 0;
        if (r == -EINVAL)
                return env_file_error(selector, reterr, "is not a regular file");
        if (r == -EILSEQ)
                return env_file_error(selector, reterr, "is not UTF-8 text");
        if (r < 0 || !text)
                return env_file_error(selector, reterr, strerror(-r));
        r = env_file_find(text, selector->key, ret, &error);
        if (r == -EBADMSG)
                return env_file_error(selector, reterr, error_message(&error, r));
        if (r < 0)
                return r;
        if (!*ret && !selector->optional)
                return error_setf(reterr, BUNDLE_CONFIG_ERROR,
                                  "couldn't find key %s in file %s of volume %s", selector->key,
                                  selector->path, selector->volume_name);
        return r;
}
