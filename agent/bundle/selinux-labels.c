/* SPDX-License-Identifier: Apache-2.0 */
/* Only the level (a pair of categories) is chosen and recorded; everything else is computed from
 * the spec and the policy each time. The first candidate is derived from the hash of the pod's UID;
 * if another pod already has it, the next one is tried. */

#include "agent/bundle/selinux-labels.h"

#include "agent/bundle/pod-paths.h"
#include "agent/model/containers.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/hash.h"
#include "common/text.h"

#include <fcntl.h>
#include <regex.h>

enum {
        CATEGORIES = 1024,
        LEVEL_ATTEMPTS = 64, /* candidates; each is one of half a million pairs */
        LEVEL_SIZE = sizeof("s0:c1023,c1023"),
        CONTEXT_FILE_MAX = 64 * 1024,
};

static const char level_file[] = "level";

/* ---- the contexts of the policy ---- */

/* The value of a line 'key = "value"', quoted or not; NULL if the line has a different key. */
static char *context_line_value(char *line, const char *key) {
        char *value = strchr(line, '=');
        size_t length;

        line += strspn(line, " \t");
        if (!value || strncmp(line, key, strlen(key)) != 0 ||
            line[strlen(key) + strspn(line + strlen(key), " \t")] != '=')
                return NULL;
        value++;
        value += strspn(value, " \t\"");
        length = strcspn(value, "\" \t\r\n");
        return length > 0 ? strndup(value, length) : NULL;
}

/* The last line with the key is used, as in libselinux. NULL: none. */
static char *find_context_value(const char *text, const char *key) {
        cleanup_free char *copy = strdup(text);
        char *rest = copy, *line, *found = NULL;

        while (rest && (line = strsep(&rest, "\n"))) {
                char *value = context_line_value(line, key);

                if (value) {
                        free(found);
                        found = value;
                }
        }
        return found;
}

static int read_lxc_contexts(const char *root, char **ret) {
        cleanup_free char *own = path_join(root, "usr/share/containers/selinux/contexts");
        cleanup_free char *config = path_join(root, "etc/selinux/config");
        cleanup_free char *text = NULL, *type = NULL, *path = NULL;
        int r;

        if (!own || !config)
                return -ENOMEM;
        r = read_file_at(AT_FDCWD, own, CONTEXT_FILE_MAX, ret, NULL);
        if (r != -ENOENT)
                return r;
        r = read_file_at(AT_FDCWD, config, CONTEXT_FILE_MAX, &text, NULL);
        if (r < 0)
                return r;
        type = find_context_value(text, "SELINUXTYPE");
        path = text_format("%s/etc/selinux/%s/contexts/lxc_contexts", root,
                           type ? type : "targeted");
        if (!path)
                return -ENOMEM;
        return read_file_at(AT_FDCWD, path, CONTEXT_FILE_MAX, ret, NULL);
}

int selinux_label_defaults_load(const char *root, SeLinuxLabelDefaults *ret) {
        cleanup_with(selinux_label_defaults_done) SeLinuxLabelDefaults defaults = { 0 };
        cleanup_free char *text = NULL;
        int r = read_lxc_contexts(root, &text);

        if (r < 0)
                return r;
        defaults.process = find_context_value(text, "process");
        defaults.file = find_context_value(text, "file");
        if (!defaults.process || !defaults.file)
                return -ENOENT;
        *ret = defaults;
        defaults = (SeLinuxLabelDefaults){ 0 };
        return 0;
}

void selinux_label_defaults_done(SeLinuxLabelDefaults *defaults) {
        free(defaults->process);
        free(defaults->file);
        *defaults = (SeLinuxLabelDefaults){ 0 };
}

/* ---- assembling a label ---- */

/* The parts of a label. The level, which may contain colons, is the last one. NULL: absent. */
typedef struct SeLinuxLabelParts {
        const char *user;
        const char *role;
        const char *type;
        const char *level;
} SeLinuxLabelParts;

/* Modifies 'text'. */
static bool split_selinux_label(char *text, SeLinuxLabelParts *ret) {
        char *rest = text;

        ret->user = strsep(&rest, ":");
        ret->role = rest ? strsep(&rest, ":") : NULL;
        ret->type = rest ? strsep(&rest, ":") : NULL;
        ret->level = rest;
        return ret->type && ret->user[0] && ret->role[0] && ret->type[0];
}

static char *join_selinux_label(const SeLinuxLabelParts *parts) {
        return text_format("%s:%s:%s%s%s", parts->user, parts->role, parts->type,
                           parts->level ? ":" : "", strna(parts->level));
}

static bool has_selinux_options(const SeLinuxOptions *options) {
        return options && (strna(options->user)[0] || strna(options->role)[0] ||
                           strna(options->type)[0] || strna(options->level)[0]);
}

