/* SPDX-License-Identifier: Apache-2.0 */

/* The sources of manifests of many nodes in one process, and nothing else of these, for
 * system/test_source_fleet.py:
 *
 *     source-fleet CONFIG DIRECTORY NODES
 *
 * The state of each node is in a folder of DIRECTORY. The line "NUMBER" on standard input is
 * answered with how many of them have that index in use, and how many fail. */

#include "agent/manifest/manifest.h"
#include "agent/source/fetch-settings.h"
#include "agent/source/manifest-source.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/strv.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

enum {
        MANIFEST_MAX = 1024 * 1024
};

typedef struct Fleet {
        sd_event *event;
        Config config;
        ManifestSource **sources;
        size_t n;
} Fleet;

static int open_fleet_settings(bool was_refused, void *userdata) {
        const Fleet *fleet = userdata;

        return fetch_settings_of_index(&fleet->config, MANIFEST_MAX, was_refused);
}

static int accept_manifests(int dir_fd, Error *reterr, void *userdata) {
        return 0;
}

/* The index has no images. */
static int prepare_manifests(int dir_fd, Error *reterr, void *userdata) {
        return 1;
}

static char *describe_no_progress(void *userdata) {
        return NULL;
}

static void on_accepted_manifests(int dir_fd, void *userdata) {
}

static void on_fleet_status(const NodeSourceStatus *status, void *userdata) {
        if (status->has_failed)
                (void) fprintf(stderr, "%s\n", status->message);
}

static void print_fleet_status(const Fleet *fleet, int64_t number) {
        size_t n_using = 0, n_failed = 0;

        for (size_t i = 0; i < fleet->n; i++) {
                NodeSourceStatus status = manifest_source_status(fleet->sources[i]);

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

static int add_node(Fleet *fleet, const char *directory) {
        const SourceConfig *source = fleet->config.mainstay.source;
        cleanup_free char *state_dir = NULL;
        int r;

        if (asprintf(&state_dir, "%s/%zu", directory, fleet->n) < 0) {
                state_dir = NULL;
                return -ENOMEM;
        }
        r = manifest_source_new(&(ManifestSourceConfig){ .event = fleet->event,
                                                         .name = "source",
                                                         .state_dir = state_dir,
                                                         .helper_path = getenv("MAINSTAY_IMAGE"),
                                                         .interval_usec = source->interval_usec,
                                                         .jitter_usec = source->jitter_usec,
                                                         .timeout_usec = 300 * USEC_PER_SEC,
                                                         .open_settings = open_fleet_settings,
                                                         .check = accept_manifests,
                                                         .prepare = prepare_manifests,
                                                         .describe_progress = describe_no_progress,
                                                         .on_accepted = on_accepted_manifests,
                                                         .on_status = on_fleet_status,
                                                         .userdata = fleet },
                                &fleet->sources[fleet->n]);
        if (r < 0)
                return r;
        return manifest_source_start(fleet->sources[fleet->n++]);
}

/* sd-event reports the end of a child only if the process blocks SIGCHLD. */
static int block_child_signal(void) {
        sigset_t signals;

        if (sigemptyset(&signals) < 0 || sigaddset(&signals, SIGCHLD) < 0 ||
            sigprocmask(SIG_BLOCK, &signals, NULL) < 0)
                return -errno;
        return 0;
}

/* Each source has some descriptors. */
static int raise_descriptor_limit(void) {
        struct rlimit limit;

        if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
                return -errno;
        limit.rlim_cur = limit.rlim_max;
        return setrlimit(RLIMIT_NOFILE, &limit) < 0 ? -errno : 0;
}

static void fleet_done(Fleet *fleet) {
        for (size_t i = 0; i < fleet->n; i++)
                manifest_source_free(fleet->sources[i]);
        free(fleet->sources);
        config_done(&fleet->config);
        sd_event_unref(fleet->event);
}

static int run_fleet(const char *config, const char *directory, size_t n, Error *reterr) {
        cleanup_with(fleet_done) Fleet fleet = { 0 };
        cleanup_strv char **warnings = NULL;
        int r = kubelet_config_load(config, &fleet.config, &warnings, reterr);

        if (r >= 0)
                r = block_child_signal();
        if (r >= 0)
                r = raise_descriptor_limit();
        if (r >= 0)
                r = sd_event_new(&fleet.event);
        if (r >= 0)
                r = sd_event_add_io(fleet.event, NULL, STDIN_FILENO, EPOLLIN, on_fleet_input,
                                    &fleet);
        fleet.sources = calloc(n, sizeof(ManifestSource *));
        if (!fleet.sources)
                return -ENOMEM;
        for (size_t i = 0; i < n && r >= 0; i++)
                r = add_node(&fleet, directory);
        return r < 0 ? r : sd_event_loop(fleet.event);
}

int main(int argc, char **argv) {
        cleanup_error Error error = ERROR_NULL;
        int r;

        (void) setvbuf(stdin, NULL, _IONBF, 0);
        r = argc == 4 ? run_fleet(argv[1], argv[2], strtoul(argv[3], NULL, 10), &error) : -EINVAL;
        if (r < 0)
                (void) fprintf(stderr, "%s\n", error_message(&error, r));
        return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
