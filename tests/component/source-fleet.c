/* SPDX-License-Identifier: Apache-2.0 */

/* The sources of manifests of many nodes in one process, with their stores of images, but no other
 * part of these nodes, for system/test_source_fleet.py:
 *
 *     source-fleet DIRECTORY NODES
 *
 * The folder of node N is DIRECTORY/N. It contains its configuration, 'config', with its labels,
 * its state, and, for an index in use, 'pods': the labels 'app' of the pods that its labels select.
 * The line "NUMBER" on standard input is answered with how many nodes have that index in use, and
 * how many fail. */

#include "agent/desired/index-images.h"
#include "agent/desired/index-objects.h"
#include "agent/manifest/manifest.h"
#include "agent/model/match.h"
#include "agent/node/node-labels.h"
#include "agent/source/fetch-settings.h"
#include "agent/source/manifest-source.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/strv.h"
#include "common/text.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

enum {
        MANIFEST_MAX = 1024 * 1024
};

typedef struct FleetNode {
        char *directory, *name;
        Config config;
        SteadyClock clock;
        MergedNodeLabels labels;
        ImageStore *store;
        SourceImages named; /* images in the index that is being fetched */
        IndexImages *images;
        ManifestSource *source;
} FleetNode;

typedef struct Fleet {
        sd_event *event;
        FleetNode *nodes;
        size_t n;
} Fleet;

static int open_node_settings(bool was_refused, void *userdata) {
        const FleetNode *node = userdata;

        return fetch_settings_of_index(&node->config, MANIFEST_MAX, was_refused);
}

static int accept_manifests(int dir_fd, Error *reterr, void *userdata) {
        return 0;
}

static int prepare_manifests(int dir_fd, Error *reterr, void *userdata) {
        FleetNode *node = userdata;
        cleanup_free char *path = manifest_source_path(node->source, "next");
        int r;

        source_images_done(&node->named);
        r = path ? source_images_load(path, &node->named) : -ENOMEM;
        return r < 0 ? r : index_images_begin(node->images, dir_fd, &node->named, reterr);
}

static bool may_continue(Error *reterr, void *userdata) {
        const FleetNode *node = userdata;

        return manifest_source_may_ask(node->source, reterr);
}

static void on_node_images(int r, const Error *error, void *userdata) {
        const FleetNode *node = userdata;

        manifest_source_on_prepared(node->source, r, error);
}

static char *describe_no_progress(void *userdata) {
        return NULL;
}

static void on_changed_images(void *userdata) {
}

typedef struct SelectedPods {
        const NodeLabelsTaints *node;
        FILE *out;
} SelectedPods;

static void print_selected_pod(const Pod *pod, void *userdata) {
        const SelectedPods *selected = userdata;

        if (pod_matches_node(&pod->spec, selected->node))
                (void) fprintf(selected->out, "%s\n",
                               strna(string_map_get(&pod->metadata.labels, "app")));
}

static void on_accepted_manifests(int dir_fd, void *userdata) {
        const FleetNode *node = userdata;
        cleanup_with(index_objects_done) IndexObjects objects = { 0 };
        cleanup_free char *path = path_join(node->directory, "pods");
        SelectedPods selected = { .node = &node->labels.effective };

        if (index_objects_read(dir_fd, node->name, &objects) < 0 || !path)
                abort();
        selected.out = fopen(path, "we");
        if (!selected.out)
                abort();
        index_objects_foreach_pod(&objects, print_selected_pod, &selected);
        (void) fclose(selected.out);
}

static void on_node_status(const NodeSourceStatus *status, void *userdata) {
        const FleetNode *node = userdata;

        if (status->has_failed)
                (void) fprintf(stderr, "%s: %s\n", node->name, status->message);
}

static void print_fleet_status(const Fleet *fleet, int64_t number) {
        size_t n_using = 0, n_failed = 0;

        for (size_t i = 0; i < fleet->n; i++) {
                NodeSourceStatus status = manifest_source_status(fleet->nodes[i].source);

                n_using += status.number == number;
                n_failed += status.has_failed;
        }
        printf("%zu %zu\n", n_using, n_failed);
        (void) fflush(stdout);
}

static int on_fleet_input(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        Fleet *fleet = userdata;
        char line[32];

        if (!fgets(line, sizeof(line), stdin))
                return sd_event_exit(fleet->event, 0);
        print_fleet_status(fleet, strtoll(line, NULL, 10));
        return 0;
}

static int load_node(FleetNode *node, Error *reterr) {
        cleanup_free char *path = path_join(node->directory, "config");
        cleanup_strv char **warnings = NULL;
        int r;

        if (!path)
                return -ENOMEM;
        r = kubelet_config_load(path, &node->config, &warnings, reterr);
        if (r < 0)
                return r;
        node->labels = (MergedNodeLabels){ .node_name = node->name,
                                           .hostname = node->name,
                                           .state_dir = node->directory,
                                           .clock = &node->clock };
        return node_labels_load(&node->labels, &node->config, false);
}

