/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sandbox/shutdown-inhibitor.h"

#include "agent/sandbox/systemd-client.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/error.h"
#include "common/file.h"
#include "common/log.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdint.h>
#include <sys/stat.h>
#include <systemd/sd-bus.h>

/* Raises logind's InhibitDelayMaxSec, for graceful node shutdown. By default logind delays a
 * shutdown for at most five seconds. Like the kubelet, the agent raises that limit only if its
 * configuration needs more. The drop-in is in /run, so that the administrator's setting is in force
 * again after a reboot. */

/* Writes the drop-in and makes logind read it; it takes effect after some milliseconds. 0 or
 * -errno. */
static int inhibit_delay_max_raise(SystemdClient *systemd, const char *conf_dir, uint64_t usec,
                                   Error *reterr) {
        cleanup_close int dir_fd = -EBADF;
        char text[96];
        int n, r;

        if (mkdir(conf_dir, 0755) < 0 && errno != EEXIST)
                return error_setf(reterr, errno, "cannot create %s: %s", conf_dir, strerror(errno));
        dir_fd = open(conf_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (dir_fd < 0)
                return error_setf(reterr, errno, "cannot open %s: %s", conf_dir, strerror(errno));
        n = snprintf(text, sizeof(text),
                     "# Written by mainstayd, until the next boot.\n"
                     "[Login]\nInhibitDelayMaxSec=%" PRIu64 "\n",
                     (usec + USEC_PER_SEC - 1) / USEC_PER_SEC);
        r = write_file_atomic_at(dir_fd, "50-mainstay.conf", text, (size_t) n, 0644);
        if (r < 0)
                return error_prefixf(reterr, r, "cannot write %s/50-mainstay.conf", conf_dir);
        return systemd_client_kill_unit(systemd, "systemd-logind.service", SIGHUP, reterr);
}

/* When the bus connection ends (upgrade, crash), the agent reconnects to the bus and to logind. If
 * the bus never existed, it does not try again, so that a machine without a bus never wakes up for
 * it. The lock is a descriptor: it outlives the bus and a restart of logind. */

#define NO_TIME_LIMIT        UINT64_MAX
#define RETRY_USEC           (5 * USEC_PER_SEC)
#define RETRY_MAX_USEC       (300 * USEC_PER_SEC)
#define DELAY_MAX_CHECK_USEC (500 * USEC_PER_MSEC)

enum {
        DELAY_MAX_CHECKS_MAX = 10 /* number of reads of InhibitDelayMaxSec after it was raised */
};

static const char logind_destination[] = "org.freedesktop.login1";
static const char logind_path[] = "/org/freedesktop/login1";
static const char logind_interface[] = "org.freedesktop.login1.Manager";

struct ShutdownInhibitor {
        ShutdownInhibitorConfig config;
        sd_bus *bus;
        int lock_fd;
        sd_event_source *retry_timer;
        uint64_t retry_delay_usec;
        sd_event_source *delay_max_check_timer;
        unsigned n_delay_max_checks; /* number of checks since it was raised; 0: it was not raised
                                      */
        bool has_logged_missing_lock, has_warned_of_delay_max;
        bool is_shutting_down;
};

static int connect_to_logind_bus(ShutdownInhibitor *inhibitor);

static void log_missing_inhibitor_lock(ShutdownInhibitor *inhibitor, const char *why) {
        if (!inhibitor->has_logged_missing_lock)
                log_info("Cannot delay shutdown until pods have terminated: %s; pods are stopped "
                         "with the service",
                         why);
        inhibitor->has_logged_missing_lock = true;
}

static void disconnect_from_logind_bus(ShutdownInhibitor *inhibitor) {
        if (inhibitor->bus)
                (void) sd_bus_detach_event(inhibitor->bus);
        inhibitor->bus = sd_bus_close_unref(inhibitor->bus);
}

/* ---- the bus connection has ended ---- */

static void schedule_logind_bus_retry(ShutdownInhibitor *inhibitor);

static int on_logind_bus_retry_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        ShutdownInhibitor *inhibitor = userdata;

        inhibitor->retry_timer = sd_event_source_disable_unref(inhibitor->retry_timer);
        disconnect_from_logind_bus(inhibitor);
        if (connect_to_logind_bus(inhibitor) < 0)
                schedule_logind_bus_retry(inhibitor);
        return 0;
}

static void schedule_logind_bus_retry(ShutdownInhibitor *inhibitor) {
        uint64_t delay = MAX(inhibitor->retry_delay_usec, RETRY_USEC);
        int r;

        if (inhibitor->retry_timer)
                return;
        inhibitor->retry_delay_usec = MIN(2 * delay, RETRY_MAX_USEC);
        r = sd_event_add_time_relative(inhibitor->config.event, &inhibitor->retry_timer,
                                       CLOCK_BOOTTIME, delay, 0, on_logind_bus_retry_timer,
                                       inhibitor);
        if (r < 0)
                (void) log_warning_errno(r, "Cannot schedule the reconnection to the system bus");
}

