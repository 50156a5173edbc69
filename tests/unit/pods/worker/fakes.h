/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Fakes that replace the machine around pods/ in these tests: each fake-*.c defines the functions
 * of a real file under the same names, and is linked instead of that file. A fake records the
 * requests to it, in the form that fake_requests() returns, and generates the events that a test
 * requests. All responses arrive from the event loop, like real ones. There is one machine for each
 * process. */

#include "agent/sandbox/sandbox.h"
#include "common/clock.h"
#include "tests/test.h"

#include <systemd/sd-event.h>

/* ---- requests ---- */

/* Adds a line to the record. */
void fake_request(const char *format, ...) printf_like(1, 2);

/* Returns the lines since the last call. Valid until the next call. */
const char *fake_requests(void);

/* ---- the clock (fake-clock.c) ---- */

/* Advances all clocks of the process, which stand still otherwise. Timers of the event loop fire
 * when the loop runs next. */
void fake_clock_pass(uint64_t usec);

/* Sets only the realtime clock, like an administrator. */
void fake_clock_set(int64_t by_usec);

/* The machine sleeps: all clocks but the awake time advance. */
void fake_clock_sleep(uint64_t usec);

/* Returns the minimum time until a timer of the event loop fires. */
uint64_t fake_clock_quiet_usec(void);

/* ---- shims (fake-sandbox.c) ---- */

/* The behaviour of a container that is run. */
typedef enum FakeRun {
        RUN_STARTS,
        RUN_HANGS,   /* its start never ends */
        RUN_FAILS,   /* fails before the runtime is called */
        RUN_REFUSED, /* refused by the runtime */
        RUN_EXITS,   /* it starts, and immediately exits with 'exit_code' */
} FakeRun;

typedef struct FakeShimBehaviour {
        const char *start_error;   /* no shim starts; NULL: shims start */
        const char *setup_error;   /* mounts cannot be made */
        bool hangs;                /* shims do not answer */
        bool setup_hangs;          /* mounts are not made */
        unsigned n_cleanup_errors; /* number of cleanups that fail */
        const char *plugin_error;  /* network plugins fail */
        bool has_old_shims;        /* shims of an agent that did not support attach */
        bool records_deletions; /* deletions of the remains of attempts are recorded as requests */
        bool keeps_execs;       /* the test answers commands; otherwise all succeed */
} FakeShimBehaviour;

extern FakeShimBehaviour fake_shims;

typedef struct FakeContainerBehaviour {
        FakeRun run;
        int exit_code;
        bool ignores_signal; /* only SIGKILL ends it */
} FakeContainerBehaviour;

/* Applies to containers with this name, from the next start on. */
FakeContainerBehaviour *fake_container(const char *name);

/* The running container with this name exits. */
void fake_container_exit(const char *name, int exit_code);

/* The hanging start of the container ends with 'type': SHIM_EVENT_STARTED or
 * SHIM_EVENT_START_FAILED. */
void fake_container_start_ends(const char *name, ShimEventType type);

/* If its start hangs, it succeeds. */
void fake_container_start_hanging(const char *name);

/* The oldest command that runs in the container ends. */
void fake_exec_ends(const char *name, const ShimEvent *result);

/* Returns the number of processes of containers with this name (NULL: of all containers). */
unsigned fake_count_processes(const char *name);

/* Returns how many containers have ever run twice at the same time: must be 0. */
unsigned fake_count_doubles(void);
unsigned fake_count_shims(void);

/* All shims die together with their containers; or their connections break and are restored. */
void fake_shims_die(void);
void fake_connections_break(void);

/* Shims that have not answered yet do so now. */
void fake_shims_answer(void);

/* Removes all shims without notification, like a reboot. */
void fake_shims_forget(void);

/* ---- children (fake-child.c) ---- */

typedef struct FakeChildBehaviour {
        const char *output; /* output of each child */
        int status;
        bool hangs;
} FakeChildBehaviour;

extern FakeChildBehaviour fake_children;

/* A child that ends from the event loop, after 'run' was called. */
Child *fake_child_new(sd_event *event, child_done_t done, void *userdata, void (*run)(void *work),
                      void *work, int status, const char *error);

/* ---- images (fake-image-store.c) ---- */

typedef enum FakeImageState {
        IMAGE_PRESENT,
        IMAGE_PULLING, /* until fake_pull_ends() */
        IMAGE_MISSING, /* ENOENT */
        IMAGE_INVALID, /* EINVAL */
} FakeImageState;

/* Applies to images with this name; initially all images are present. */
void fake_image_set(const char *name, FakeImageState state);

/* Pulls of images with this name end with 0 or -errno. */
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

/* Makes tasks that check paths hang. */
extern bool fake_disk_hangs;

/* ---- cgroups (fake-cgroup.c) ---- */

/* Values of cgroups are files below this directory. */
void fake_cgroups_init(const char *directory);

/* Writes of values to this file fail with -EBUSY. NULL: all writes succeed. */
extern const char *fake_cgroup_refused_file;

/* ---- systemd (fake-systemd-client.c) ---- */

/* PID 1 reports that the machine is shutting down. */
extern bool fake_systemd_is_stopping;

/* logind announces a shutdown, or its end. */
void fake_logind_announce(bool is_starting);
