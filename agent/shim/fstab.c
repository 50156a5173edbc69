/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shim/fstab.h"

#include "common/array.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/text.h"

#include <fcntl.h>
#include <mntent.h>
#include <sys/mount.h>

typedef struct FlagOption {
        const char *name;
        unsigned long set;
        unsigned long clear;
} FlagOption;

/* clang-format off */
static const FlagOption flag_options[] = {
        { "ro",          MS_RDONLY,      0              },
        { "rw",          0,              MS_RDONLY      },
        { "nosuid",      MS_NOSUID,      0              },
        { "suid",        0,              MS_NOSUID      },
        { "nodev",       MS_NODEV,       0              },
        { "dev",         0,              MS_NODEV       },
        { "noexec",      MS_NOEXEC,      0              },
        { "exec",        0,              MS_NOEXEC      },
        { "noatime",     MS_NOATIME,     0              },
        { "nodiratime",  MS_NODIRATIME,  0              },
        { "relatime",    MS_RELATIME,    0              },
        { "strictatime", MS_STRICTATIME, 0              },
        { "nosymfollow", MS_NOSYMFOLLOW, 0              },
        { "sync",        MS_SYNCHRONOUS, 0              },
        { "dirsync",     MS_DIRSYNC,     0              },
        { "defaults",    0,              0              },
};

static const FlagOption propagation_options[] = {
        { "private",     MS_PRIVATE,    0      },
        { "rprivate",    MS_PRIVATE,    MS_REC },
        { "slave",       MS_SLAVE,      0      },
        { "rslave",      MS_SLAVE,      MS_REC },
        { "shared",      MS_SHARED,     0      },
        { "rshared",     MS_SHARED,     MS_REC },
        { "unbindable",  MS_UNBINDABLE, 0      },
        { "runbindable", MS_UNBINDABLE, MS_REC },
};

static const struct {
        const char *prefix;
        size_t offset;
} own_options[] = {
        { "x-mainstay.hostpath=", offsetof(MountSpec, hostpath_type) },
        { "x-mainstay.idmap=",    offsetof(MountSpec, idmap)         },
        { "x-mainstay.mode=",     offsetof(MountSpec, mode)          },
        { "x-mainstay.volume=",   offsetof(MountSpec, volume)        },
        { "x-mainstay.beneath=",  offsetof(MountSpec, beneath)       },
        { "x-mainstay.label=",    offsetof(MountSpec, label)         },
        { "x-mainstay.group=",    offsetof(MountSpec, group)         },
        { "x-mainstay.copy=",     offsetof(MountSpec, copy)          },
        { "x-mainstay.mountpoint=", offsetof(MountSpec, mount_point) },
        { "x-mainstay.nfs=",      offsetof(MountSpec, nfs)           },
};
/* clang-format on */

static const FlagOption *find_mount_option(const FlagOption *options, size_t n, const char *name) {
        for (size_t i = 0; i < n; i++)
                if (streq(options[i].name, name))
                        return &options[i];
        return NULL;
}

static int set_mount_string(char **string, const char *value) {
        char *copy = strdup(value);

        if (!copy)
                return -ENOMEM;
        free(*string);
        *string = copy;
        return 0;
}

static int append_mount_data(MountSpec *spec, const char *option) {
        char *data;

        if (!spec->data)
                return set_mount_string(&spec->data, option);
        data = text_format("%s,%s", spec->data, option);
        if (!data)
                return -ENOMEM;
        free(spec->data);
        spec->data = data;
        return 0;
}

/* Without the surrounding quotes. */
static int set_unquoted_mount_string(char **string, const char *value) {
        size_t length = strlen(value);
        char *copy;

        if (length < 2 || value[0] != '"' || value[length - 1] != '"')
                return set_mount_string(string, value);
        copy = strndup(value + 1, length - 2);
        if (!copy)
                return -ENOMEM;
        free(*string);
        *string = copy;
        return 0;
}

/* 1 if it is a Mainstay option and was parsed; 0 if not. */
static int parse_own_option(MountSpec *spec, const char *option, Error *reterr) {
        for (size_t i = 0; i < N_ELEMENTS(own_options); i++) {
                size_t length = strlen(own_options[i].prefix);
                char **string = (char **) (void *) ((char *) spec + own_options[i].offset);

                if (strncmp(option, own_options[i].prefix, length) == 0)
                        return set_unquoted_mount_string(string, option + length) < 0 ? -ENOMEM : 1;
        }
        /* Ignoring an option that restricts a mount would silently remove the restriction. */
        if (strncmp(option, "x-mainstay.", strlen("x-mainstay.")) == 0)
                return error_setf(reterr, EINVAL, "unknown option '%s'", option);
        return 0;
}

static int parse_mount_option(MountSpec *spec, const char *option, Error *reterr) {
        const FlagOption *flag = find_mount_option(flag_options, N_ELEMENTS(flag_options), option);
        const FlagOption *propagation =
                find_mount_option(propagation_options, N_ELEMENTS(propagation_options), option);
        int r;

        if (flag) {
                spec->flags = (spec->flags & ~flag->clear) | flag->set;
                return 0;
        }
        if (propagation) {
                spec->propagation = propagation->set;
                spec->propagate_all = propagation->clear == MS_REC;
                return 0;
        }
        if (streq(option, "bind") || streq(option, "rbind")) {
                spec->bind = true;
                spec->recursive = option[0] == 'r';
                return 0;
        }
        r = parse_own_option(spec, option, reterr);
        return r != 0 ? MIN(r, 0) : append_mount_data(spec, option);
}

