/* SPDX-License-Identifier: Apache-2.0 */
/* Holds the pod workers, and steps the dirty ones once per turn of the loop: events only mark them.
 * Removed workers are freed there too, never in their own functions. */

#include "agent/pods/manager/pod-manager.h"

#include "agent/bundle/cgroup-resources.h"
#include "agent/model/object-identity.h"
#include "agent/model/pod-adoption.h"
#include "agent/model/schema.h"
#include "agent/pods/container/terminated-containers.h"
#include "agent/pods/manager/orphaned-pods.h"
#include "agent/pods/manager/pod-manager-private.h"
#include "agent/pods/manager/pod-record.h"
#include "agent/pods/pod/host-ports.h"
#include "agent/pods/pod/pod-instance.h"
#include "agent/pods/pod/pod-preemption.h"
#include "agent/pods/pod/slices.h"
#include "common/cgroup.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/event-source.h"
#include "common/file.h"
#include "common/fsync-queue.h"
#include "common/http-client.h"
#include "common/log.h"
#include "common/message-ids.h"
#include "common/strv.h"
#include "common/text.h"

#include <inttypes.h>

/* A pod that cannot be started (its record cannot be written) is retried after this time. */
#define START_RETRY_USEC (5 * USEC_PER_SEC)

/* How long pods are stepped before the loop's other sources run again. */
#define STEP_USEC (5 * USEC_PER_MSEC)

static const char *const synced_file_names[] = { "record",   "failure", TERMINATED_FILE_NAME,
                                                 "deletion", "network", NULL };

static int step_dirty_pods(sd_event_source *source, void *userdata);

void pod_manager_schedule_step(PodManager *manager) {
        int r = sd_event_source_set_enabled(manager->step_source, SD_EVENT_ONESHOT);

        if (r < 0)
                (void) log_error_errno(r, "Cannot schedule the next step of the pod workers");
}

void pod_entry_mark_dirty(PodEntry *entry) {
        entry->is_dirty = true;
        pod_manager_schedule_step(entry->manager);
}

static void sum_node_usage(const Pod *except, NodeUsage *ret, void *userdata) {
        const PodManager *manager = userdata;

        *ret = (NodeUsage){ 0 };
        for (const PodEntry *entry = manager->entries; entry; entry = entry->next_entry) {
                NodeUsage usage;

                if (!entry->worker || pod_worker_pod(entry->worker) == except ||
                    !pod_worker_uses_resources(entry->worker))
                        continue;
                usage = node_usage_of_pod(&pod_worker_pod(entry->worker)->spec);
                node_usage_add(ret, &usage);
        }
}

const PodSource *pod_manager_find_source(const PodManager *manager, const Pod *pod) {
        for (const PodEntry *entry = manager->entries; entry; entry = entry->next_entry) {
                if (entry->worker && pod_worker_pod(entry->worker) == pod)
                        return &entry->source;
                if (entry->next == pod)
                        return &entry->next_source;
        }
        return NULL;
}

/* The pod with the same name is its predecessor. */
static bool holds_port_of(const PodEntry *entry, const Pod *pod, HostPortHolder *ret) {
        const Pod *other = entry->worker ? pod_worker_pod(entry->worker) : NULL;

        if (!other || objects_share_name(&other->metadata, &pod->metadata))
                return false;
        *ret = (HostPortHolder){ .pod = other };
        ret->port = find_host_port_conflict(&pod->spec, &other->spec, &ret->path);
        if (!ret->port)
                return false;
        if (!pod_worker_holds_ports(entry->worker)) {
                free(ret->path);
                return false;
        }
        ret->is_terminating = pod_worker_has_terminated(entry->worker);
        return true;
}

static bool find_port_holder(const Pod *pod, HostPortHolder *ret, void *userdata) {
        const PodManager *manager = userdata;
        const PodSource *source = pod_manager_find_source(manager, pod);
        bool is_found = false;

        for (const PodEntry *entry = manager->entries; entry; entry = entry->next_entry) {
                HostPortHolder holder;

                if (!holds_port_of(entry, pod, &holder))
                        continue;
                if (is_found)
                        free(ret->path);
                *ret = holder;
                ret->is_outranked = source && pod_source_outranks(source, &entry->source);
                if (!ret->is_outranked)
                        return true;
                is_found = true;
        }
        return is_found;
}

