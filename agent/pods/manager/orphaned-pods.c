/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pods/manager/orphaned-pods.h"

#include "agent/bundle/cgroups.h"
#include "agent/bundle/log-paths.h"
#include "agent/bundle/pod-paths.h"
#include "agent/pods/pod/network-attachment.h"
#include "agent/pods/pod/slices.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/log.h"

#include <fcntl.h>

/* Time limit for the response of a shim that was found, the same as in pod-worker-sandbox.c. */
#define SHIM_ANSWER_USEC (10 * USEC_PER_SEC)

typedef struct OrphanedPod {
        OrphanedPods *orphans;
        char *uid;
        Sandbox *sandbox;              /* while one of its shims runs */
        sd_event_source *answer_timer; /* while its state is being requested */
        NetworkAttachment *attachment;
        bool has_teardown_sandbox; /* the shim was started to detach its network */
        Child *cleanup;
        struct OrphanedPod *next;
} OrphanedPod;

struct OrphanedPods {
        const PodContext *context;
        OrphanedPod *first;
};

OrphanedPods *orphaned_pods_new(const PodContext *context) {
        OrphanedPods *orphans = calloc(1, sizeof(*orphans));

        if (orphans)
                orphans->context = context;
        return orphans;
}

static void orphaned_pod_free(OrphanedPod *orphan) {
        network_attachment_free(orphan->attachment);
        sd_event_source_disable_unref(orphan->answer_timer);
        sandbox_free(orphan->sandbox);
        child_free(orphan->cleanup);
        free(orphan->uid);
        free(orphan);
}

OrphanedPods *orphaned_pods_free(OrphanedPods *orphans) {
        while (orphans && orphans->first) {
                OrphanedPod *orphan = orphans->first;

                orphans->first = orphan->next;
                orphaned_pod_free(orphan);
        }
        free(orphans);
        return NULL;
}

static void forget_orphaned_pod(OrphanedPod *orphan) {
        OrphanedPod **link = &orphan->orphans->first;

        while (*link != orphan)
                link = &(*link)->next;
        *link = orphan->next;
        orphaned_pod_free(orphan);
}

static void on_orphan_cleaned(const ChildResult *result, void *userdata) {
        OrphanedPod *orphan = userdata;
        cleanup_error Error error = ERROR_NULL;
        int r = child_explain(result, "mainstay-shim cleanup", &error);

        orphan->cleanup = NULL;
        if (r < 0)
                log_warning("Cannot clean up orphaned pod %s: %s", orphan->uid,
                            error_message(&error, r));
        forget_orphaned_pod(orphan);
}

static int clean_up_orphan(OrphanedPod *orphan) {
        const PodContext *context = orphan->orphans->context;
        cleanup_free char *run_dir = pod_run_dir(context->bundle, orphan->uid);
        cleanup_free char *state_dir = pod_state_dir(context->bundle, orphan->uid);
        /* If its run directory does not name a cgroup, the cgroup is searched in each QoS class. */
        cleanup_free char *cgroup = cgroup_of_pod(context->bundle, QOS_BEST_EFFORT, orphan->uid);
        cleanup_free char *log_dir = bundle_find_log_dir(context->bundle, orphan->uid);
        /* A network that could not be detached stays on disk for the next agent. */
        bool is_whole = !network_attachment_is_known(orphan->attachment);
        const char *directories[] = { run_dir, log_dir };
        size_t n = log_dir ? 2 : 1;

        if (!run_dir || !state_dir || !cgroup)
                return -ENOMEM;
        if (is_whole)
                slices_stop(context, cgroup);
        if (log_dir)
                bundle_remove_log_links(context->bundle, log_dir);
        return sandbox_cleanup(context->sandbox,
                               &(SandboxCleanup){ .uid = orphan->uid,
                                                  .cgroup = cgroup,
                                                  .directories = directories,
                                                  .n_directories = is_whole ? n : 1,
                                                  .synced = is_whole ? state_dir : NULL },
                               on_orphan_cleaned, orphan, &orphan->cleanup, NULL);
}

static void on_orphan_network_detached(int r, const Error *error, void *userdata) {
        OrphanedPod *orphan = userdata;

        if (r < 0)
                log_warning("Cannot remove the network of pod %s: %s", orphan->uid,
                            error_message(error, r));
        (void) sandbox_teardown(orphan->sandbox);
}

/* There is no shim, or it was lost: one is started, once, if the network must be detached. */
static int begin_orphan_teardown(OrphanedPod *orphan);

static void on_orphan_sandbox_lost(OrphanedPod *orphan) {
        int r;

        network_attachment_on_sandbox_lost(orphan->attachment);
        r = begin_orphan_teardown(orphan);
        if (r >= 0)
                return;
        (void) log_warning_errno(r, "Cannot clean up orphaned pod %s", orphan->uid);
        forget_orphaned_pod(orphan);
}

