/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sandbox/inhibitor.h"

#include "agent/sandbox/delay-max.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/log.h"

#include <fcntl.h>
#include <systemd/sd-bus.h>

/* A bus that has been there and goes away (it is upgraded, it crashed) is looked for again, as is
 * a logind; one that was never there is not, so that a machine without them never wakes for them.
 * The lock is a descriptor: it outlives the bus, and a logind that is started anew. */

#define NO_TIME_LIMIT   UINT64_MAX
#define RETRY_USEC      (5 * USEC_PER_SEC)
#define RETRY_MAX_USEC  (300 * USEC_PER_SEC)
#define LOOK_AGAIN_USEC (500 * USEC_PER_MSEC)

enum {
        LOOKS_MAX = 10 /* at the maximum, after it was raised */
};

static const char destination[] = "org.freedesktop.login1";
static const char path[] = "/org/freedesktop/login1";
static const char interface[] = "org.freedesktop.login1.Manager";

struct Inhibitor {
        InhibitorConfig config;
        sd_bus *bus;
        int lock_fd;
        sd_event_source *retry_timer;
        uint64_t retry_delay_usec;
        sd_event_source *look_timer;
        unsigned looks; /* at the maximum that was raised; 0: it was not */
        bool has_complained, has_warned;
        bool is_shutting_down;
};

static int connect_to_bus(Inhibitor *inhibitor);

static void complain(Inhibitor *inhibitor, const char *why) {
        if (!inhibitor->has_complained)
                log_info("A shutdown is not held back for pods, they are stopped with the service: "
                         "%s",
                         why);
        inhibitor->has_complained = true;
}

static void disconnect(Inhibitor *inhibitor) {
        if (inhibitor->bus)
                (void) sd_bus_detach_event(inhibitor->bus);
        inhibitor->bus = sd_bus_close_unref(inhibitor->bus);
}

/* ---- the bus has gone ---- */

static void try_later(Inhibitor *inhibitor);

static int on_retry(sd_event_source *source, uint64_t usec, void *userdata) {
        Inhibitor *inhibitor = userdata;

        inhibitor->retry_timer = sd_event_source_disable_unref(inhibitor->retry_timer);
        disconnect(inhibitor);
        if (connect_to_bus(inhibitor) < 0)
                try_later(inhibitor);
        return 0;
}

static void try_later(Inhibitor *inhibitor) {
        uint64_t delay = MAX(inhibitor->retry_delay_usec, RETRY_USEC);
        int r;

        if (inhibitor->retry_timer)
                return;
        inhibitor->retry_delay_usec = MIN(2 * delay, RETRY_MAX_USEC);
        r = sd_event_add_time_relative(inhibitor->config.event, &inhibitor->retry_timer,
                                       CLOCK_BOOTTIME, delay, 0, on_retry, inhibitor);
        if (r < 0)
                (void) log_warning_errno(r, "Cannot look for the system bus again");
}

static int on_disconnected(sd_bus_message *message, void *userdata, sd_bus_error *ret_error) {
        try_later(userdata);
        return 0;
}

/* ---- the lock ---- */

static int on_inhibited(sd_bus_message *reply, void *userdata, sd_bus_error *ret_error) {
        Inhibitor *inhibitor = userdata;
        const sd_bus_error *error = sd_bus_message_get_error(reply);
        int fd;

        if (error) {
                complain(inhibitor, strna(error->message));
                return 0;
        }
        if (sd_bus_message_read(reply, "h", &fd) < 0)
                return 0;
        close_fd(inhibitor->lock_fd);
        inhibitor->lock_fd = fcntl(fd, F_DUPFD_CLOEXEC, 3); /* the message owns its own */
        return 0;
}

static int take_lock(Inhibitor *inhibitor) {
        return sd_bus_call_method_async(inhibitor->bus, NULL, destination, path, interface,
                                        "Inhibit", on_inhibited, inhibitor, "ssss", "shutdown",
                                        "Mainstay", "Pods are stopped in their order", "delay");
}

static void set_shutting_down(Inhibitor *inhibitor, bool is_shutting_down) {
        if (inhibitor->is_shutting_down == is_shutting_down)
                return;
        inhibitor->is_shutting_down = is_shutting_down;
        if (!is_shutting_down && inhibitor->lock_fd < 0)
                (void) take_lock(inhibitor);
        inhibitor->config.on_shutdown(is_shutting_down, inhibitor->config.userdata);
}

static int on_prepare(sd_bus_message *message, void *userdata, sd_bus_error *ret_error) {
        int begins;

        if (sd_bus_message_read(message, "b", &begins) >= 0)
                set_shutting_down(userdata, begins != 0);
        return 0;
}

/* Whatever was told while we did not hear. */
static int on_preparing(sd_bus_message *reply, void *userdata, sd_bus_error *ret_error) {
        Inhibitor *inhibitor = userdata;
        int begins;

        if (sd_bus_message_get_error(reply) || sd_bus_message_read(reply, "v", "b", &begins) < 0)
                return 0;
        inhibitor->retry_delay_usec = 0;
        set_shutting_down(inhibitor, begins != 0);
        return 0;
}