static int on_logind_bus_disconnected(sd_bus_message *message, void *userdata,
                                      sd_bus_error *ret_error) {
        schedule_logind_bus_retry(userdata);
        return 0;
}

/* ---- the inhibitor lock ---- */

/* After these errors, logind will neither appear later nor reply differently. After other errors,
 * it may have been starting or exiting. */
static bool is_final_error(const sd_bus_error *error) {
        return sd_bus_error_has_names(error, SD_BUS_ERROR_SERVICE_UNKNOWN,
                                      SD_BUS_ERROR_ACCESS_DENIED, SD_BUS_ERROR_UNKNOWN_METHOD,
                                      SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED);
}

static int on_inhibit_reply(sd_bus_message *reply, void *userdata, sd_bus_error *ret_error) {
        ShutdownInhibitor *inhibitor = userdata;
        const sd_bus_error *error = sd_bus_message_get_error(reply);
        int fd;

        if (error) {
                log_missing_inhibitor_lock(inhibitor, strna(error->message));
                if (!is_final_error(error))
                        schedule_logind_bus_retry(inhibitor);
                return 0;
        }
        if (sd_bus_message_read(reply, "h", &fd) < 0)
                return 0;
        close_fd(inhibitor->lock_fd);
        inhibitor->lock_fd =
                fcntl(fd, F_DUPFD_CLOEXEC, 3); /* the message owns its own descriptor */
        if (inhibitor->lock_fd < 0)
                schedule_logind_bus_retry(inhibitor);
        return 0;
}

static int request_inhibitor_lock(ShutdownInhibitor *inhibitor) {
        return sd_bus_call_method_async(inhibitor->bus, NULL, logind_destination, logind_path,
                                        logind_interface, "Inhibit", on_inhibit_reply, inhibitor,
                                        "ssss", "shutdown", "Mainstay", "Pods terminate in order",
                                        "delay");
}

static void set_inhibitor_shutting_down(ShutdownInhibitor *inhibitor, bool is_shutting_down) {
        if (inhibitor->is_shutting_down == is_shutting_down)
                return;
        inhibitor->is_shutting_down = is_shutting_down;
        if (!is_shutting_down && inhibitor->lock_fd < 0)
                (void) request_inhibitor_lock(inhibitor);
        inhibitor->config.on_shutdown(is_shutting_down, inhibitor->config.userdata);
}

static int on_prepare_for_shutdown(sd_bus_message *message, void *userdata,
                                   sd_bus_error *ret_error) {
        int is_starting;

        if (sd_bus_message_read(message, "b", &is_starting) >= 0)
                set_inhibitor_shutting_down(userdata, is_starting != 0);
        return 0;
}

/* Reads the state that was missed while the agent was not connected. */
static int on_preparing_for_shutdown_reply(sd_bus_message *reply, void *userdata,
                                           sd_bus_error *ret_error) {
        ShutdownInhibitor *inhibitor = userdata;
        int is_starting;

        if (sd_bus_message_get_error(reply) ||
            sd_bus_message_read(reply, "v", "b", &is_starting) < 0)
                return 0;
        if (inhibitor->lock_fd >= 0 || is_starting)
                inhibitor->retry_delay_usec = 0;
        set_inhibitor_shutting_down(inhibitor, is_starting != 0);
        return 0;
}

/* ---- how long a shutdown is delayed ---- */

static int query_inhibit_delay_max(ShutdownInhibitor *inhibitor);

static int on_delay_max_check_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        ShutdownInhibitor *inhibitor = userdata;

        inhibitor->delay_max_check_timer =
                sd_event_source_disable_unref(inhibitor->delay_max_check_timer);
        if (inhibitor->bus)
                (void) query_inhibit_delay_max(inhibitor);
        return 0;
}

static int raise_and_recheck_delay_max(ShutdownInhibitor *inhibitor) {
        const ShutdownInhibitorConfig *config = &inhibitor->config;
        cleanup_error Error error = ERROR_NULL;
        int r = 0;

        if (inhibitor->n_delay_max_checks == 0)
                r = inhibit_delay_max_raise(config->systemd, config->logind_conf_dir,
                                            config->needed_usec, &error);
        if (r < 0) {
                log_warning_message(&error, r);
                return r;
        }
        inhibitor->n_delay_max_checks++;
        /* After a new connection to the bus, the timer of the previous one may still be armed. */
        inhibitor->delay_max_check_timer =
                sd_event_source_disable_unref(inhibitor->delay_max_check_timer);
        return sd_event_add_time_relative(config->event, &inhibitor->delay_max_check_timer,
                                          CLOCK_BOOTTIME, DELAY_MAX_CHECK_USEC, 0,
                                          on_delay_max_check_timer, inhibitor);
}