static void displace_port_holders(const Pod *pod, void *userdata) {
        const PodManager *manager = userdata;
        const PodSource *source = pod_manager_find_source(manager, pod);
        HostPortHolder holder;

        for (const PodEntry *entry = manager->entries; source && entry; entry = entry->next_entry) {
                cleanup_free char *path = NULL, *message = NULL;

                if (!pod_source_outranks(source, &entry->source) ||
                    !holds_port_of(entry, pod, &holder))
                        continue;
                path = holder.path;
                message = text_format(
                        "Preempted in order to admit pod %s/%s, which needs port %" PRId64
                        "/%s of the host",
                        pod->metadata.namespace, pod->metadata.name, holder.port->host_port.value,
                        protocol_names[holder.port->protocol]);
                pod_worker_displace(entry->worker, PREEMPTION_REASON,
                                    message ? message : PREEMPTION_MESSAGE);
        }
}

static void on_pod_worker_dirty(void *entry, void *userdata) {
        pod_entry_mark_dirty(entry);
}

static void on_container_log_ended(const char *directory, unsigned attempt, void *userdata) {
        PodManager *manager = userdata;

        manager->callbacks->on_log_ended(directory, attempt, manager->userdata);
}

static void on_pod_worker_event(const PodEvent *event, void *userdata) {
        PodManager *manager = userdata;

        if (manager->callbacks->on_event)
                manager->callbacks->on_event(event, manager->userdata);
}

static int open_state_sync(PodManager *manager) {
        cleanup_free char *pods = path_join(manager->context.bundle->state_dir, "pods");
        int r;

        if (!pods)
                return -ENOMEM;
        r = fsync_queue_new(manager->context.event, pods, synced_file_names,
                            &manager->context.state_sync);
        if (r < 0)
                return r;
        fsync_queue_keep_synced(manager->context.state_sync, TERMINATED_FILE_NAME);
        return 0;
}

/* Pulls that failed because a certificate was not valid at the old time may succeed now. */
static void on_pods_clock_set(void *userdata) {
        pod_manager_on_images_changed(userdata);
}

int pod_manager_new(const PodManagerConfig *config, const PodManagerCallbacks *callbacks,
                    void *userdata, PodManager **ret) {
        cleanup_with(pod_manager_freep) PodManager *manager = calloc(1, sizeof(*manager));
        int r;

        if (!manager)
                return -ENOMEM;
        manager->context = (PodContext){
                .event = config->event,
                .bundle = config->bundle,
                .sandbox = config->sandbox,
                .network = config->network,
                .runtimes = { config->sandbox->runtime_path, config->runtimes },
                .images = config->images,
                .back_off = config->back_off,
                .log_max_size = config->log_max_size,
                .log_max_files = config->log_max_files,
                .host_ips = { config->host_ips[0], config->host_ips[1] },
                .node = config->node,
                .conditions = config->conditions,
                .allocatable = config->allocatable,
                .devices = config->devices,
                .csi = config->csi,
                .sum_usage = sum_node_usage,
                .preempt = pod_manager_preempt,
                .is_preempting = pod_manager_is_preempting,
                .find_port_holder = find_port_holder,
                .displace_port_holders = displace_port_holders,
                .displace_device_holders = pod_manager_displace_device_holders,
                .find_awaited_pods = pod_manager_find_awaited_pods,
                .on_dirty = on_pod_worker_dirty,
                .on_log_ended = on_container_log_ended,
                .on_event = on_pod_worker_event,
                .userdata = manager,
        };
        start_limiter_init(&manager->context.start_limiter, config->start_limit);
        manager->callbacks = callbacks;
        manager->userdata = userdata;
        manager->orphans = orphaned_pods_new(&manager->context);
        if (!manager->orphans)
                return -ENOMEM;
        r = open_state_sync(manager);
        if (r < 0)
                return r;
        r = clock_watch_new(config->event, on_pods_clock_set, manager, &manager->clock_watch);
        if (r < 0)
                return r;
        /* Runs after all other events of a turn, so that several events cost one step. */
        r = event_add_disabled_defer(config->event, &manager->step_source,
                                     SD_EVENT_PRIORITY_NORMAL + 10, step_dirty_pods, manager);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(manager);
        return 0;
}