static void on_orphan_sandbox_event(Sandbox *sandbox, const ShimEvent *event, void *userdata) {
        OrphanedPod *orphan = userdata;

        orphan->answer_timer = sd_event_source_disable_unref(orphan->answer_timer);
        if (event->type == SHIM_EVENT_SYNCED) {
                network_attachment_interrupt(orphan->attachment);
                network_attachment_hold_netns(orphan->attachment, sandbox);
                network_attachment_detach(orphan->attachment, sandbox);
        } else if (event->type == SHIM_EVENT_LOST)
                on_orphan_sandbox_lost(orphan);
}

static int begin_orphan_teardown(OrphanedPod *orphan) {
        const PodContext *context = orphan->orphans->context;
        cleanup_free char *run_dir = pod_run_dir(context->bundle, orphan->uid);
        int r;

        if (orphan->has_teardown_sandbox || !network_attachment_is_known(orphan->attachment))
                return clean_up_orphan(orphan);
        orphan->has_teardown_sandbox = true;
        if (!run_dir || mkdir_parents_at(AT_FDCWD, run_dir, 0700) < 0)
                return clean_up_orphan(orphan);
        r = sandbox_start(orphan->sandbox,
                          &(SandboxStartOptions){ .host_network = true, .host_ipc = true }, NULL);
        return r < 0 ? clean_up_orphan(orphan) : 0;
}

/* The cleanup kills the shim. If a network is left, its record stays on disk, and the pod becomes
 * an orphan again, without a shim. */
static int on_orphan_answer_timeout(sd_event_source *source, uint64_t usec, void *userdata) {
        OrphanedPod *orphan = userdata;

        orphan->answer_timer = sd_event_source_disable_unref(orphan->answer_timer);
        log_warning("The shim of orphaned pod %s does not answer and is killed", orphan->uid);
        network_attachment_on_sandbox_lost(orphan->attachment);
        orphan->sandbox = sandbox_free(orphan->sandbox);
        if (clean_up_orphan(orphan) < 0)
                forget_orphaned_pod(orphan);
        return 0;
}

static int await_orphan_answer(OrphanedPod *orphan) {
        return sd_event_add_time_relative(orphan->orphans->context->event, &orphan->answer_timer,
                                          CLOCK_AWAKE, SHIM_ANSWER_USEC, 0,
                                          on_orphan_answer_timeout, orphan);
}

/* Requests that a running shim exit, and cleans up after it; or cleans up at once. */
static int tear_down_orphan(OrphanedPod *orphan) {
        const PodContext *context = orphan->orphans->context;
        int r = network_attachment_new(context->bundle, context->network, orphan->uid,
                                       on_orphan_network_detached, orphan, &orphan->attachment);

        if (r < 0)
                return r;
        (void) network_attachment_load(orphan->attachment);
        r = sandbox_new(context->sandbox, orphan->uid, on_orphan_sandbox_event, orphan,
                        &orphan->sandbox);
        if (r < 0)
                return r;
        if (sandbox_connect(orphan->sandbox, NULL) > 0)
                return await_orphan_answer(orphan);
        return begin_orphan_teardown(orphan);
}

static int add_orphaned_pod(OrphanedPods *orphans, const char *uid) {
        OrphanedPod *orphan = calloc(1, sizeof(*orphan));
        int r = -ENOMEM;

        if (!orphan)
                return -ENOMEM;
        *orphan = (OrphanedPod){ .orphans = orphans, .uid = strdup(uid), .next = orphans->first };
        orphans->first = orphan;
        log_info("Cleaning up pod %s: it is not desired", uid);
        if (orphan->uid)
                r = tear_down_orphan(orphan);
        if (r < 0)
                forget_orphaned_pod(orphan);
        return r;
}

bool orphaned_pods_has(const OrphanedPods *orphans, const char *uid) {
        for (const OrphanedPod *orphan = orphans->first; orphan; orphan = orphan->next)
                if (streq(orphan->uid, uid))
                        return true;
        return false;
}

bool orphaned_pods_is_empty(const OrphanedPods *orphans) {
        return !orphans->first;
}

/* Accepts only names that the agent creates: other files are not removed. */
static bool is_pod_uid_name(const char *name) {
        return name[strspn(name, "0123456789abcdef-")] == '\0';
}

static void add_orphans_of_directory(OrphanedPods *orphans, const char *parent,
                                     bool (*is_known)(const char *uid, void *userdata),
                                     void *userdata) {
        cleanup_free char *path = path_join(parent, "pods");
        cleanup_closedir DIR *dir = path ? opendir(path) : NULL;
        struct dirent *entry;

        while (dir && (entry = readdir(dir))) {
                int r;

                if (!is_pod_uid_name(entry->d_name) || is_known(entry->d_name, userdata) ||
                    orphaned_pods_has(orphans, entry->d_name))
                        continue;
                r = add_orphaned_pod(orphans, entry->d_name);
                if (r < 0)
                        (void) log_warning_errno(r, "Cannot clean up orphaned pod %s",
                                                 entry->d_name);
        }
}

void clean_up_orphaned_pods(OrphanedPods *orphans,
                            bool (*is_known)(const char *uid, void *userdata), void *userdata) {
        add_orphans_of_directory(orphans, orphans->context->bundle->run_dir, is_known, userdata);
        add_orphans_of_directory(orphans, orphans->context->bundle->state_dir, is_known, userdata);
}
