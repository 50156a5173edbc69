/* SPDX-License-Identifier: Apache-2.0 */

/* Only the cluster side of a node for the tests in system/test_kube_node.py: its Node, its Lease
 * and its events, with the real client on an event loop. Lines on standard input control it; its
 * notifications are lines on standard output. */

#include "agent/kubeclient/event-sink.h"
#include "agent/kubeclient/node-lease-controller.h"
#include "agent/kubeclient/node-status-updater.h"
#include "agent/manifest/read-kubeconfig.h"
#include "common/cleanup.h"
#include "common/strv.h"

#include <stdarg.h>

typedef struct World {
        sd_event *event;
        KubeClient *client;
        NodeStatusUpdater *keeper;
        KubeLeaseController *lease;
        KubeEventSink *events;
        NodeLabelsTaints local;
        bool has_disk_pressure;
        int64_t memory;
} World;

static void print_line(const char *format, ...) printf_like(1, 2);
static void print_line(const char *format, ...) {
        va_list args;

        va_start(args, format);
        (void) vprintf(format, args);
        va_end(args);
        (void) printf("\n");
        (void) fflush(stdout);
}

static int describe_node(const NodeLabelsTaints **ret_local, NodeStatus *ret, void *userdata) {
        World *world = userdata;

        *ret_local = &world->local;
        ret->capacity = (NodeResources){ 2000, world->memory, 1000, 0, NODE_RESOURCE_NONE, 110 };
        ret->allocatable = ret->capacity;
        if (world->has_disk_pressure)
                ret->pressure.set = NODE_CONDITION_BIT(NODE_DISK_PRESSURE);
        ret->hostname = strdup(world->local.name);
        return strv_append(&ret->addresses, "192.0.2.10");
}

static void on_node(const NodeLabelsTaints *external, const char *uid, void *userdata) {
        World *world = userdata;

        print_line("node %s labels=%zu taints=%zu", uid ? uid : "gone",
                   external ? external->labels.n : 0, external ? external->taints.n : 0);
        (void) kube_lease_controller_set_node(world->lease, uid);
}

static void on_error(const char *error, unsigned status, void *userdata) {
        print_line("error %u %s", status, error ? error : "none");
}

static void on_history_lost(void *userdata) {
        print_line("history lost");
        node_status_updater_resync(((World *) userdata)->keeper);
}

static void obey_command(World *world, char *line) {
        if (streq(line, "touch"))
                node_status_updater_trigger(world->keeper);
        else if (streq(line, "pressure")) {
                world->has_disk_pressure = !world->has_disk_pressure;
                node_status_updater_trigger(world->keeper);
        } else if (streq(line, "memory")) {
                world->memory *= 2;
                node_status_updater_trigger(world->keeper);
        } else if (streq(line, "quit"))
                (void) sd_event_exit(world->event, 0);
        else if (line[0] == '{')
                print_line("event %d", kube_event_sink_submit(world->events, line));
}

static int on_input(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        char line[4096];

        if (!fgets(line, sizeof(line), stdin))
                return sd_event_exit(((World *) userdata)->event, 0);
        line[strcspn(line, "\n")] = '\0';
        obey_command(userdata, line);
        return 0;
}

static int start_node_parts(World *world) {
        NodeStatusUpdaterSpec node = {
                .client = world->client,
                .name = world->local.name,
                .registers_node = true,
                .get_local_node = describe_node,
                .on_node = on_node,
                .on_error = on_error,
                .userdata = world,
        };
        KubeLeaseControllerSpec lease = { world->client, world->local.name, on_error,
                                          on_history_lost, world };
        KubeEventSinkSpec events = { world->client, on_error, world };
        int r = kube_lease_controller_new(world->event, &lease, &world->lease);

        if (r >= 0)
                r = kube_event_sink_new(world->event, &events, &world->events);
        if (r >= 0)
                r = node_status_updater_new(world->event, &node, &world->keeper);
        if (r >= 0)
                r = sd_event_add_io(world->event, NULL, STDIN_FILENO, EPOLLIN, on_input, world);
        return r;
}

static void world_done(World *world) {
        node_status_updater_free(world->keeper);
        kube_lease_controller_free(world->lease);
        kube_event_sink_free(world->events);
        kube_client_free(world->client);
        sd_event_unref(world->event);
        node_labels_taints_done(&world->local);
}

static int run_node(const char *path, const char *name, Error *reterr) {
        cleanup_with(world_done) World world = { .memory = INT64_C(1024) * 1024 };
        cleanup_with(kubeconfig_done) Kubeconfig kubeconfig = { 0 };
        cleanup_strv char **warnings = NULL;
        int r = kubeconfig_load(path, &kubeconfig, &warnings, reterr);

        if (r < 0)
                return r;
        world.local.name = strdup(name);
        r = world.local.name ? node_labels_taints_add_well_known(&world.local, name, "amd64")
                             : -ENOMEM;
        if (r >= 0)
                r = sd_event_new(&world.event);
        if (r >= 0)
                r = kube_client_new(world.event, &kubeconfig, &world.client, reterr);
        if (r >= 0)
                r = start_node_parts(&world);
        return r < 0 ? r : sd_event_loop(world.event);
}

int main(int argc, char **argv) {
        cleanup_error Error error = ERROR_NULL;
        int r;

        (void) setvbuf(stdin, NULL, _IONBF, 0);
        r = argc == 3 ? run_node(argv[1], argv[2], &error) : -EINVAL;
        if (r < 0)
                print_line("failed %s", error_message(&error, r));
        return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