static void pod_entry_free(PodEntry *entry) {
        preflight_free(entry->preflight);
        pod_worker_free(entry->worker);
        pod_free(entry->next);
        pod_source_done(&entry->next_source);
        pod_source_done(&entry->source);
        sd_event_source_disable_unref(entry->retry_timer);
        free(entry->start_error);
        pod_status_unref(entry->start_status);
        free(entry->description);
        free(entry->key);
        free(entry);
}

PodManager *pod_manager_free(PodManager *manager) {
        if (!manager)
                return NULL;
        clock_watch_free(manager->clock_watch);
        /* A released slot must not be granted to a container that is freed next. */
        manager->context.start_limiter.limit.max = 0;
        while (manager->entries) {
                PodEntry *entry = manager->entries;

                manager->entries = entry->next_entry;
                pod_entry_free(entry);
        }
        http_client_free(manager->context.http);
        orphaned_pods_free(manager->orphans);
        strv_free(manager->unread);
        sd_event_source_disable_unref(manager->stage_timer);
        sd_event_source_disable_unref(manager->step_source);
        fsync_queue_free(manager->context.state_sync);
        free(manager);
        return NULL;
}

/* Finds the entry of a name, or inserts it in order. */
static int get_pod_entry(PodManager *manager, const Pod *pod, PodEntry **ret) {
        cleanup_free char *key = text_format("%s/%s/", pod->metadata.namespace, pod->metadata.name);
        PodEntry **link = &manager->entries, *entry;

        if (!key)
                return -ENOMEM;
        while (*link && strcmp((*link)->key, key) < 0)
                link = &(*link)->next_entry;
        if (*link && streq((*link)->key, key)) {
                *ret = *link;
                return 0;
        }
        entry = calloc(1, sizeof(*entry));
        if (!entry)
                return -ENOMEM;
        entry->manager = manager;
        entry->description = strndup(key, strlen(key) - 1);
        if (!entry->description) {
                free(entry);
                return -ENOMEM;
        }
        entry->key = TAKE_PTR(key);
        entry->next_entry = *link;
        *link = entry;
        *ret = entry;
        return 0;
}

/* ---- state of an earlier agent ---- */

static int load_pod_record(PodManager *manager, const char *uid, restored_pod_t each,
                           void *userdata, Error *reterr) {
        cleanup_with(pod_record_done) PodRecord record = { 0 };
        PodEntry *entry;
        int r;

        r = pod_record_load(manager->context.bundle->state_dir, uid, &record, reterr);
        if (r == -EBADMSG) {
                log_set_message_id(MESSAGE_RECORD_DAMAGED);
                log_error("%s, setting it aside", error_message(reterr, r));
                return pod_record_set_aside(manager->context.bundle->state_dir, uid, NULL);
        }
        if (r < 0)
                return r == -ENOENT ? 0 : r; /* an orphaned pod */
        r = get_pod_entry(manager, record.pod, &entry);
        if (r < 0)
                return r;
        r = each(&record.source, record.pod, userdata);
        if (r < 0)
                return r;
        if (entry->worker)
                return 0; /* the successor was also recorded; the desired state contains it again */
        r = pod_worker_new_take(&manager->context, record.pod, /* was_recorded= */ true, entry,
                                &entry->worker);
        if (r < 0)
                return r;
        record.pod = NULL;
        entry->source = record.source;
        record.source = (PodSource){ 0 };
        pod_worker_parse_outdated(entry->worker, record.outdated);
        pod_entry_mark_dirty(entry);
        return 0;
}

static void load_pod_record_or_leave(PodManager *manager, const char *uid, restored_pod_t each,
                                     void *userdata) {
        cleanup_error Error error = ERROR_NULL;
        int r = load_pod_record(manager, uid, each, userdata, &error);

        if (r >= 0)
                return;
        log_error("Cannot restore pod %s from its record: %s; leaving it as it is", uid,
                  error_message(&error, r));
        if (strv_append(&manager->unread, uid) < 0)
                manager->has_swept_orphans = true;
        pod_manager_schedule_step(manager); /* removes an entry that is now empty */
}