char *fstab_next_option(char **rest) {
        char *option = *rest, *c = option;
        bool quoted = false;

        if (!option)
                return NULL;
        for (; *c && (quoted || *c != ','); c++)
                quoted = quoted != (*c == '"');
        *rest = *c ? c + 1 : NULL;
        *c = '\0';
        return option;
}

/* Options that contradict each other are refused; otherwise one of them would be ignored
 * silently. */
static int check_fstab_entry_without_mount(const MountSpec *spec, Error *reterr) {
        bool has_target = spec->copy || spec->mount_point;

        if (spec->bind || spec->data || spec->mode || has_target == streq(spec->target, "none"))
                return error_setf(reterr, EINVAL,
                                  "a line with x-mainstay.label, .group, .copy or .mountpoint must "
                                  "not be a mount");
        return 0;
}

static int check_fstab_entry(const MountSpec *spec, Error *reterr) {
        if (spec->label || spec->group || spec->copy || spec->mount_point)
                return check_fstab_entry_without_mount(spec, reterr);
        if (spec->target[0] != '/')
                return error_setf(reterr, EINVAL, "'%s' is not an absolute path", spec->target);
        if (spec->bind && spec->data)
                return error_setf(reterr, EINVAL, "a bind mount does not take the option '%s'",
                                  spec->data);
        if (spec->bind && spec->mode)
                return error_setf(reterr, EINVAL, "a bind mount has the mode of its source");
        if (spec->nfs && (spec->bind || spec->data || spec->flags || spec->mode))
                return error_setf(reterr, EINVAL, "an NFS mount has its options in x-mainstay.nfs");
        if (!spec->bind && (spec->hostpath_type || spec->beneath || spec->idmap))
                return error_setf(reterr, EINVAL,
                                  "x-mainstay.hostpath, .beneath and .idmap need a bind mount");
        return 0;
}

static int parse_fstab_entry(const struct mntent *entry, MountSpec *spec, Error *reterr) {
        char *rest = entry->mnt_opts, *option;
        int r;

        if (set_mount_string(&spec->source, entry->mnt_fsname) < 0 ||
            set_mount_string(&spec->target, entry->mnt_dir) < 0 ||
            set_mount_string(&spec->type, entry->mnt_type) < 0)
                return -ENOMEM;
        while ((option = fstab_next_option(&rest)))
                if (option[0]) {
                        r = parse_mount_option(spec, option, reterr);
                        if (r < 0)
                                return r;
                }
        return check_fstab_entry(spec, reterr);
}

static void mount_spec_done(MountSpec *spec) {
        free(spec->source);
        free(spec->target);
        free(spec->type);
        free(spec->data);
        free(spec->hostpath_type);
        free(spec->volume);
        free(spec->mode);
        free(spec->idmap);
        free(spec->beneath);
        free(spec->label);
        free(spec->group);
        free(spec->copy);
        free(spec->mount_point);
        free(spec->nfs);
}

void fstab_done(Fstab *fstab) {
        for (size_t i = 0; i < fstab->n; i++)
                mount_spec_done(&fstab->mounts[i]);
        free(fstab->mounts);
        *fstab = (Fstab){ 0 };
}

/* Parses one line. getmntent_r() would silently truncate it to its buffer, so the buffer is never
 * shorter. 'line' is modified. 1 if the line had an entry, 0 if it was empty or a comment. */
static int parse_fstab_line(char *line, MountSpec *spec, Error *reterr) {
        cleanup_fclose FILE *file = NULL;
        cleanup_free char *buffer = NULL;
        struct mntent entry;
        size_t length = strlen(line);
        int r;

        if (line[strspn(line, " \t\r")] == '\0' || line[strspn(line, " \t")] == '#')
                return 0;
        buffer = malloc(length + 2);
        file = fmemopen(line, length, "r");
        if (!buffer || !file)
                return -ENOMEM;
        if (!getmntent_r(file, &entry, buffer, (int) length + 2) || !entry.mnt_opts[0])
                return error_setf(reterr, EINVAL,
                                  "expected a source, a target, a type and options");
        r = parse_fstab_entry(&entry, spec, reterr);
        return r < 0 ? r : 1;
}

static int append_fstab_line(Fstab *fstab, char *line, Error *reterr) {
        MountSpec spec = { 0 }, *added;
        int r = parse_fstab_line(line, &spec, reterr);

        if (r <= 0) {
                mount_spec_done(&spec);
                return r;
        }
        added = ARRAY_APPEND(fstab->mounts, fstab->n);
        if (!added) {
                mount_spec_done(&spec);
                return -ENOMEM;
        }
        *added = spec;
        return 0;
}

int fstab_parse(char *text, size_t length, Fstab *ret, Error *reterr) {
        cleanup_fstab Fstab fstab = { 0 };
        char *rest = text, *line;
        unsigned number = 0;

        if (memchr(text, '\0', length))
                return error_setf(reterr, EINVAL, "the file contains a NUL byte");
        while ((line = strsep(&rest, "\n"))) {
                int r;

                number++;
                r = append_fstab_line(&fstab, line, reterr);
                if (r < 0)
                        return error_prefixf(reterr, r, "line %u", number);
        }
        *ret = fstab;
        fstab = (Fstab){ 0 };
        return 0;
}

int fstab_load(const char *path, Fstab *ret, Error *reterr) {
        cleanup_free char *text = NULL;
        size_t length = 0;
        int r = read_file_at(AT_FDCWD, path, FSTAB_SIZE_MAX, &text, &length);

        if (r >= 0)
                r = fstab_parse(text, length, ret, reterr);
        return r < 0 ? error_prefixf(reterr, r, "%s", path) : 0;
}
