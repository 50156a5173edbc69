/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sandbox/shim-launch.h"

#include "agent/sandbox/systemd-client.h"
#include "common/child.h"
#include "common/cleanup.h"
#include "common/strv.h"
#include "common/text.h"

#include <signal.h>
#include <sys/wait.h>

/* If systemd is PID 1, the shim is a child of systemd and inherits nothing from the agent, so the
 * agent can be confined while containers are not. The shim runs next to the pods' slices, not in
 * one of them, because a pod's limits apply only to the pod. */
#define SHIM_SLICE "mainstay.slice"

static const char shim_slice[] = SHIM_SLICE;

static int build_shim_arguments(const SandboxConfig *config, const char *uid,
                                const SandboxStartOptions *start, char ***ret) {
        const char *const words[] = {
                config->shim_path, "sandbox",       "--pod",     uid,
                "--run-dir",       config->run_dir, "--runtime", config->runtime_path,
        };
        cleanup_strv char **argv = NULL;
        int r = 0;

        for (size_t i = 0; i < N_ELEMENTS(words); i++) {
                r = strv_append(&argv, words[i]);
                if (r < 0)
                        return r;
        }
        if (config->shim_cgroup && !config->systemd)
                r = strv_appendf(&argv, "--cgroup=%s/%s", config->shim_cgroup, uid);
        if (r < 0)
                return r;
        if (config->runtime_timeout_sec > 0)
                r = strv_appendf(&argv, "--runtime-timeout=%u", config->runtime_timeout_sec);
        if (r < 0)
                return r;
        if (start->host_network)
                r = strv_append(&argv, "--host-network");
        if (r < 0)
                return r;
        if (start->host_ipc)
                r = strv_append(&argv, "--host-ipc");
        if (r < 0)
                return r;
        if (start->has_systemd_cgroup)
                r = strv_append(&argv, "--systemd-cgroup");
        if (r < 0)
                return r;
        *ret = TAKE_PTR(argv);
        return 0;
}

/* The shim gets the listening socket as its standard input. */
static int spawn_detached_shim(char *const *argv, int listen_fd, pid_t *ret_pid, Error *reterr) {
        int r = child_spawn_detached(argv, listen_fd, -EBADF, ret_pid);

        return r < 0 ? error_setf(reterr, -r, "cannot start '%s': %s", argv[0], strerror(-r)) : 0;
}

/* The loop owns the source, because the shim may outlive its Sandbox. The end of a shim is detected
 * at the socket; here the process is only reaped. */
static int on_shim_reaped(sd_event_source *source, const siginfo_t *si, void *userdata) {
        (void) sd_event_source_set_floating(source, false);
        return 0;
}

static int reap_shim_on_exit(sd_event *event, pid_t pid, Error *reterr) {
        sd_event_source *source = NULL;
        int r = sd_event_add_child(event, &source, pid, WEXITED, on_shim_reaped, NULL);

        if (r < 0) { /* the shim has done nothing yet, and would stay a zombie after it exits */
                (void) kill(pid, SIGKILL);
                while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
                        ;
                return error_setf(reterr, -r, "cannot watch the shim: %s", strerror(-r));
        }
        (void) child_source_rearm(source);
        (void) sd_event_source_set_description(source, "shim");
        (void) sd_event_source_set_floating(source, true);
        sd_event_source_unref(source);
        return 0;
}

static char *format_shim_unit_name(const char *uid) {
        return text_format("mainstay-pod-%s.service", uid);
}

static int start_shim_unit(const SandboxConfig *config, const char *uid,
                           const SandboxStartOptions *start, char *const *argv, int listen_fd,
                           Error *reterr) {
        cleanup_free char *name = format_shim_unit_name(uid), *description = NULL;

        description =
                name ? text_format("Mainstay pod %s", start->description ? start->description : uid)
                     : NULL;
        if (!description)
                return -ENOMEM;
        return systemd_client_start_service(config->systemd,
                                            &(TransientService){ .name = name,
                                                                 .description = description,
                                                                 .slice = shim_slice,
                                                                 .argv = argv,
                                                                 .input_fd = listen_fd },
                                            reterr);
}

int shim_launch(const SandboxConfig *config, const char *uid, const SandboxStartOptions *start,
                int listen_fd, pid_t *ret_pid, Error *reterr) {
        cleanup_strv char **argv = NULL;
        pid_t pid = 0;
        int r = build_shim_arguments(config, uid, start, &argv);

        if (r < 0)
                return r;
        r = config->systemd ? start_shim_unit(config, uid, start, argv, listen_fd, reterr)
                            : spawn_detached_shim(argv, listen_fd, &pid, reterr);
        if (r >= 0 && !config->systemd)
                r = reap_shim_on_exit(config->event, pid, reterr);
        if (r < 0)
                return r;
        *ret_pid = pid;
        return 0;
}

int shim_append_cgroup_options(const SandboxConfig *config, const char *uid, char ***argv) {
        int r = config->shim_cgroup
                        ? strv_appendf(argv, "--shim-cgroup=%s/%s", config->shim_cgroup, uid)
                        : 0;

        if (r < 0 || !config->systemd)
                return r;
        return strv_appendf(argv, "--shim-cgroup=/%s/mainstay-pod-%s.service", shim_slice, uid);
}

const char *shim_group_of_all(const SandboxConfig *config) {
        return config->systemd ? "/" SHIM_SLICE : config->shim_cgroup;
}