/* Unreadable records must not prevent the agent from using the readable ones. */
int pod_manager_load_records(PodManager *manager, restored_pod_t each, void *userdata,
                             bool must_be_all, Error *reterr) {
        cleanup_free char *path = path_join(manager->context.bundle->state_dir, "pods");
        cleanup_closedir DIR *dir = path ? opendir(path) : NULL;
        const struct dirent *entry;
        int r = 0;

        if (!dir && (!path || errno != ENOENT))
                r = path ? -errno : -ENOMEM;
        while (dir && (r = read_directory_entry(dir, &entry)) > 0)
                if (entry->d_name[0] != '.')
                        load_pod_record_or_leave(manager, entry->d_name, each, userdata);
        if (r >= 0)
                return 0;
        if (must_be_all)
                return error_prefixf(reterr, r, "cannot list all pods in %s",
                                     manager->context.bundle->state_dir);
        log_error("Cannot list all pods in %s: %s; the remains of other pods are not removed",
                  manager->context.bundle->state_dir, strerror(-r));
        manager->has_swept_orphans = true;
        return 0;
}

static bool is_known_pod_uid(const char *uid, void *userdata) {
        const PodManager *manager = userdata;

        for (const PodEntry *entry = manager->entries; entry; entry = entry->next_entry)
                if ((entry->worker &&
                     object_has_uid(&pod_worker_pod(entry->worker)->metadata, uid)) ||
                    (entry->next && object_has_uid(&entry->next->metadata, uid)))
                        return true;
        return strv_contains(manager->unread, uid);
}

/* ---- the desired state ---- */

int pod_manager_list(const PodManager *manager, ActualPods *ret) {
        ActualPods pods = { 0 };
        size_t n = 0;

        for (const PodEntry *entry = manager->entries; entry; entry = entry->next_entry)
                n += entry->worker || entry->next;
        pods.items = calloc(n + 1, sizeof(*pods.items));
        if (!pods.items)
                return -ENOMEM;
        for (const PodEntry *entry = manager->entries; entry; entry = entry->next_entry)
                if (entry->worker || entry->next)
                        pods.items[pods.n++] = (ActualPod){
                                .pod = entry->worker ? pod_worker_pod(entry->worker) : NULL,
                                .source = &entry->source,
                                .is_terminating =
                                        entry->worker && !pod_worker_is_desired(entry->worker),
                                .removal_fails = entry->worker &&
                                                 pod_worker_removal_error(entry->worker) != NULL,
                                .is_outdated =
                                        entry->worker && pod_worker_is_outdated(entry->worker),
                                .successor = entry->next,
                                .successor_source = &entry->next_source,
                        };
        *ret = pods;
        return 0;
}

int pod_manager_start_or_edit(PodManager *manager, const PodSource *source, const Pod *pod) {
        cleanup_with(pod_freep) Pod *copy = NULL;
        PodSource source_copy;
        PodEntry *entry;
        int r = get_pod_entry(manager, pod, &entry);

        if (r < 0)
                return r;
        r = pod_copy(pod, &copy);
        if (r < 0)
                return r;
        r = pod_source_copy(source, &source_copy);
        if (r < 0)
                return r;
        copy->metadata.source = pod_source_origin(source);
        pod_entry_forget_next(entry);
        entry->next = TAKE_PTR(copy);
        entry->next_source = source_copy;
        pod_entry_mark_dirty(entry);
        return 0;
}

static PodEntry *find_pod_entry(PodManager *manager, const ObjectMeta *metadata) {
        for (PodEntry *entry = manager->entries; entry; entry = entry->next_entry) {
                const Pod *pod = entry->worker ? pod_worker_pod(entry->worker) : entry->next;

                if (pod && objects_share_name(&pod->metadata, metadata))
                        return entry;
        }
        return NULL;
}

int pod_manager_keep_pod(PodManager *manager, const PodSource *source, const ObjectMeta *metadata,
                         Error *reterr) {
        PodEntry *entry = find_pod_entry(manager, metadata);
        PodSource source_copy;
        int r;

        if (!entry || !entry->worker)
                return 0;
        pod_entry_forget_next(entry);
        if (pod_sources_equal(&entry->source, source))
                return 0;
        r = pod_entry_store_record(manager, entry, pod_worker_pod(entry->worker), source, NULL,
                                   reterr);
        if (r < 0)
                return r;
        r = pod_source_copy(source, &source_copy);
        if (r < 0)
                return r;
        pod_source_done(&entry->source);
        entry->source = source_copy;
        pod_worker_set_source(entry->worker, pod_source_origin(source));
        return 0;
}

void pod_manager_drop_successor(PodManager *manager, const ObjectMeta *metadata) {
        PodEntry *entry = find_pod_entry(manager, metadata);

        if (!entry)
                return;
        pod_entry_forget_next(entry);
        pod_manager_schedule_step(manager);
}

