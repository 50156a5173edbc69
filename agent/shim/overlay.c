/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shim/overlay.h"

#include "common/array.h"
#include "common/cleanup.h"
#include "common/failpoint.h"
#include "common/file.h"
#include "common/strv.h"

#include <fcntl.h>
#include <sys/mount.h>

/* Since Linux 6.7, fsconfig(2) accepts one layer at a time. On older kernels, each directory is
 * opened and named by its descriptor number relative to /proc/self/fd. */

enum {
        OPTIONS_MAX = 4095, /* limit of mount(2): a page including the NUL */
        VALUE_MAX = 255,    /* limit of fsconfig(2) */
        FD_NAME_SIZE = 12,
};

typedef struct OverlayMount {
        char **options; /* all except "lowerdir" */
        char **layers;  /* topmost first */
        int *fds;       /* of the directories with short names */
        size_t n_fds;
} OverlayMount;

static void overlay_mount_done(OverlayMount *overlay) {
        strv_free(overlay->options);
        strv_free(overlay->layers);
        for (size_t i = 0; i < overlay->n_fds; i++)
                close_fd(overlay->fds[i]);
        free(overlay->fds);
}

static int split_layers(char *list, char ***ret) {
        int r = 0;

        for (char *layer; r >= 0 && (layer = strsep(&list, ":"));)
                r = strv_append(ret, layer);
        return r;
}

static int split_overlay_options(const char *data, OverlayMount *overlay) {
        static const char key[] = "lowerdir=";
        cleanup_free char *copy = strdup(data);
        char *rest = copy, *option;
        int r = copy ? 0 : -ENOMEM;

        while (r >= 0 && (option = fstab_next_option(&rest)))
                r = strncmp(option, key, strlen(key)) == 0
                            ? split_layers(option + strlen(key), &overlay->layers)
                            : strv_append(&overlay->options, option);
        return r;
}

/* Returns the number of the directory's descriptor, which stays open. */
static int open_overlay_directory(OverlayMount *overlay, const char *path,
                                  char ret[static FD_NAME_SIZE], Error *reterr) {
        cleanup_close int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        int *kept;

        if (fd < 0)
                return error_setf(reterr, errno, "cannot open '%s': %s", path, strerror(errno));
        kept = ARRAY_APPEND(overlay->fds, overlay->n_fds);
        if (!kept)
                return -ENOMEM;
        (void) snprintf(ret, FD_NAME_SIZE, "%d", fd);
        *kept = TAKE_FD(fd);
        return 0;
}

/* The value of "upperdir=…" or "workdir=…", otherwise NULL. */
static const char *directory_of_option(const char *option) {
        const char *value = strchr(option, '=');

        if (strncmp(option, "upperdir=", strlen("upperdir=")) != 0 &&
            strncmp(option, "workdir=", strlen("workdir=")) != 0)
                return NULL;
        return value + 1;
}

/* ---- fsconfig(2) ---- */

static int set_overlay_directory(OverlayMount *overlay, int context, const char *key,
                                 const char *path) {
        char name[FD_NAME_SIZE];
        int r = 0;

        if (strlen(path) > VALUE_MAX) {
                r = open_overlay_directory(overlay, path, name, NULL);
                path = name;
        }
        if (r >= 0 && fsconfig(context, FSCONFIG_SET_STRING, key, path, 0) < 0)
                r = -errno;
        return r;
}

static int set_overlay_layers(OverlayMount *overlay, int context) {
        int r = 0;

        FAIL_AT("overlay.layers");
        for (char **layer = overlay->layers; r >= 0 && *layer; layer++)
                r = set_overlay_directory(overlay, context, "lowerdir+", *layer);
        return r;
}

/* mount(2) accepts values in quotes, fsconfig(2) without. */
static int set_overlay_option(OverlayMount *overlay, int context, const char *option) {
        cleanup_free char *copy = strdup(option);
        char *value = copy ? strchr(copy, '=') : NULL, *end;

        if (!copy)
                return -ENOMEM;
        if (!value)
                return fsconfig(context, FSCONFIG_SET_FLAG, copy, NULL, 0) < 0 ? -errno : 0;
        *value++ = '\0';
        if (directory_of_option(option))
                return set_overlay_directory(overlay, context, copy, value);
        end = value + strlen(value);
        if (value[0] == '"' && end - value >= 2 && end[-1] == '"') {
                end[-1] = '\0';
                value++;
        }
        return fsconfig(context, FSCONFIG_SET_STRING, copy, value, 0) < 0 ? -errno : 0;
}

