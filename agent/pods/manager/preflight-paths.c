/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pods/manager/preflight-paths.h"

#include "common/cleanup.h"
#include "common/clock.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

/* A path that takes longer than this would also delay the start of the pod. */
#define PREFLIGHT_PATHS_USEC (10 * USEC_PER_SEC)

struct PreflightPaths {
        const Pod *pod;
        void (*on_change)(void *userdata);
        void *userdata;
        ForkedTask *task; /* NULL: the result is known */
        sd_event_source *deadline;
        int fd;               /* receives the index of each volume that the process checks */
        const Volume *faulty; /* NULL: none */
        bool is_hung;         /* the path of 'faulty' does not respond */
};

/* hostPath types whose path must exist, and the file type that it must have. */
static const mode_t host_path_modes[N_HOST_PATH_TYPES] = {
        [HOST_PATH_DIRECTORY] = S_IFDIR,    [HOST_PATH_FILE] = S_IFREG,
        [HOST_PATH_SOCKET] = S_IFSOCK,      [HOST_PATH_CHAR_DEVICE] = S_IFCHR,
        [HOST_PATH_BLOCK_DEVICE] = S_IFBLK,
};

static bool has_type_to_check(const Volume *volume) {
        return volume->host_path && host_path_modes[volume->host_path->type] != 0;
}

static bool is_of_its_type(const HostPathVolumeSource *source) {
        struct stat st;

        return stat(source->path, &st) >= 0 &&
               (st.st_mode & S_IFMT) == host_path_modes[source->type];
}

/* Runs in the child process. */
static int look_at_host_paths(int fd, const void *work) {
        const PodSpec *spec = work;

        for (size_t i = 0; i < spec->volumes.n; i++)
                if (has_type_to_check(&spec->volumes.items[i])) {
                        if (write(fd, &i, sizeof(i)) < 0)
                                return -errno;
                        if (!is_of_its_type(spec->volumes.items[i].host_path))
                                return -ENOENT;
                }
        return 0;
}

/* The last volume that the process has started to check; NULL if there is none. */
static const Volume *read_last_volume(const PreflightPaths *paths) {
        const Volume *last = NULL;
        size_t i;

        while (read(paths->fd, &i, sizeof(i)) == sizeof(i))
                last = &paths->pod->spec.volumes.items[i];
        return last;
}

static void finish_preflight_paths(PreflightPaths *paths) {
        paths->deadline = sd_event_source_disable_unref(paths->deadline);
        paths->on_change(paths->userdata);
}

static void on_host_paths_seen(int r, void *userdata) {
        PreflightPaths *paths = userdata;

        paths->task = NULL;
        if (r == -ENOENT)
                paths->faulty = read_last_volume(paths);
        finish_preflight_paths(paths);
}

static void drop_paths_task(PreflightPaths *paths) {
        if (paths->task)
                forked_task_signal(paths->task, SIGKILL);
        paths->task = forked_task_free(paths->task);
}

static int on_paths_deadline(sd_event_source *source, uint64_t usec, void *userdata) {
        PreflightPaths *paths = userdata;

        drop_paths_task(paths);
        paths->faulty = read_last_volume(paths);
        paths->is_hung = true;
        finish_preflight_paths(paths);
        return 0;
}

static bool has_paths_to_check(const PodSpec *spec) {
        for (size_t i = 0; i < spec->volumes.n; i++)
                if (has_type_to_check(&spec->volumes.items[i]))
                        return true;
        return false;
}

int preflight_paths_new(sd_event *event, const Pod *pod, void (*on_change)(void *userdata),
                        void *userdata, PreflightPaths **ret) {
        cleanup_with(preflight_paths_freep) PreflightPaths *paths = calloc(1, sizeof(*paths));
        int r = 0;

        if (!paths)
                return -ENOMEM;
        *paths = (PreflightPaths){
                .pod = pod, .on_change = on_change, .userdata = userdata, .fd = -EBADF
        };
        if (has_paths_to_check(&pod->spec)) {
                r = sd_event_add_time_relative(event, &paths->deadline, CLOCK_BOOTTIME,
                                               PREFLIGHT_PATHS_USEC, 0, on_paths_deadline, paths);
                if (r >= 0)
                        r = paths->fd =
                                forked_task_start_piped(event, look_at_host_paths, &pod->spec,
                                                        on_host_paths_seen, paths, &paths->task);
        }
        if (r < 0)
                return r;
        *ret = TAKE_PTR(paths);
        return 0;
}

int preflight_paths_result(const PreflightPaths *paths, Error *reterr) {
        const HostPathVolumeSource *source;

        if (paths->task)
                return 0;
        if (!paths->faulty)
                return 1;
        source = paths->faulty->host_path;
        if (paths->is_hung)
                return error_setf(
                        reterr, ETIMEDOUT,
                        "MountVolume.SetUp failed for volume \"%s\" : hostPath type check failed: "
                        "the file system of %s has not answered for 10s",
                        paths->faulty->name, source->path);
        return error_setf(
                reterr, ENOENT,
                "MountVolume.SetUp failed for volume \"%s\" : hostPath type check failed: "
                "%s is not of type %s",
                paths->faulty->name, source->path, host_path_type_names[source->type]);
}

PreflightPaths *preflight_paths_free(PreflightPaths *paths) {
        if (!paths)
                return NULL;
        drop_paths_task(paths);
        sd_event_source_disable_unref(paths->deadline);
        close_fd(paths->fd);
        free(paths);
        return NULL;
}