/* The choice of the DaemonSet pods to stop depends on those that are already being stopped, so this
 * is kept on disk, like the deletionTimestamp in an API server. */
void pod_manager_stop_pod(PodManager *manager, const ObjectMeta *metadata, const char *reason) {
        PodEntry *entry = find_pod_entry(manager, metadata);
        PodWorker *worker = entry ? entry->worker : NULL;

        if (worker && object_controlling_daemonset(&pod_worker_pod(worker)->metadata))
                pod_worker_delete(worker, -1, reason);
        else if (worker)
                pod_worker_terminate(worker, reason);
        pod_manager_schedule_step(manager);
}

void pod_manager_remove_leftovers(PodManager *manager) {
        if (manager->has_swept_orphans)
                return;
        manager->has_swept_orphans = true;
        clean_up_orphaned_pods(manager->orphans, is_known_pod_uid, manager);
        pod_manager_schedule_step(manager);
}

/* The weight of all Burstable pods together depends on their requests. */
static void update_qos_cgroups(PodManager *manager) {
        cleanup_error Error error = ERROR_NULL;
        int64_t sum = 0;
        int r;

        for (PodEntry *entry = manager->entries; entry; entry = entry->next_entry)
                if (entry->worker &&
                    pod_qos_class(&pod_worker_pod(entry->worker)->spec) == QOS_BURSTABLE)
                        sum += MIN(pod_milli_cpu_request(&pod_worker_pod(entry->worker)->spec),
                                   INT32_MAX);
        manager->has_qos_groups = true;
        manager->context.burstable_milli_cpu = sum;
        slices_set_qos(&manager->context);
        r = bundle_update_qos(manager->context.bundle, sum, &error);
        if (r < 0)
                log_warning("Cannot set the CPU weight of the QoS cgroups: %s",
                            error_message(&error, r));
}

void pod_manager_on_objects_changed(PodManager *manager, bool (*concerns)(const Pod *, void *),
                                    void *userdata) {
        for (PodEntry *entry = manager->entries; entry; entry = entry->next_entry) {
                if (entry->worker &&
                    (!concerns || concerns(pod_worker_pod(entry->worker), userdata)))
                        pod_worker_on_objects_changed(entry->worker);
                if (entry->preflight && (!concerns || concerns(entry->next, userdata)))
                        pod_entry_mark_dirty(entry);
        }
}

void pod_manager_on_devices_changed(PodManager *manager, const char *uid) {
        for (PodEntry *entry = manager->entries; entry; entry = entry->next_entry) {
                if (!entry->worker)
                        continue;
                if (uid ? object_has_uid(&pod_worker_pod(entry->worker)->metadata, uid)
                        : pod_worker_awaits_devices(entry->worker))
                        pod_worker_on_devices_changed(entry->worker);
        }
}

void pod_manager_on_csi_changed(PodManager *manager, const char *uid) {
        for (PodEntry *entry = manager->entries; entry; entry = entry->next_entry)
                if (entry->worker && object_has_uid(&pod_worker_pod(entry->worker)->metadata, uid))
                        pod_worker_on_csi_changed(entry->worker);
}

void pod_manager_on_node_changed(PodManager *manager) {
        for (PodEntry *entry = manager->entries; entry; entry = entry->next_entry)
                pod_entry_mark_dirty(entry);
}

void pod_manager_on_network_changed(PodManager *manager) {
        for (PodEntry *entry = manager->entries; entry; entry = entry->next_entry) {
                if (entry->worker)
                        pod_worker_on_network_changed(entry->worker);
                if (entry->preflight)
                        pod_entry_retry_preflight(entry);
        }
}

int pod_manager_new_preflight(PodManager *manager, Pod *pod, void (*on_change)(void *userdata),
                              void *userdata, Preflight **ret) {
        int r = resolve_pod_classes(&manager->context.bundle->objects, /* running= */ NULL, pod);

        return r < 0 ? r : preflight_new(&manager->context, pod, on_change, userdata, ret);
}

void pod_manager_on_images_changed(PodManager *manager) {
        for (PodEntry *entry = manager->entries; entry; entry = entry->next_entry) {
                if (entry->worker)
                        pod_worker_on_images_changed(entry->worker);
                if (entry->preflight)
                        pod_entry_retry_preflight(entry);
        }
}

/* ---- the step ---- */

