/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The surroundings of pods/ in these tests, in place of the machine: each fake-*.c defines the
 * functions of a real file under their own names, and is linked instead of it. A fake records what
 * it was asked for, in the words of fake_requests(), and plays the events that a test orders. All
 * answers arrive from the event loop, as real ones do. One machine for each process. */

#include "agent/sandbox/sandbox.h"
#include "common/clock.h"
#include "tests/test.h"

#include <systemd/sd-event.h>

/* ---- requests ---- */

/* Adds a line to the record. */
void fake_request(const char *format, ...) printf_like(1, 2);

/* The lines since the last call, borrowed until the next one. */
const char *fake_requests(void);

/* ---- the clock (fake-clock.c) ---- */

/* All clocks of the process stand still, and go on by this much. Timers of the event loop fire when
 * the loop runs next. */
void fake_clock_pass(uint64_t usec);

/* Only realtime: somebody sets the clock. */
void fake_clock_set(int64_t by_usec);

/* The machine sleeps: all but the awake time go on. */
void fake_clock_sleep(uint64_t usec);

/* No timer of the event loop fires for so long, at least. */
uint64_t fake_clock_quiet_usec(void);

/* ---- shims (fake-sandbox.c) ---- */

/* The fate of a container that is run. */
typedef enum FakeRun {
        RUN_STARTS,
        RUN_HANGS,   /* its start never ends */
        RUN_FAILS,   /* before the runtime was called */
        RUN_REFUSED, /* by the runtime */
        RUN_EXITS,   /* it starts, and exits with 'exit_code' at once */
} FakeRun;

typedef struct FakeShimBehaviour {
        const char *start_error;   /* no shim starts; NULL: they do */
        const char *setup_error;   /* mounts cannot be made */
        bool hangs;                /* shims do not answer */
        bool setup_hangs;          /* mounts are not made */
        unsigned n_cleanup_errors; /* so many cleanups fail */
        const char *plugin_error;  /* network plugins fail */
        bool has_old_shims;        /* of an agent that did not support attach */
        bool records_deletions;    /* of what attempts left; else they are no requests */
        bool keeps_execs;          /* answers to commands are those of the test; else all succeed */
} FakeShimBehaviour;

extern FakeShimBehaviour fake_shims;

typedef struct FakeContainerBehaviour {
        FakeRun run;
        int exit_code;
        bool ignores_signal; /* only SIGKILL ends it */
} FakeContainerBehaviour;

/* For the containers of that name, from the next start on. */
FakeContainerBehaviour *fake_container(const char *name);

/* The running container of that name exits. */
void fake_container_exit(const char *name, int exit_code);

/* Its start, which hangs, ends with 'type': SHIM_EVENT_STARTED or SHIM_EVENT_START_FAILED. */
void fake_container_start_ends(const char *name, ShimEventType type);

/* If its start hangs, it ends well. */
void fake_container_start_hanging(const char *name);

/* The oldest command that runs in the container ends. */
void fake_exec_ends(const char *name, const ShimEvent *result);

/* How many processes of containers with that name there are (NULL: all). */
unsigned fake_count_processes(const char *name);

/* How many containers were running twice, ever: always 0. */
unsigned fake_count_doubles(void);
unsigned fake_count_shims(void);

/* All shims die, with their containers; or their connections break and come back. */
void fake_shims_die(void);
void fake_connections_break(void);

/* Shims that did not answer do so now. */
void fake_shims_answer(void);

/* As after a reboot: no shim is left, and nobody hears of it. */
void fake_shims_forget(void);

/* ---- children (fake-child.c) ---- */

typedef struct FakeChildBehaviour {
        const char *output; /* of each */
        int status;
        bool hangs;
} FakeChildBehaviour;

extern FakeChildBehaviour fake_children;

/* A child that ends from the loop, after 'run' was called. */
Child *fake_child_new(sd_event *event, child_done_t done, void *userdata, void (*run)(void *work),
                      void *work, int status, const char *error);

/* ---- images (fake-image-store.c) ---- */

typedef enum FakeImageState {
        IMAGE_PRESENT,
        IMAGE_PULLING, /* until fake_pull_ends() */
        IMAGE_MISSING, /* ENOENT */
        IMAGE_INVALID, /* EINVAL */
} FakeImageState;

/* For the images of that name; at first they are present. */
void fake_image_set(const char *name, FakeImageState state);

/* Pulls of that name end: 0, or -errno. */
void fake_pull_ends(const char *name, int r);

/* ---- HTTP (fake-http-client.c) ---- */

typedef struct FakeHttpAnswer {
        long status;
        const char *body, *location, *grpc_status, *grpc_message;
        size_t body_length; /* 0: that of the text */
        const char *error;  /* there is no response */
        bool hangs;
} FakeHttpAnswer;

/* The answer to each request. */
extern FakeHttpAnswer fake_http;

/* ---- the disk (fake-disk.c) ---- */

/* Tasks that look at paths do not end. */
extern bool fake_disk_hangs;

/* ---- cgroups (fake-cgroup.c) ---- */

/* Values are files below this directory. */
void fake_cgroups_init(const char *directory);

/* No value of this file can be written: -EBUSY. NULL: all can. */
extern const char *fake_cgroup_refused_file;

/* ---- systemd (fake-systemd-client.c) ---- */

/* PID 1 says that the machine is shutting down. */
extern bool fake_systemd_is_stopping;

/* logind announces a shutdown, or its end. */
void fake_logind_announce(bool is_starting);
