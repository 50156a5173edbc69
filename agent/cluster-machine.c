/* SPDX-License-Identifier: Apache-2.0 */

/* What the API server is told of this machine: gathered whenever it is asked for, from the kernel
 * and from what the agent knows. What the machine does not tell is empty. */

#include "agent/cluster-private.h"

#include "agent/bundle/huge-pages.h"
#include "common/architecture.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/strv.h"

#include <ctype.h>
#include <fcntl.h>
#include <sys/utsname.h>

enum {
        PODS_MAX = 110, /* as any kubelet says that is not told otherwise */
};

/* ---- who the machine is ---- */

static char *first_line(const char *path) {
        cleanup_free char *text = NULL;

        if (read_file_at(AT_FDCWD, path, 4096, &text, NULL) < 0)
                return NULL;
        return strndup(text, strcspn(text, "\n"));
}

static char *first_of(const char *const *paths, size_t n) {
        for (size_t i = 0; i < n; i++) {
                char *line = first_line(paths[i]);

                if (line && line[0])
                        return line;
                free(line);
        }
        return NULL;
}

/* The value of a line of os-release, which is a shell's assignment. */
static char *pretty_name(void) {
        static const char *const paths[] = { "/etc/os-release", "/usr/lib/os-release" };
        static const char key[] = "PRETTY_NAME=";
        cleanup_free char *text = NULL;
        const char *value;

        for (size_t i = 0; i < N_ELEMENTS(paths) && !text; i++)
                (void) read_file_at(AT_FDCWD, paths[i], 64 * KIB, &text, NULL);
        value = text ? strstr(text, key) : NULL;
        if (!value || (value != text && value[-1] != '\n'))
                return NULL;
        value += strlen(key);
        value += *value == '"' || *value == '\'';
        return strndup(value, strcspn(value, "\"'\n"));
}

static void read_info(NodeInfo *info) {
        static const char *const machine_ids[] = { "/etc/machine-id", "/var/lib/dbus/machine-id" };
        static const char *const uuids[] = { "/sys/class/dmi/id/product_uuid",
                                             "/proc/device-tree/vm,uuid", "/etc/machine-id" };
        struct utsname uts;

        info->machine_id = first_of(machine_ids, N_ELEMENTS(machine_ids));
        info->system_uuid = first_of(uuids, N_ELEMENTS(uuids));
        for (char *c = info->system_uuid; c && *c; c++)
                *c = (char) tolower((unsigned char) *c);
        info->boot_id = first_line("/proc/sys/kernel/random/boot_id");
        info->kernel_version = uname(&uts) == 0 ? strdup(uts.release) : NULL;
        info->os_image = pretty_name();
        info->architecture = strdup(machine_architecture());
}

/* ---- what it has ---- */

static int64_t read_huge_pages(const char *size, int64_t bytes) {
        cleanup_free char *path = NULL, *line = NULL;

        if (asprintf(&path, HUGE_PAGES_DIRECTORY "/hugepages-%s/nr_hugepages", size) < 0) {
                path = NULL;
                return NODE_RESOURCE_NONE;
        }
        line = first_line(path);
        return line ? (int64_t) strtoll(line, NULL, 10) * bytes : NODE_RESOURCE_NONE;
}

/* With less than this available pods are evicted at once, so it is for none. */
static int64_t kept_free(const EvictionPolicy *policy, EvictionSignal signal, int64_t capacity) {
        for (size_t i = 0; i < policy->n_thresholds; i++)
                if (policy->thresholds[i].signal == signal && policy->thresholds[i].grace_usec == 0)
                        return eviction_amount_of(&policy->thresholds[i].value, capacity);
        return 0;
}

