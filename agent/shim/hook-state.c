/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shim/hook-state.h"

#include "common/cleanup.h"
#include "common/file.h"
#include "common/json-text.h"

#include <fcntl.h>

enum {
        STATE_MAX = 1024 * 1024,
        CONFIG_MAX = 64 * 1024 * 1024,
};

void hook_state_done(HookState *hook) {
        json_decref(hook->state);
        json_decref(hook->config);
        free(hook->rootfs);
        *hook = (HookState){ 0 };
}

static int load_state(HookState *hook, int fd) {
        cleanup_free char *text = NULL;
        size_t length = 0;
        int r = read_stream(fd, STATE_MAX, &text, &length);

        if (r < 0)
                return r;
        hook->state = json_loadb(text, length, 0, NULL);
        return hook->state ? 0 : -EBADMSG;
}

static int load_config(HookState *hook) {
        const char *bundle = json_text(hook->state, "bundle");
        cleanup_free char *path = bundle ? path_join(bundle, "config.json") : NULL, *text = NULL;
        size_t length = 0;
        int r;

        if (!bundle)
                return -EBADMSG;
        hook->rootfs = path_join(bundle, "rootfs");
        r = path && hook->rootfs ? read_file_at(AT_FDCWD, path, CONFIG_MAX, &text, &length)
                                 : -ENOMEM;
        if (r < 0)
                return r;
        hook->config = json_loadb(text, length, 0, NULL);
        return hook->config ? 0 : -EBADMSG;
}

int hook_state_load(int state_fd, HookState *ret, Error *reterr) {
        int r = load_state(ret, state_fd);

        if (r >= 0)
                r = load_config(ret);
        return r < 0 ? error_setf(reterr, -r, "cannot read the state of the container: %s",
                                  strerror(-r))
                     : 0;
}

int hook_state_open_namespace(const HookState *hook, const char *name) {
        json_int_t pid = json_integer_value(json_object_get(hook->state, "pid"));
        char path[64];
        int fd;

        if (pid <= 0)
                return -EBADMSG;
        (void) snprintf(path, sizeof(path), "/proc/%lld/ns/%s", (long long) pid, name);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}
