/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/supervise/orphans.h"

#include "agent/bundle/groups.h"
#include "agent/bundle/logs.h"
#include "agent/bundle/paths.h"
#include "agent/supervise/attachment.h"
#include "agent/supervise/slices.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/log.h"

#include <fcntl.h>

typedef struct Orphan {
        Orphans *orphans;
        char *uid;
        Sandbox *sandbox; /* while a shim of it lives */
        Attachment *attachment;
        bool has_undertaker; /* the shim was started to remove its network */
        Child *cleanup;
        struct Orphan *next;
} Orphan;

struct Orphans {
        const PodContext *context;
        Orphan *first;
};

Orphans *orphans_new(const PodContext *context) {
        Orphans *orphans = calloc(1, sizeof(*orphans));

        if (orphans)
                orphans->context = context;
        return orphans;
}

static void orphan_free(Orphan *orphan) {
        attachment_free(orphan->attachment);
        sandbox_free(orphan->sandbox);
        child_free(orphan->cleanup);
        free(orphan->uid);
        free(orphan);
}

Orphans *orphans_free(Orphans *orphans) {
        while (orphans && orphans->first) {
                Orphan *orphan = orphans->first;

                orphans->first = orphan->next;
                orphan_free(orphan);
        }
        free(orphans);
        return NULL;
}

static void forget(Orphan *orphan) {
        Orphan **link = &orphan->orphans->first;

        while (*link != orphan)
                link = &(*link)->next;
        *link = orphan->next;
        orphan_free(orphan);
}

static void on_cleaned(const ChildResult *result, void *userdata) {
        Orphan *orphan = userdata;
        cleanup_error Error error = ERROR_NULL;
        int r = child_explain(result, "Cleaning up", &error);

        orphan->cleanup = NULL;
        if (r < 0)
                log_warning("Cannot clean up what is left of pod %s: %s", orphan->uid,
                            error_message(&error, r));
        forget(orphan);
}

static int clean_up(Orphan *orphan) {
        const PodContext *context = orphan->orphans->context;
        cleanup_free char *run_dir = pod_run_dir(context->bundle, orphan->uid);
        cleanup_free char *state_dir = pod_state_dir(context->bundle, orphan->uid);
        /* Where none is noted, one that is most likely not there. */
        cleanup_free char *cgroup = group_of_pod(context->bundle, QOS_BEST_EFFORT, orphan->uid);
        cleanup_free char *log_dir = bundle_find_log_dir(context->bundle, orphan->uid);
        /* What could not be deleted of its network is on disk for the next agent. */
        bool is_whole = !attachment_is_known(orphan->attachment);
        const char *directories[] = { run_dir, state_dir, log_dir };
        size_t n = log_dir ? 3 : 2;

        if (!run_dir || !state_dir || !cgroup)
                return -ENOMEM;
        if (is_whole)
                slices_end(context, cgroup);
        if (log_dir)
                bundle_remove_log_links(context->bundle, log_dir);
        return sandbox_cleanup(context->sandbox,
                               &(SandboxCleanup){ .uid = orphan->uid,
                                                  .cgroup = cgroup,
                                                  .directories = directories,
                                                  .n_directories = is_whole ? n : 1 },
                               on_cleaned, orphan, &orphan->cleanup, NULL);
}

static void on_detached(int r, const Error *error, void *userdata) {
        Orphan *orphan = userdata;

        if (r < 0)
                log_warning("Cannot remove the network of pod %s: %s", orphan->uid,
                            error_message(error, r));
        (void) sandbox_teardown(orphan->sandbox);
}

/* Without a shim, or with one less: what is left of the network takes one more, once. */
static int begin_end(Orphan *orphan);

static void on_lost(Orphan *orphan) {
        int r;

        attachment_lose(orphan->attachment);
        r = begin_end(orphan);
        if (r >= 0)
                return;
        (void) log_warning_errno(r, "Cannot clean up what is left of pod %s", orphan->uid);
        forget(orphan);
}