static int open_node_images(const Fleet *fleet, FleetNode *node, Error *reterr) {
        int r = image_store_new(&(ImageStoreConfig){ .event = fleet->event,
                                                     .helper_path = getenv("MAINSTAY_IMAGE"),
                                                     .state_dir = node->directory,
                                                     .config = &node->config.mainstay,
                                                     .node_config = &node->config },
                                on_changed_images, node, &node->store, reterr);

        if (r < 0)
                return r;
        return index_images_new(&(IndexImagesConfig){ .event = fleet->event,
                                                      .store = node->store,
                                                      .node = &node->labels.effective,
                                                      .may_continue = may_continue,
                                                      .on_done = on_node_images,
                                                      .userdata = node },
                                &node->images);
}

static int open_node_source(const Fleet *fleet, FleetNode *node) {
        const SourceConfig *source = node->config.mainstay.source;

        return manifest_source_new(
                &(ManifestSourceConfig){ .event = fleet->event,
                                         .name = "source",
                                         .state_dir = node->directory,
                                         .helper_path = getenv("MAINSTAY_IMAGE"),
                                         .interval_usec = source->interval_usec,
                                         .jitter_usec = source->jitter_usec,
                                         .timeout_usec = 300 * USEC_PER_SEC,
                                         .open_settings = open_node_settings,
                                         .check = accept_manifests,
                                         .prepare = prepare_manifests,
                                         .describe_progress = describe_no_progress,
                                         .on_accepted = on_accepted_manifests,
                                         .on_status = on_node_status,
                                         .userdata = node },
                &node->source);
}

static int add_node(Fleet *fleet, const char *directory, Error *reterr) {
        FleetNode *node = &fleet->nodes[fleet->n++];
        int r;

        node->directory = text_format("%s/%zu", directory, fleet->n - 1);
        node->name = text_format("node%zu", fleet->n - 1);
        if (!node->directory || !node->name)
                return -ENOMEM;
        r = load_node(node, reterr);
        if (r >= 0)
                r = open_node_images(fleet, node, reterr);
        if (r >= 0)
                r = open_node_source(fleet, node);
        return r < 0 ? r : manifest_source_start(node->source);
}

/* sd-event reports the end of a child only if the process blocks SIGCHLD. */
static int block_child_signal(void) {
        sigset_t signals;

        if (sigemptyset(&signals) < 0 || sigaddset(&signals, SIGCHLD) < 0 ||
            sigprocmask(SIG_BLOCK, &signals, NULL) < 0)
                return -errno;
        return 0;
}

/* Each node needs some descriptors. */
static int raise_descriptor_limit(void) {
        struct rlimit limit;

        if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
                return -errno;
        limit.rlim_cur = limit.rlim_max;
        return setrlimit(RLIMIT_NOFILE, &limit) < 0 ? -errno : 0;
}

static void node_done(FleetNode *node) {
        index_images_free(node->images);
        manifest_source_free(node->source);
        source_images_done(&node->named);
        image_store_free(node->store);
        node_labels_done(&node->labels);
        config_done(&node->config);
        free(node->directory);
        free(node->name);
}

static void fleet_done(Fleet *fleet) {
        for (size_t i = 0; i < fleet->n; i++)
                node_done(&fleet->nodes[i]);
        free(fleet->nodes);
        sd_event_unref(fleet->event);
}

static int run_fleet(const char *directory, size_t n, Error *reterr) {
        cleanup_with(fleet_done) Fleet fleet = { 0 };
        int r = block_child_signal();

        if (r >= 0)
                r = raise_descriptor_limit();
        if (r >= 0)
                r = sd_event_new(&fleet.event);
        if (r >= 0)
                r = sd_event_add_io(fleet.event, NULL, STDIN_FILENO, EPOLLIN, on_fleet_input,
                                    &fleet);
        fleet.nodes = calloc(n, sizeof(FleetNode));
        if (!fleet.nodes)
                return -ENOMEM;
        for (size_t i = 0; i < n && r >= 0; i++)
                r = add_node(&fleet, directory, reterr);
        return r < 0 ? r : sd_event_loop(fleet.event);
}

int main(int argc, char **argv) {
        cleanup_error Error error = ERROR_NULL;
        int r;

        (void) setvbuf(stdin, NULL, _IONBF, 0);
        r = argc == 3 ? run_fleet(argv[1], strtoul(argv[2], NULL, 10), &error) : -EINVAL;
        if (r < 0)
                (void) fprintf(stderr, "%s\n", error_message(&error, r));
        return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