static void set_label_part(const char **part, const char *value) {
        if (strna(value)[0])
                *part = value;
}

/* A file has the user and level of the processes; its type comes from the policy. */
static int compose_selinux_label(const SeLinuxLabelDefaults *defaults,
                                 const SeLinuxOptions *options, const char *level,
                                 SeLinuxLabels *ret) {
        cleanup_with(selinux_labels_done) SeLinuxLabels labels = { 0 };
        cleanup_free char *process_text = strdup(defaults->process);
        cleanup_free char *file_text = strdup(defaults->file);
        SeLinuxLabelParts process, file;

        if (!process_text || !file_text)
                return -ENOMEM;
        if (!split_selinux_label(process_text, &process) || !split_selinux_label(file_text, &file))
                return -EINVAL;
        if (process.level)
                process.level = file.level = level;
        if (options) {
                set_label_part(&process.user, options->user);
                set_label_part(&file.user, options->user);
                set_label_part(&process.role, options->role);
                set_label_part(&process.type, options->type);
                set_label_part(&process.level, options->level);
                set_label_part(&file.level, options->level);
        }
        labels.process = join_selinux_label(&process);
        labels.file = join_selinux_label(&file);
        if (!labels.process || !labels.file)
                return -ENOMEM;
        *ret = labels;
        labels = (SeLinuxLabels){ 0 };
        return 0;
}

void selinux_labels_done(SeLinuxLabels *labels) {
        free(labels->process);
        free(labels->file);
        *labels = (SeLinuxLabels){ 0 };
}

/* ---- the level of a pod ---- */

static char *pod_level_path(const BundleConfig *config, const char *uid) {
        cleanup_free char *directory = pod_run_dir(config, uid);

        return directory ? path_join(directory, level_file) : NULL;
}

/* The recorded level of any pod; -ENOENT if it has none. */
static int load_pod_level(const BundleConfig *config, const char *uid, char **ret) {
        cleanup_free char *path = pod_level_path(config, uid);
        cleanup_free char *text = NULL;
        int r = path ? read_file_at(AT_FDCWD, path, LEVEL_SIZE, &text, NULL) : -ENOMEM;

        if (r < 0)
                return r;
        text[strcspn(text, "\n")] = '\0';
        *ret = TAKE_PTR(text);
        return 0;
}

/* The level has two categories in ascending order. A process may access files whose categories it
 * has, and no other pod has the same two. */
static void compute_level_candidate(const char *uid, unsigned attempt, char ret[LEVEL_SIZE]) {
        char text[512], hash[SHA256_HEX_SIZE];
        unsigned long number;
        unsigned a, b;
        int n = snprintf(text, sizeof(text), "%s/%u", uid, attempt);

        sha256_hex(text, MIN((size_t) n, sizeof(text) - 1), hash);
        hash[8] = '\0';
        number = strtoul(hash, NULL, 16);
        a = (unsigned) (number % CATEGORIES);
        b = (unsigned) (number / CATEGORIES % (CATEGORIES - 1));
        b += b >= a;
        (void) snprintf(ret, LEVEL_SIZE, "s0:c%u,c%u", MIN(a, b), MAX(a, b));
}

static bool is_level_taken(const BundleConfig *config, const char *level) {
        cleanup_free char *path = path_join(config->run_dir, "pods");
        cleanup_closedir DIR *dir = path ? opendir(path) : NULL;
        struct dirent *entry;

        while (dir && (entry = readdir(dir))) {
                cleanup_free char *other = NULL;

                if (entry->d_name[0] != '.' && load_pod_level(config, entry->d_name, &other) >= 0 &&
                    streq(other, level))
                        return true;
        }
        return false;
}

static int allocate_pod_level(const BundleConfig *config, const char *uid) {
        cleanup_free char *directory = pod_run_dir(config, uid);
        cleanup_close int fd = -EBADF;
        char level[LEVEL_SIZE], text[LEVEL_SIZE + 1];
        int n;

        if (!directory)
                return -ENOMEM;
        for (unsigned i = 0; i < LEVEL_ATTEMPTS; i++) {
                compute_level_candidate(uid, i, level);
                if (!is_level_taken(config, level))
                        break;
        }
        fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        n = snprintf(text, sizeof(text), "%s\n", level);
        return write_file_atomic_at(fd, level_file, text, (size_t) n, 0600);
}

/* ---- which label applies ---- */

/* The levels that container engines accept: "s0", "s0-s1:c1,c2.c4". */
static bool is_selinux_level(const char *text) {
        static const char category[] = "c[0-9]{1,4}(\\.c[0-9]{1,4})?";
        char pattern[2 * sizeof(category) + 32];
        regex_t regex;
        bool matches;

        (void) snprintf(pattern, sizeof(pattern), "^s[0-9](-s[0-9])?(:%s(,%s)*)?$", category,
                        category);
        if (regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB) != 0)
                return false;
        matches = regexec(&regex, text, 0, NULL, 0) == 0;
        regfree(&regex);
        return matches;
}