/* If the limit stays too low, the remaining pods are stopped with the service. */
static int on_inhibit_delay_max_reply(sd_bus_message *reply, void *userdata,
                                      sd_bus_error *ret_error) {
        ShutdownInhibitor *inhibitor = userdata;
        uint64_t usec;

        if (sd_bus_message_get_error(reply) || sd_bus_message_read(reply, "v", "t", &usec) < 0 ||
            usec >= inhibitor->config.needed_usec)
                return 0;
        if (inhibitor->config.systemd && inhibitor->n_delay_max_checks < DELAY_MAX_CHECKS_MAX &&
            raise_and_recheck_delay_max(inhibitor) >= 0)
                return 0;
        if (inhibitor->has_warned_of_delay_max)
                return 0;
        inhibitor->has_warned_of_delay_max = true;
        log_warning("logind delays shutdown by at most %us, less than the %us that pods may take "
                    "to terminate; see "
                    "InhibitDelayMaxSec in logind.conf(5)",
                    (unsigned) (usec / USEC_PER_SEC),
                    (unsigned) (inhibitor->config.needed_usec / USEC_PER_SEC));
        return 0;
}

static int get_logind_property(ShutdownInhibitor *inhibitor, const char *property,
                               sd_bus_message_handler_t answer) {
        return sd_bus_call_method_async(inhibitor->bus, NULL, logind_destination, logind_path,
                                        "org.freedesktop.DBus.Properties", "Get", answer, inhibitor,
                                        "ss", logind_interface, property);
}

static int query_inhibit_delay_max(ShutdownInhibitor *inhibitor) {
        return get_logind_property(inhibitor, "InhibitDelayMaxUSec", on_inhibit_delay_max_reply);
}

/* ---- new and free ---- */

static int match_logind_signals(ShutdownInhibitor *inhibitor) {
        static const char local[] = "org.freedesktop.DBus.Local";
        int r = sd_bus_match_signal_async(inhibitor->bus, NULL, local,
                                          "/org/freedesktop/DBus/Local", local, "Disconnected",
                                          on_logind_bus_disconnected, NULL, inhibitor);

        return r < 0 ? r
                     : sd_bus_match_signal_async(inhibitor->bus, NULL, logind_destination,
                                                 logind_path, logind_interface,
                                                 "PrepareForShutdown", on_prepare_for_shutdown,
                                                 NULL, inhibitor);
}

static int open_logind_bus(ShutdownInhibitor *inhibitor) {
        int r = sd_bus_open_system(&inhibitor->bus);

        if (r < 0)
                return r;
        /* This call may activate logind while the machine is busy. */
        r = sd_bus_set_method_call_timeout(inhibitor->bus, NO_TIME_LIMIT);
        if (r < 0)
                return r;
        r = sd_bus_attach_event(inhibitor->bus, inhibitor->config.event, SD_EVENT_PRIORITY_NORMAL);
        if (r < 0)
                return r;
        r = match_logind_signals(inhibitor);
        if (r < 0)
                return r;
        if (inhibitor->lock_fd < 0 && !inhibitor->is_shutting_down)
                r = request_inhibitor_lock(inhibitor);
        if (r < 0)
                return r;
        r = get_logind_property(inhibitor, "PreparingForShutdown", on_preparing_for_shutdown_reply);
        if (r < 0)
                return r;
        return query_inhibit_delay_max(inhibitor);
}

static int connect_to_logind_bus(ShutdownInhibitor *inhibitor) {
        int r = open_logind_bus(inhibitor);

        if (r < 0)
                disconnect_from_logind_bus(inhibitor);
        return r;
}

int shutdown_inhibitor_new(const ShutdownInhibitorConfig *config, ShutdownInhibitor **ret) {
        ShutdownInhibitor *inhibitor = calloc(1, sizeof(*inhibitor));
        int r;

        if (!inhibitor)
                return -ENOMEM;
        inhibitor->config = *config;
        inhibitor->lock_fd = -EBADF;
        r = connect_to_logind_bus(inhibitor);
        if (r < 0)
                log_missing_inhibitor_lock(inhibitor, strerror(-r));
        *ret = inhibitor;
        return 0;
}

void shutdown_inhibitor_release(ShutdownInhibitor *inhibitor) {
        inhibitor->lock_fd = close_fd(inhibitor->lock_fd);
}

ShutdownInhibitor *shutdown_inhibitor_free(ShutdownInhibitor *inhibitor) {
        if (!inhibitor)
                return NULL;
        disconnect_from_logind_bus(inhibitor);
        sd_event_source_disable_unref(inhibitor->retry_timer);
        sd_event_source_disable_unref(inhibitor->delay_max_check_timer);
        close_fd(inhibitor->lock_fd);
        free(inhibitor);
        return NULL;
}