static void read_resources(const ClusterMachine *machine, NodeStatus *status) {
        NodeResources *capacity = &status->capacity, *allocatable = &status->allocatable;

        *capacity = (NodeResources){
                .cpu_milli = (int64_t) machine->n_cpus * 1000,
                .memory = machine->memory,
                .ephemeral_storage = machine->storage,
                .huge_pages_1gi = read_huge_pages("1048576kB", (int64_t) 1024 * 1024 * 1024),
                .huge_pages_2mi = read_huge_pages("2048kB", (int64_t) 2 * 1024 * 1024),
                .pods = PODS_MAX,
        };
        *allocatable = *capacity;
        /* Huge pages are taken out of the memory that everybody shares. */
        allocatable->memory -= MAX(capacity->huge_pages_1gi, 0) + MAX(capacity->huge_pages_2mi, 0);
        allocatable->memory -= kept_free(machine->eviction, EVICTION_MEMORY, capacity->memory);
        allocatable->memory = MAX(allocatable->memory, 0);
        allocatable->ephemeral_storage -=
                kept_free(machine->eviction, EVICTION_NODE_FS, capacity->ephemeral_storage);
}

/* ---- what it holds ---- */

typedef struct Images {
        NodeStatus *status;
        int r;
} Images;

static void add_image(const ImageInfo *info, void *userdata) {
        Images *images = userdata;
        NodeStatus *status = images->status;
        NodeImage *larger;

        if (images->r < 0 || strv_length(info->names) == 0)
                return;
        larger = reallocarray(status->images.items, status->images.n + 1, sizeof(NodeImage));
        if (!larger) {
                images->r = -ENOMEM;
                return;
        }
        status->images.items = larger;
        larger += status->images.n++;
        *larger = (NodeImage){ .size_bytes = (int64_t) info->size_bytes };
        images->r = strv_extend(&larger->names, info->names);
}

static int compare_images(const void *a, const void *b) {
        const NodeImage *x = a, *y = b;

        if (x->size_bytes != y->size_bytes)
                return x->size_bytes < y->size_bytes ? 1 : -1;
        return strcmp(x->names[0], y->names[0]);
}

static int read_images(ImageStore *store, NodeStatus *status) {
        Images images = { .status = status };
        int r = image_store_foreach(store, add_image, &images);

        if (status->images.n > 0)
                qsort(status->images.items, status->images.n, sizeof(NodeImage), compare_images);
        return r == -ENOMEM ? r : images.r;
}

static int read_handlers(const StringMap *runtimes, NodeStatus *status) {
        int r = strv_append(&status->runtime_handlers, "");

        for (size_t i = 0; i < runtimes->n && r >= 0; i++)
                r = strv_append(&status->runtime_handlers, runtimes->items[i].key);
        return r;
}

/* The kubelet's words where it has some: a scheduler gives nothing to who is not ready. */
static const char *why_not_ready(const Cluster *cluster) {
        if (cluster->is_leaving)
                return "node is shutting down";
        return cluster->is_synced ? NULL : "pods of an earlier agent are still being taken up";
}

static int fill(const Cluster *cluster, NodeStatus *status) {
        const ClusterMachine *machine = &cluster->config.machine;
        const char *trouble = why_not_ready(cluster);
        int r;

        read_info(&status->info);
        read_resources(machine, status);
        status->has_user_namespaces = access("/proc/self/ns/user", F_OK) == 0;
        status->pressure = *machine->conditions;
        status->trouble = trouble ? strdup(trouble) : NULL;
        status->refused = cluster_print_refusals(cluster, /* with_pods= */ false);
        status->hostname = strdup(machine->hostname);
        if (!status->hostname || (trouble && !status->trouble))
                return -ENOMEM;
        r = machine->address ? strv_append(&status->addresses, machine->address) : 0;
        if (r >= 0)
                r = read_handlers(machine->runtimes, status);
        return r < 0 ? r : read_images(machine->images, status);
}

int cluster_describe_machine(const Cluster *cluster, NodeStatus *ret) {
        NodeStatus status = { 0 };
        int r = fill(cluster, &status);

        if (r < 0)
                node_status_done(&status);
        else
                *ret = status;
        return r;
}