static int set_overlay_options(OverlayMount *overlay, int context, unsigned long flags) {
        int r = set_overlay_layers(overlay, context);

        for (char **option = overlay->options; r >= 0 && option && *option; option++)
                r = set_overlay_option(overlay, context, *option);
        if (r >= 0 && (flags & MS_RDONLY) &&
            fsconfig(context, FSCONFIG_SET_FLAG, "ro", NULL, 0) < 0)
                r = -errno;
        if (r >= 0 && (fsconfig(context, FSCONFIG_SET_STRING, "source", "overlay", 0) < 0 ||
                       fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0))
                r = -errno;
        return r;
}

static int mount_layer_by_layer(OverlayMount *overlay, unsigned long flags, uint64_t attributes,
                                int target_fd) {
        cleanup_close int context = fsopen("overlay", FSOPEN_CLOEXEC), mount_fd = -EBADF;
        int r = context < 0 ? -errno : set_overlay_options(overlay, context, flags);

        if (r < 0)
                return r;
        mount_fd = fsmount(context, FSMOUNT_CLOEXEC, (unsigned) attributes);
        if (mount_fd < 0 || move_mount(mount_fd, "", target_fd, "",
                                       MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
                return -errno;
        return 0;
}

/* ---- short names ---- */

static int put_short_name(OverlayMount *overlay, FILE *out, const char *path, Error *reterr) {
        char name[FD_NAME_SIZE];
        int r = open_overlay_directory(overlay, path, name, reterr);

        if (r >= 0)
                (void) fputs(name, out);
        return r;
}

static int put_short_options(OverlayMount *overlay, FILE *out, Error *reterr) {
        int r = 0;

        for (size_t i = 0; r >= 0 && overlay->layers[i]; i++) {
                (void) fputs(i > 0 ? ":" : "lowerdir=", out);
                r = put_short_name(overlay, out, overlay->layers[i], reterr);
        }
        for (char **option = overlay->options; r >= 0 && option && *option; option++) {
                const char *directory = directory_of_option(*option);
                int length = (int) (directory ? directory - *option : (ssize_t) strlen(*option));

                (void) fprintf(out, ",%.*s", length, *option);
                if (directory)
                        r = put_short_name(overlay, out, directory, reterr);
        }
        return r;
}

static int mount_with_short_names(OverlayMount *overlay, unsigned long flags, int target_fd,
                                  Error *reterr) {
        char target[sizeof("/proc/self/fd/4294967295")];
        cleanup_free char *options = NULL;
        char *text = NULL;
        size_t length;
        FILE *out = open_memstream(&text, &length);
        int r;

        if (!out)
                return -ENOMEM;
        r = put_short_options(overlay, out, reterr);
        options = memstream_finish(out, &text);
        if (r < 0)
                return r;
        if (!options)
                return -ENOMEM;
        if (strlen(options) > OPTIONS_MAX)
                return error_setf(reterr, E2BIG, "the options are longer than %d bytes",
                                  OPTIONS_MAX);
        (void) snprintf(target, sizeof(target), "/proc/self/fd/%d", target_fd);
        if (mount("overlay", target, "overlay", flags, options) < 0)
                return error_setf(reterr, errno, "%s", strerror(errno));
        return 0;
}

int overlay_mount(const MountSpec *spec, uint64_t attributes, int target_fd, Error *reterr) {
        cleanup_with(overlay_mount_done) OverlayMount overlay = { 0 };
        int r = split_overlay_options(strna(spec->data), &overlay);

        if (r < 0)
                return r;
        if (!overlay.layers)
                return error_setf(reterr, EINVAL, "the options name no layer");
        if (chdir("/proc/self/fd") < 0)
                return error_setf(reterr, errno, "cannot enter /proc/self/fd: %s", strerror(errno));
        /* The second method's error is reported, because the first method fails for any option that
         * the kernel does not support yet. */
        r = mount_layer_by_layer(&overlay, spec->flags, attributes, target_fd);
        if (r < 0)
                r = mount_with_short_names(&overlay, spec->flags, target_fd, reterr);
        if (chdir("/") < 0)
                return -errno;
        return r < 0 ? error_prefixf(reterr, r, "%zu layers", strv_length(overlay.layers)) : 0;
}