static void remove_pod_worker(PodManager *manager, PodEntry *entry) {
        manager->callbacks->on_pod(pod_worker_pod(entry->worker), false, /* is_gone= */ true,
                                   manager->userdata);
        log_info("Removed pod '%s'", entry->description);
        pod_manager_notice_order(manager, entry, /* is_gone= */ true);
        entry->worker = pod_worker_free(entry->worker);
        pod_source_done(&entry->source);
        entry->is_reported = false;
        manager->qos_is_due = true;
}

/* Cgroups, directories and the shim's socket are named after the UID, so a UID belongs to one
 * pod. */
static PodEntry *find_uid_holder(const PodManager *manager, const char *uid) {
        for (PodEntry *entry = manager->entries; entry; entry = entry->next_entry)
                if (entry->worker && object_has_uid(&pod_worker_pod(entry->worker)->metadata, uid))
                        return entry;
        return NULL;
}

/* A pod of lower trust does not prevent one of higher trust from using its UID. */
static int refuse_held_uid(const PodEntry *entry, PodEntry *holder, Error *reterr) {
        if (pod_source_outranks(&entry->next_source, &holder->source)) {
                pod_worker_displace(holder->worker, UID_CONFLICT_REASON, UID_CONFLICT_MESSAGE);
                if (pod_worker_is_desired(holder->worker))
                        pod_worker_delete(holder->worker, -1, UID_CONFLICT_MESSAGE);
                pod_entry_mark_dirty(holder);
        }
        return error_setf(reterr, EEXIST, "its UID is that of pod %s", holder->description);
}

static int start_pod_worker(PodManager *manager, PodEntry *entry, Error *reterr) {
        PodEntry *holder = find_uid_holder(manager, entry->next->metadata.uid);
        bool was_recorded = pod_record_has_companions(manager->context.bundle->state_dir,
                                                      entry->next->metadata.uid);
        int r;

        if (holder)
                return refuse_held_uid(entry, holder, reterr);
        if (orphaned_pods_has(manager->orphans, entry->next->metadata.uid))
                return error_setf(reterr, EBUSY, "an earlier instance is still being cleaned up");
        r = pod_reset_config_seen(entry->next);
        if (r < 0)
                return r;
        r = pod_entry_store_record(manager, entry, entry->next, &entry->next_source, NULL, reterr);
        if (r < 0)
                return r;
        r = pod_worker_new_take(&manager->context, entry->next, was_recorded, entry,
                                &entry->worker);
        if (r < 0)
                return r;
        entry->next = NULL;
        entry->source = entry->next_source;
        entry->next_source = (PodSource){ 0 };
        log_info("Starting pod %s of %s", entry->description, pod_source_describe(&entry->source));
        pod_entry_forget_next(entry);
        manager->n_pods_started++;
        manager->n_user_pods_started += pod_has_own_users(&pod_worker_pod(entry->worker)->spec);
        manager->qos_is_due = true;
        if (pod_worker_is_desired(entry->worker))
                return 0;
        /* An earlier agent was deleting this pod; it starts again afterwards. */
        return pod_manager_start_or_edit(manager, &entry->source, pod_worker_pod(entry->worker));
}

static void record_start_error(PodEntry *entry, const char *message) {
        cleanup_free char *text = text_format("Failed to create pod sandbox: %s", message);

        if (!text)
                return;
        on_pod_worker_event(&(PodEvent){ .kind = POD_EVENT_WARNING,
                                         .pod = entry->next,
                                         .reason = "FailedCreatePodSandBox",
                                         .message = text },
                            entry->manager);
}

/* NULL: out of memory. */
static const PodStatus *make_start_status(const PodSpec *spec, const char *message) {
        PodStatus *status = malloc(sizeof(*status));

        if (status)
                *status = (PodStatus){ .n_refs = 1,
                                       .phase = POD_PENDING,
                                       .is_rejected = true,
                                       .qos_class = pod_qos_class(spec),
                                       .message = strdup(message) };
        return status;
}

/* NULL: none. Each reason is logged once, not at each try. */
static void set_pod_start_error(PodEntry *entry, const char *message) {
        if (streq_ptr(entry->start_error, message))
                return;
        free(entry->start_error);
        entry->start_error = message ? strdup(message) : NULL;
        entry->start_status = pod_status_unref(entry->start_status);
        if (message) {
                entry->start_status = make_start_status(&entry->next->spec, message);
                record_start_error(entry, message);
                log_set_message_id(MESSAGE_POD_NOT_STARTED);
                log_error("Cannot start pod '%s': %s; retrying every %us", entry->description,
                          message, (unsigned) (START_RETRY_USEC / USEC_PER_SEC));
        }
}

