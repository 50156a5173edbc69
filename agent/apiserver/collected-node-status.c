/* SPDX-License-Identifier: Apache-2.0 */
/* Collects the content of the Node status; node-registration.c reports it. */

#include "agent/apiserver/collected-node-status.h"

#include "common/architecture.h"
#include "common/array.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/listening-port.h"
#include "common/strv.h"
#include "common/text.h"

#include <ctype.h>
#include <fcntl.h>
#include <sys/utsname.h>

/* ---- node info ---- */

static char *read_first_line(const char *path) {
        cleanup_free char *text = NULL;

        if (read_file_at(AT_FDCWD, path, 4096, &text, NULL) < 0)
                return NULL;
        return strndup(text, strcspn(text, "\n"));
}

static char *read_first_available(const char *const *paths, size_t n) {
        for (size_t i = 0; i < n; i++) {
                char *line = read_first_line(paths[i]);

                if (line && line[0])
                        return line;
                free(line);
        }
        return NULL;
}

/* The value of a line of os-release, which is a shell assignment. */
static char *read_os_pretty_name(void) {
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

static void read_node_info(NodeInfo *info) {
        static const char *const machine_ids[] = { "/etc/machine-id", "/var/lib/dbus/machine-id" };
        static const char *const uuids[] = { "/sys/class/dmi/id/product_uuid",
                                             "/proc/device-tree/vm,uuid", "/etc/machine-id" };
        struct utsname uts;

        info->machine_id = read_first_available(machine_ids, N_ELEMENTS(machine_ids));
        info->system_uuid = read_first_available(uuids, N_ELEMENTS(uuids));
        for (char *c = info->system_uuid; c && *c; c++)
                *c = (char) tolower((unsigned char) *c);
        info->boot_id = read_first_line("/proc/sys/kernel/random/boot_id");
        info->kernel_version = uname(&uts) == 0 ? strdup(uts.release) : NULL;
        info->os_image = read_os_pretty_name();
        info->architecture = strdup(machine_architecture());
}

/* ---- images and runtime handlers ---- */

typedef struct NodeImageList {
        NodeStatus *status;
        int r;
} NodeImageList;

static void add_node_image(const ImageInfo *info, void *userdata) {
        NodeImageList *images = userdata;
        NodeStatus *status = images->status;
        NodeImage *image;

        if (images->r < 0 || strv_length(info->names) == 0)
                return;
        image = ARRAY_APPEND(status->images.items, status->images.n);
        if (!image) {
                images->r = -ENOMEM;
                return;
        }
        image->size_bytes = (int64_t) info->size_bytes;
        images->r = strv_extend(&image->names, info->names);
}

static int compare_image_sizes(const void *a, const void *b) {
        const NodeImage *x = a, *y = b;

        if (x->size_bytes != y->size_bytes)
                return x->size_bytes < y->size_bytes ? 1 : -1;
        return strcmp(x->names[0], y->names[0]);
}

static int read_node_images(ImageStore *store, NodeStatus *status) {
        NodeImageList images = { .status = status };
        int r = image_store_foreach(store, add_node_image, &images);

        if (status->images.n > 0)
                qsort(status->images.items, status->images.n, sizeof(NodeImage),
                      compare_image_sizes);
        return r == -ENOMEM ? r : images.r;
}

static int read_runtime_handlers(const StringMap *runtimes, NodeStatus *status) {
        int r = strv_append(&status->runtime_handlers, "");

        for (size_t i = 0; i < runtimes->n && r >= 0; i++)
                r = strv_append(&status->runtime_handlers, runtimes->items[i].key);
        return r;
}

/* In the kubelet's order and form. NULL: there is none. */
static int join_not_ready_reasons(const char *network, const char *other, char **ret) {
        if (network && other)
                *ret = text_format("[%s, %s]", network, other);
        else if (network || other)
                *ret = strdup(network ? network : other);
        return (network || other) && !*ret ? -ENOMEM : 0;
}

static int fill_node_status(const NodeStatusInputs *inputs, const char *not_ready_reason,
                            const char *refused, NodeStatus *status) {
        int r;

        read_node_info(&status->info);
        status->info.swap = inputs->machine->swap_capacity;
        status->capacity = machine_capacity(inputs->machine, inputs->storage, inputs->max_pods);
        status->allocatable =
                node_allocatable(&status->capacity, inputs->system, inputs->kube, inputs->eviction);
        if (port_has_listener(inputs->node_api_port) > 0)
                status->port = inputs->node_api_port;
        status->has_user_namespaces = access("/proc/self/ns/user", F_OK) == 0;
        status->pressure = *inputs->conditions;
        if (inputs->devices && device_manager_list_resources(inputs->devices, &status->devices) < 0)
                return -ENOMEM;
        if (inputs->csi && csi_manager_volumes_in_use(inputs->csi, &status->volumes_in_use) < 0)
                return -ENOMEM;
        status->sources = inputs->list_sources(inputs->userdata);
        r = join_not_ready_reasons(inputs->network->not_ready, not_ready_reason,
                                   &status->not_ready_reason);
        if (r < 0)
                return r;
        status->refused = refused ? strdup(refused) : NULL;
        status->hostname = strdup(inputs->hostname);
        if (!status->hostname)
                return -ENOMEM;
        if (inputs->address && strv_append(&status->addresses, inputs->address) < 0)
                return -ENOMEM;
        if (inputs->other_address && strv_append(&status->addresses, inputs->other_address) < 0)
                return -ENOMEM;
        r = read_runtime_handlers(inputs->runtimes, status);
        return r < 0 ? r : read_node_images(inputs->images, status);
}

int collect_node_status(const NodeStatusInputs *inputs, const char *not_ready_reason,
                        const char *refused, NodeStatus *ret) {
        NodeStatus status = { 0 };
        int r = fill_node_status(inputs, not_ready_reason, refused, &status);

        if (r < 0)
                node_status_done(&status);
        else
                *ret = status;
        return r;
}