/* ---- how long it is waited for ---- */

static int ask_maximum(Inhibitor *inhibitor);

static int on_look_again(sd_event_source *source, uint64_t usec, void *userdata) {
        Inhibitor *inhibitor = userdata;

        inhibitor->look_timer = sd_event_source_disable_unref(inhibitor->look_timer);
        if (inhibitor->bus)
                (void) ask_maximum(inhibitor);
        return 0;
}

static int raise_maximum(Inhibitor *inhibitor) {
        const InhibitorConfig *config = &inhibitor->config;
        cleanup_error Error error = ERROR_NULL;
        int r = 0;

        if (inhibitor->looks == 0)
                r = delay_max_raise(config->units, config->logind_conf_dir, config->needed_usec,
                                    &error);
        if (r < 0) {
                log_warning("%s", error_message(&error, r));
                return r;
        }
        inhibitor->looks++;
        return sd_event_add_time_relative(config->event, &inhibitor->look_timer, CLOCK_BOOTTIME,
                                          LOOK_AGAIN_USEC, 0, on_look_again, inhibitor);
}

/* Where it stays as it is, what a shutdown does not wait for is done when the service is stopped.
 */
static int on_maximum(sd_bus_message *reply, void *userdata, sd_bus_error *ret_error) {
        Inhibitor *inhibitor = userdata;
        uint64_t usec;

        if (sd_bus_message_get_error(reply) || sd_bus_message_read(reply, "v", "t", &usec) < 0 ||
            usec >= inhibitor->config.needed_usec)
                return 0;
        if (inhibitor->config.units && inhibitor->looks < LOOKS_MAX &&
            raise_maximum(inhibitor) >= 0)
                return 0;
        if (inhibitor->has_warned)
                return 0;
        inhibitor->has_warned = true;
        log_warning("A shutdown waits for pods for %us of the %us that they may take: see "
                    "InhibitDelayMaxSec in logind.conf(5)",
                    (unsigned) (usec / USEC_PER_SEC),
                    (unsigned) (inhibitor->config.needed_usec / USEC_PER_SEC));
        return 0;
}

static int ask_for(Inhibitor *inhibitor, const char *property, sd_bus_message_handler_t answer) {
        return sd_bus_call_method_async(inhibitor->bus, NULL, destination, path,
                                        "org.freedesktop.DBus.Properties", "Get", answer, inhibitor,
                                        "ss", interface, property);
}

static int ask_maximum(Inhibitor *inhibitor) {
        return ask_for(inhibitor, "InhibitDelayMaxUSec", on_maximum);
}

/* ---- building ---- */

static int listen_to_bus(Inhibitor *inhibitor) {
        static const char local[] = "org.freedesktop.DBus.Local";
        int r = sd_bus_match_signal_async(inhibitor->bus, NULL, local,
                                          "/org/freedesktop/DBus/Local", local, "Disconnected",
                                          on_disconnected, NULL, inhibitor);

        return r < 0 ? r
                     : sd_bus_match_signal_async(inhibitor->bus, NULL, destination, path, interface,
                                                 "PrepareForShutdown", on_prepare, NULL, inhibitor);
}

static int connect_to_bus(Inhibitor *inhibitor) {
        int r = sd_bus_open_system(&inhibitor->bus);

        if (r >= 0) /* logind may be started for us, and that when the machine is busiest */
                r = sd_bus_set_method_call_timeout(inhibitor->bus, NO_TIME_LIMIT);
        if (r >= 0)
                r = sd_bus_attach_event(inhibitor->bus, inhibitor->config.event,
                                        SD_EVENT_PRIORITY_NORMAL);
        if (r >= 0)
                r = listen_to_bus(inhibitor);
        if (r >= 0 && inhibitor->lock_fd < 0 && !inhibitor->is_shutting_down)
                r = take_lock(inhibitor);
        if (r >= 0)
                r = ask_for(inhibitor, "PreparingForShutdown", on_preparing);
        if (r >= 0)
                r = ask_maximum(inhibitor);
        if (r < 0)
                disconnect(inhibitor);
        return r;
}

int inhibitor_new(const InhibitorConfig *config, Inhibitor **ret) {
        Inhibitor *inhibitor = calloc(1, sizeof(*inhibitor));
        int r;

        if (!inhibitor)
                return -ENOMEM;
        inhibitor->config = *config;
        inhibitor->lock_fd = -EBADF;
        r = connect_to_bus(inhibitor);
        if (r < 0)
                complain(inhibitor, strerror(-r));
        *ret = inhibitor;
        return 0;
}

void inhibitor_release(Inhibitor *inhibitor) {
        inhibitor->lock_fd = close_fd(inhibitor->lock_fd);
}

Inhibitor *inhibitor_free(Inhibitor *inhibitor) {
        if (!inhibitor)
                return NULL;
        disconnect(inhibitor);
        sd_event_source_disable_unref(inhibitor->retry_timer);
        sd_event_source_disable_unref(inhibitor->look_timer);
        close_fd(inhibitor->lock_fd);
        free(inhibitor);
        return NULL;
}