static void start_pod_or_retry(PodManager *manager, PodEntry *entry) {
        cleanup_error Error error = ERROR_NULL;
        int r = start_pod_worker(manager, entry, &error);

        entry->retry_timer = sd_event_source_disable_unref(entry->retry_timer);
        set_pod_start_error(entry, r < 0 ? error_message(&error, r) : NULL);
        if (r < 0)
                pod_entry_mark_dirty_later(entry, START_RETRY_USEC);
}

/* Pods that wait for a host port, or for preempted pods, are checked again when a port is released
 * or a pod is gone. */
static void notice_release(PodManager *manager, PodEntry *entry) {
        bool held_ports = entry->holds_ports, was_preempted = entry->is_preempted;

        entry->holds_ports = entry->worker && pod_worker_holds_ports(entry->worker);
        entry->is_preempted = entry->worker && pod_worker_is_stopping_preempted(entry->worker);
        /* A pod that was edited may hold other ports. */
        if (!held_ports && (!was_preempted || entry->is_preempted))
                return;
        for (PodEntry *other = manager->entries; other; other = other->next_entry)
                if (other->worker && pod_worker_awaits_release(other->worker))
                        pod_entry_mark_dirty(other);
}

static void step_pod_entry(PodManager *manager, PodEntry *entry) {
        bool is_new = !entry->is_reported;

        entry->is_dirty = false;
        /* Edits come first, so that no container is started that an edit would stop. */
        if (entry->worker && entry->next && !manager->stages)
                pod_entry_apply_edit(manager, entry);
        if (entry->worker) {
                pod_worker_step(entry->worker);
                if (pod_worker_is_removed(entry->worker))
                        remove_pod_worker(manager, entry);
        }
        if (!entry->worker && entry->next && !manager->stages) {
                start_pod_or_retry(manager, entry);
                is_new = true;
                if (entry->worker)
                        pod_worker_step(entry->worker);
        }
        notice_release(manager, entry);
        if (!entry->worker && entry->next && manager->stages)
                pod_manager_reject_for_shutdown(manager, entry);
        if (!entry->worker)
                return;
        entry->is_reported = true;
        pod_manager_notice_order(manager, entry, /* is_gone= */ false);
        manager->callbacks->on_pod(pod_worker_pod(entry->worker), is_new, false, manager->userdata);
}

/* Returns whether any entry is left. */
static bool remove_empty_entries(PodManager *manager) {
        PodEntry **link = &manager->entries;

        while (*link) {
                PodEntry *entry = *link;

                if (entry->worker || entry->next) {
                        link = &entry->next_entry;
                        continue;
                }
                *link = entry->next_entry;
                pod_entry_free(entry);
        }
        return manager->entries != NULL;
}

static int step_dirty_pods(sd_event_source *source, void *userdata) {
        PodManager *manager = userdata;
        uint64_t end = now_boottime_usec() + STEP_USEC;

        if (manager->entries && !manager->has_qos_groups) /* before the first pod's cgroup */
                update_qos_cgroups(manager);
        for (PodEntry *entry = manager->entries; entry; entry = entry->next_entry) {
                if (!entry->is_dirty)
                        continue;
                if (now_boottime_usec() >
                    end) { /* starting hundreds of pods at once takes a while */
                        pod_manager_schedule_step(manager);
                        break;
                }
                step_pod_entry(manager, entry);
        }
        if (!remove_empty_entries(manager)) {
                slices_remove_empty(&manager->context, /* all= */ true);
                manager->has_qos_groups = false;
        } else if (manager->qos_is_due) {
                update_qos_cgroups(manager);
                slices_remove_empty(&manager->context, /* all= */ false);
        }
        manager->qos_is_due = false;
        if (manager->stages)
                pod_manager_continue_shutdown(manager);
        return 0;
}

/* ---- queries ---- */