static void on_sandbox_event(Sandbox *sandbox, const SandboxEvent *event, void *userdata) {
        Orphan *orphan = userdata;

        if (event->type == SANDBOX_SYNCED) {
                attachment_interrupt(orphan->attachment);
                attachment_hold(orphan->attachment, sandbox);
                attachment_detach(orphan->attachment, sandbox);
        } else if (event->type == SANDBOX_EXEC_DONE)
                (void) attachment_handle(orphan->attachment, event);
        else if (event->type == SANDBOX_LOST)
                on_lost(orphan);
}

static int begin_end(Orphan *orphan) {
        const PodContext *context = orphan->orphans->context;
        cleanup_free char *run_dir = pod_run_dir(context->bundle, orphan->uid);
        int r;

        if (orphan->has_undertaker || !attachment_is_known(orphan->attachment))
                return clean_up(orphan);
        orphan->has_undertaker = true;
        r = run_dir ? mkdir_parents_at(AT_FDCWD, run_dir, 0700) : -ENOMEM;
        if (r >= 0)
                r = sandbox_start(orphan->sandbox,
                                  &(SandboxStart){ .host_network = true, .host_ipc = true }, NULL);
        return r < 0 ? clean_up(orphan) : 0;
}

/* Asks a shim that lives to end, and cleans up behind it; or cleans up at once. */
static int end_orphan(Orphan *orphan) {
        const PodContext *context = orphan->orphans->context;
        int r = attachment_new(context->bundle, context->network, orphan->uid, on_detached, orphan,
                               &orphan->attachment);

        if (r < 0)
                return r;
        (void) attachment_load(orphan->attachment);
        r = sandbox_new(context->sandbox, orphan->uid, on_sandbox_event, orphan, &orphan->sandbox);
        if (r < 0)
                return r;
        return sandbox_connect(orphan->sandbox, NULL) > 0 ? 0 : begin_end(orphan);
}

static int add_orphan(Orphans *orphans, const char *uid) {
        Orphan *orphan = calloc(1, sizeof(*orphan));
        int r = -ENOMEM;

        if (!orphan)
                return -ENOMEM;
        *orphan = (Orphan){ .orphans = orphans, .uid = strdup(uid), .next = orphans->first };
        orphans->first = orphan;
        log_info("Cleaning up what is left of pod %s, which nobody wants", uid);
        if (orphan->uid)
                r = end_orphan(orphan);
        if (r < 0)
                forget(orphan);
        return r;
}

bool orphans_have(const Orphans *orphans, const char *uid) {
        for (const Orphan *orphan = orphans->first; orphan; orphan = orphan->next)
                if (streq(orphan->uid, uid))
                        return true;
        return false;
}

bool orphans_are_gone(const Orphans *orphans) {
        return !orphans->first;
}

/* As our own UIDs are written. What else lies there is not ours to remove. */
static bool may_be_uid(const char *name) {
        return name[strspn(name, "0123456789abcdef-")] == '\0';
}

static void sweep_directory(Orphans *orphans, const char *parent,
                            bool (*is_known)(const char *uid, void *userdata), void *userdata) {
        cleanup_free char *path = path_join(parent, "pods");
        cleanup_closedir DIR *dir = path ? opendir(path) : NULL;
        struct dirent *entry;

        while (dir && (entry = readdir(dir))) {
                int r;

                if (!may_be_uid(entry->d_name) || is_known(entry->d_name, userdata) ||
                    orphans_have(orphans, entry->d_name))
                        continue;
                r = add_orphan(orphans, entry->d_name);
                if (r < 0)
                        (void) log_warning_errno(r, "Cannot clean up what is left of pod %s",
                                                 entry->d_name);
        }
}

void orphans_sweep(Orphans *orphans, bool (*is_known)(const char *uid, void *userdata),
                   void *userdata) {
        sweep_directory(orphans, orphans->context->bundle->run_dir, is_known, userdata);
        sweep_directory(orphans, orphans->context->bundle->state_dir, is_known, userdata);
}