static bool is_selinux_word(const char *text) {
        return text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                 "0123456789_.-")] == '\0';
}

static int check_selinux_options(const BundleConfig *config, const SeLinuxOptions *options,
                                 Error *reterr) {
        const struct {
                const char *key, *value;
                bool is_good;
        } fields[] = {
                { "user", options->user, is_selinux_word(strna(options->user)) },
                { "role", options->role, is_selinux_word(strna(options->role)) },
                { "type", options->type, is_selinux_word(strna(options->type)) },
                { "level", options->level,
                  !strna(options->level)[0] || is_selinux_level(options->level) },
        };

        if (!config->labels)
                return error_setf(reterr, ENOTSUP,
                                  "cannot set an SELinux label: the policy of this node defines no "
                                  "contexts of containers");
        for (size_t i = 0; i < N_ELEMENTS(fields); i++)
                if (!fields[i].is_good)
                        return error_setf(reterr, EINVAL,
                                          "the format of '%s' \"%s\" is not correct", fields[i].key,
                                          fields[i].value);
        return 0;
}

static int check_selinux_labels(const BundleConfig *config, const SeLinuxLabels *labels,
                                Error *reterr) {
        const char *const both[] = { labels->process, labels->file };

        for (size_t i = 0; i < N_ELEMENTS(both); i++)
                if (config->check_selinux_label && config->check_selinux_label(both[i]) == -EINVAL)
                        return error_setf(reterr, EINVAL,
                                          "the SELinux policy of this node does not know '%s'",
                                          both[i]);
        return 0;
}

/* The seLinuxOptions that apply, or NULL. */
static const SeLinuxOptions *effective_selinux_options(const Pod *pod, const Container *container) {
        const SeLinuxOptions *of_pod = pod->spec.security_context.se_linux_options;
        const SeLinuxOptions *own = container ? container->security_context.se_linux_options : NULL;

        if (has_selinux_options(own))
                return own;
        return has_selinux_options(of_pod) ? of_pod : NULL;
}

/* A container that sees all processes of the node is not confined by a label, unless its options
 * set one. */
static bool wants_selinux_labels(const BundleConfig *config, const Pod *pod,
                                 const Container *container) {
        if (!config->has_se_linux)
                return false;
        return effective_selinux_options(pod, container) ||
               (config->has_selinux_labels && !pod->spec.host_pid && !pod->spec.host_ipc);
}

/* 'level' is the level chosen for the pod. */
static int compute_container_labels(const BundleConfig *config, const Pod *pod,
                                    const Container *container, const char *level,
                                    SeLinuxLabels *ret, Error *reterr) {
        const SeLinuxOptions *of_pod = effective_selinux_options(pod, NULL),
                             *options = effective_selinux_options(pod, container);
        int r = 0;

        if (of_pod && strna(of_pod->level)[0]) {
                level = of_pod->level;
                r = check_selinux_options(config, &(SeLinuxOptions){ .level = of_pod->level },
                                          reterr);
        }
        if (r >= 0 && options)
                r = check_selinux_options(config, options, reterr);
        if (r >= 0)
                r = compose_selinux_label(config->labels, options, level, ret);
        return r < 0 ? r : check_selinux_labels(config, ret, reterr);
}

/* A pod without a level started when SELinux was disabled. A labelled process could not access its
 * files, and its shim does not relabel them. */
static int load_container_level(const BundleConfig *config, const Pod *pod,
                                const Container *container, char **ret, Error *reterr) {
        int r = load_pod_level(config, pod->metadata.uid, ret);

        if (r == -ENOENT && !effective_selinux_options(pod, container))
                return 0;
        if (r == -ENOENT)
                return error_setf(reterr, ENOTSUP,
                                  "the pod was started without SELinux labels and gets them when "
                                  "it is recreated");
        return r < 0 ? error_setf(reterr, -r, "cannot read the pod's SELinux level: %s",
                                  strerror(-r))
                     : 1;
}

int selinux_container_labels(const BundleConfig *config, const Pod *pod, const Container *container,
                             SeLinuxLabels *ret, Error *reterr) {
        cleanup_with(selinux_labels_done) SeLinuxLabels labels = { 0 };
        cleanup_free char *level = NULL;
        int r = 0;

        if (wants_selinux_labels(config, pod, container))
                r = load_container_level(config, pod, container, &level, reterr);
        if (r > 0)
                r = compute_container_labels(config, pod, container, level, &labels, reterr);
        if (r < 0)
                return error_prefixf(reterr, r, "seLinuxOptions");
        if (container->security_context.privileged) {
                free(labels.process);
                labels.process = NULL;
        }
        *ret = labels;
        labels = (SeLinuxLabels){ 0 };
        return 0;
}