/* Finds a pod by its full name, or by the name of the API server's pod for which it was adopted. */
static bool is_pod_called(const Pod *pod, const char *namespace, const char *name) {
        cleanup_free char *api_name = pod_adoption_api_name(pod);
        const ObjectMeta adopted = { .namespace = pod->metadata.namespace, .name = api_name };

        return object_has_name(&pod->metadata, namespace, name) ||
               (api_name && object_has_name(&adopted, namespace, name));
}

PodEntry *pod_manager_find_running(PodManager *manager, const char *namespace, const char *pod,
                                   Error *reterr) {
        for (PodEntry *entry = manager->entries; entry; entry = entry->next_entry) {
                const Pod *running = entry->worker ? pod_worker_pod(entry->worker) : NULL;

                if (running && is_pod_called(running, namespace, pod))
                        return entry;
        }
        (void) error_setf(reterr, ENOENT, "pods \"%s\" not found", pod);
        return NULL;
}

int pod_manager_find_log(PodManager *manager, const char *namespace, const char *pod,
                         const char *container, bool previous, char **ret_directory,
                         unsigned *ret_attempt, bool *ret_is_live, Error *reterr) {
        PodEntry *entry = pod_manager_find_running(manager, namespace, pod, reterr);

        return entry ? pod_worker_find_log(entry->worker, container, previous, ret_directory,
                                           ret_attempt, ret_is_live, reterr)
                     : -ENOENT;
}

int pod_manager_open_session(PodManager *manager, const char *namespace, const char *pod,
                             const char *container, const SandboxSession *session, int socket_fd,
                             Error *reterr) {
        PodEntry *entry = pod_manager_find_running(manager, namespace, pod, reterr);

        return entry ? pod_worker_open_session(entry->worker, container, session, socket_fd, reterr)
                     : -ENOENT;
}

int pod_manager_attach(PodManager *manager, const char *namespace, const char *pod,
                       const char *container, const SandboxAttach *attach, int socket_fd,
                       Error *reterr) {
        PodEntry *entry = pod_manager_find_running(manager, namespace, pod, reterr);

        return entry ? pod_worker_attach(entry->worker, container, attach, socket_fd, reterr)
                     : -ENOENT;
}

int pod_manager_check_pod(PodManager *manager, const char *namespace, const char *pod,
                          const char *uid, Error *reterr) {
        PodEntry *entry = pod_manager_find_running(manager, namespace, pod, reterr);

        return entry ? pod_worker_check_instance(entry->worker, uid, reterr) : -ENOENT;
}

int pod_manager_connect_to_port(PodManager *manager, const char *namespace, const char *pod,
                                const char *uid, unsigned port, bool is_ipv6, Error *reterr) {
        PodEntry *entry = pod_manager_find_running(manager, namespace, pod, reterr);

        return entry ? pod_worker_connect_to_port(entry->worker, uid, port, is_ipv6, reterr)
                     : -ENOENT;
}

int pod_manager_delete_pod(PodManager *manager, const char *namespace, const char *pod,
                           int64_t grace_seconds, const char *reason, Error *reterr) {
        PodEntry *entry = pod_manager_find_running(manager, namespace, pod, reterr);

        if (!entry)
                return -ENOENT;
        pod_worker_delete(entry->worker, grace_seconds, reason);
        return 0;
}

bool pod_manager_is_synced(const PodManager *manager) {
        for (const PodEntry *entry = manager->entries; entry; entry = entry->next_entry)
                if (entry->worker && !pod_worker_is_synced(entry->worker))
                        return false;
        return true;
}

PodManagerCounts pod_manager_counts(const PodManager *manager) {
        PodManagerCounts counts = {
                .pods_started = manager->n_pods_started,
                .user_pods_started = manager->n_user_pods_started,
                .containers_started = manager->context.n_containers_started,
                .containers_restarted = manager->context.n_containers_restarted,
                .containers_start_errors = manager->context.n_start_errors,
        };

        memcpy(counts.preemptions, manager->n_preemptions, sizeof(counts.preemptions));
        for (const PodEntry *entry = manager->entries; entry; entry = entry->next_entry) {
                counts.pods += entry->worker != NULL;
                counts.pods_desired +=
                        entry->next || (entry->worker && pod_worker_is_desired(entry->worker));
        }
        return counts;
}

void pod_manager_for_each_probe(const PodManager *manager, probe_sample_t each, void *userdata) {
        for (const PodEntry *entry = manager->entries; entry; entry = entry->next_entry)
                if (entry->worker)
                        pod_worker_for_each_probe(entry->worker, each, userdata);
}
