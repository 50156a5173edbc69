/* SPDX-License-Identifier: Apache-2.0 */

/* Checkpoints of DaemonSets on the disk; see the header. The text form is in rules/history.c. */

#include "agent/daemonset/checkpoint.h"

#include "agent/manifest/manifest.h"
#include "agent/model/names.h"
#include "agent/model/object-identity.h"
#include "agent/model/pod-source.h"
#include "common/checksummed.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/hash.h"
#include "common/log.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

enum {
        HISTORY_MAX_BYTES = 16 * 1024 * 1024
};

static int open_daemonsets_directory(const char *state_dir, bool make) {
        cleanup_free char *path = path_join(state_dir, "daemonsets");
        int fd;

        if (!path)
                return -ENOMEM;
        if (make)
                return open_directory_at(AT_FDCWD, path, 0700);
        fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

int daemonset_checkpoint_store(const char *state_dir, const char *uid,
                               const DaemonSetHistory *history, Error *reterr) {
        cleanup_free char *text = daemonset_history_format(history);
        cleanup_close int fd = -EBADF;
        int r;

        if (!text)
                return error_setf(reterr, ENOMEM,
                                  "cannot write the checkpoint of daemonset %s/%s: out of memory",
                                  history->namespace, history->name);
        if (strlen(text) + SHA256_HEX_SIZE > HISTORY_MAX_BYTES)
                return error_setf(reterr, E2BIG,
                                  "the checkpoint of daemonset %s/%s would be larger than %d MiB",
                                  history->namespace, history->name, HISTORY_MAX_BYTES / (int) MIB);
        fd = open_daemonsets_directory(state_dir, /* make= */ true);
        r = fd < 0 ? fd : checksummed_write_at(fd, uid, text, 0600);
        if (r < 0)
                return error_setf(reterr, -r, "cannot write the checkpoint of daemonset %s/%s: %s",
                                  history->namespace, history->name, strerror(-r));
        return 0;
}

void daemonset_checkpoint_store_or_log(const char *state_dir, const char *uid,
                                       const DaemonSetHistory *history) {
        cleanup_error Error error = ERROR_NULL;
        int r = daemonset_checkpoint_store(state_dir, uid, history, &error);

        if (r < 0)
                log_error_message(&error, r);
}

void daemonset_checkpoint_remove(const char *state_dir, const char *uid,
                                 const DaemonSetHistory *history) {
        cleanup_close int fd = open_daemonsets_directory(state_dir, /* make= */ false);

        if (fd >= 0 && unlinkat(fd, uid, 0) < 0 && errno != ENOENT)
                (void) log_error_errno(-errno, "Cannot remove the checkpoint of DaemonSet '%s/%s'",
                                       strna(history->namespace), strna(history->name));
}

static int take_checkpointed_source(const DaemonSetHistory *history, DaemonSet *set) {
        cleanup_with(pod_source_done) PodSource source = { 0 };
        int r = pod_source_parse(history->source, &source);

        set->metadata.source = r < 0 ? OBJECT_SOURCE_NONE : pod_source_origin(&source);
        return r;
}

/* The set as it was last desired. NULL if it cannot be parsed, in which case its pods keep running
 * unchanged. */
static DaemonSet *parse_checkpointed_set(const DaemonSetHistory *history, const char *uid) {
        cleanup_error Error error = ERROR_NULL;
        DaemonSet *set = NULL;
        int r;

        if (!history->set || !history->source)
                return NULL;
        r = manifest_parse_daemonset(history->set, strlen(history->set), &set, &error);
        if (r >= 0 && take_checkpointed_source(history, set) < 0) {
                daemonset_free(set);
                return NULL;
        }
        if (r >= 0 && !object_has_uid(&set->metadata, uid)) {
                set = daemonset_free(set);
                r = error_setf(&error, EINVAL, "it has another UID");
        }
        if (r < 0)
                log_warning("Cannot parse the checkpointed spec of DaemonSet '%s/%s': %s; its pods "
                            "keep running as they are",
                            history->namespace, history->name, error_message(&error, r));
        return set;
}

static int load_daemonset_checkpoint(const char *state_dir, int fd, const char *uid,
                                     daemonset_checkpoint_each_t each, void *userdata) {
        cleanup_free char *text = NULL;
        DaemonSetHistory history = { 0 };
        int r;

        r = checksummed_read_at(fd, uid, HISTORY_MAX_BYTES, &text);
        if (r >= 0)
                r = daemonset_history_parse(text, &history);
        if (r == -EBADMSG) {
                log_error("%s/daemonsets/%s is damaged, setting it aside", state_dir, uid);
                checksummed_set_aside_at(fd, uid);
                return 0;
        }
        if (r < 0)
                return r;
        return each(uid, &history, parse_checkpointed_set(&history, uid), userdata);
}

int daemonset_checkpoint_load(const char *state_dir, daemonset_checkpoint_each_t each,
                              void *userdata, Error *reterr) {
        cleanup_close int fd = open_daemonsets_directory(state_dir, /* make= */ false);
        cleanup_closedir DIR *dir = NULL;
        const struct dirent *entry;
        int r = 0;

        if (fd == -ENOENT)
                return 0;
        if (fd >= 0)
                dir = fdopendir(fcntl(fd, F_DUPFD_CLOEXEC, 0));
        if (!dir)
                return error_setf(reterr, fd < 0 ? -fd : errno, "cannot read %s/daemonsets: %s",
                                  state_dir, strerror(fd < 0 ? -fd : errno));
        while ((r = read_directory_entry(dir, &entry)) > 0) {
                if (check_uid(entry->d_name, NULL) < 0)
                        continue;
                r = load_daemonset_checkpoint(state_dir, fd, entry->d_name, each, userdata);
                if (r == -ENOMEM)
                        return r;
                if (r < 0)
                        log_error("Cannot read %s/daemonsets/%s: %s; ignoring it", state_dir,
                                  entry->d_name, strerror(-r));
        }
        return r < 0 ? error_setf(reterr, -r, "cannot read %s/daemonsets: %s", state_dir,
                                  strerror(-r))
                     : 0;
}