int selinux_check_container(const BundleConfig *config, const Pod *pod, const Container *container,
                            Error *reterr) {
        cleanup_with(selinux_labels_done) SeLinuxLabels labels = { 0 };
        char level[LEVEL_SIZE];
        int r;

        if (!wants_selinux_labels(config, pod, container))
                return 0;
        compute_level_candidate(pod->metadata.uid, 0, level);
        r = compute_container_labels(config, pod, container, level, &labels, reterr);
        return r < 0 ? error_prefixf(reterr, r, "seLinuxOptions") : 0;
}

int selinux_prepare_pod_level(const BundleConfig *config, const Pod *pod, Error *reterr) {
        cleanup_free char *level = NULL;
        int r;

        if (!config->has_se_linux)
                return 0;
        r = load_pod_level(config, pod->metadata.uid, &level);
        if (r == -ENOENT)
                r = allocate_pod_level(config, pod->metadata.uid);
        if (r < 0)
                return error_setf(reterr, -r, "cannot give the pod an SELinux level: %s",
                                  strerror(-r));
        return 0;
}

/* ---- files that containers share ---- */

static bool mounts_volume(const Container *container, const Volume *volume) {
        for (size_t i = 0; i < container->volume_mounts.n; i++)
                if (streq(container->volume_mounts.items[i].name, volume->name))
                        return true;
        return false;
}

static bool is_volume_mounted_by_any(const PodSpec *spec, const Volume *volume) {
        const Container *container;

        pod_foreach_container(container, spec)
                if (mounts_volume(container, volume))
                        return true;
        return false;
}

/* If two labels differ, the result is the first one without its categories, as container engines
 * label shared files. */
static int merge_shared_label(const BundleConfig *config, char **label, const char *other) {
        cleanup_free char *text = NULL, *policy = NULL;
        SeLinuxLabelParts parts, defaults;
        char *common;

        if (streq(*label, other))
                return 0;
        text = strdup(*label);
        policy = strdup(config->labels->file);
        if (!text || !policy)
                return -ENOMEM;
        if (!split_selinux_label(text, &parts) || !split_selinux_label(policy, &defaults))
                return -EINVAL;
        parts.level = defaults.level;
        common = join_selinux_label(&parts);
        if (!common)
                return -ENOMEM;
        free(*label);
        *label = common;
        return 0;
}

/* A container with invalid options does not start, so it is ignored. */
int selinux_shared_label(const BundleConfig *config, const Pod *pod, const Volume *volume,
                         char **ret) {
        bool by_all = !volume || !is_volume_mounted_by_any(&pod->spec, volume);
        cleanup_free char *label = NULL;
        const Container *container;

        pod_foreach_container(container, &pod->spec) {
                cleanup_with(selinux_labels_done) SeLinuxLabels labels = { 0 };
                int r = 0;

                if (by_all || mounts_volume(container, volume))
                        r = selinux_container_labels(config, pod, container, &labels, NULL);
                if (r >= 0 && labels.file && label)
                        r = merge_shared_label(config, &label, labels.file);
                if (r == -ENOMEM)
                        return r;
                if (!label)
                        label = TAKE_PTR(labels.file);
        }
        *ret = TAKE_PTR(label);
        return 0;
}

static int add_mount_label(const BundleConfig *config, const Pod *pod, const Container *container,
                           char **label, Error *reterr) {
        cleanup_with(selinux_labels_done) SeLinuxLabels labels = { 0 };
        int r = selinux_container_labels(config, pod, container, &labels, reterr);

        if (r < 0)
                return r;
        if (*label && !streq(*label, strna(labels.file)))
                return error_setf(reterr, EINVAL, "multiple SELinux labels found: %s,%s", *label,
                                  strna(labels.file));
        if (!*label)
                *label = TAKE_PTR(labels.file);
        return 0;
}

int selinux_mount_label(const BundleConfig *config, const Pod *pod, const Volume *volume,
                        char **ret, Error *reterr) {
        cleanup_free char *label = NULL;
        const Container *container;

        *ret = NULL;
        if (!config->has_se_linux ||
            pod->spec.security_context.se_linux_change_policy == SE_LINUX_CHANGE_RECURSIVE)
                return 0;
        pod_foreach_container(container, &pod->spec) {
                int r = 0;

                if (effective_selinux_options(pod, container) && mounts_volume(container, volume))
                        r = add_mount_label(config, pod, container, &label, reterr);
                if (r < 0)
                        return r;
        }
        *ret = TAKE_PTR(label);
        return 0;
}
