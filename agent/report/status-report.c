/* SPDX-License-Identifier: Apache-2.0 */

/* The timer for the next request runs only while lines are pending. A report to a directory does
 * not drain the queue but shows its content: the latest lines stay, and each USB stick that appears
 * gets all of them. */

#include "agent/report/status-report.h"

#include "agent/model/source-index.h"
#include "agent/report/report-line.h"
#include "agent/report/report-store.h"
#include "agent/report/unready-logs.h"
#include "agent/source/fetch-settings.h"
#include "common/back-off.h"
#include "common/child.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/event-source.h"
#include "common/file.h"
#include "common/log.h"
#include "common/stick-watch.h"
#include "common/text.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sysexits.h>

#define GATHER_USEC         (1 * USEC_PER_SEC)
#define HELPER_TIMEOUT_USEC (180 * USEC_PER_SEC)
#define BACK_OFF_MAX_USEC   (3600 * USEC_PER_SEC)
#define REQUEST_BYTES_MAX   (256 * KIB)
#define FILE_BYTES_MAX      (4 * MIB) /* limit of the lines */

enum {
        ANSWER_BYTES_MAX = 1024,
        BACK_OFF_JITTER_PERCENT = 10,
        JITTER_STEPS = 1000,
        STATUS_SIZE = 1024
};

struct StatusReport {
        StatusReportConfig config;
        const ReportConfig *settings;
        ReportQueue *queue;
        ReportStore *store;
        sd_event_source *send_timer;
        const char *directory;   /* from a "file:" URL; NULL: a server's URL */
        StickWatch *stick_watch; /* watches that directory; otherwise NULL */
        bool is_watched;         /* while it does not exist */
        bool is_absent;          /* likewise; no report is tried until it appears */
        bool is_changed;         /* the report must be written there */
        Child *child;
        char *error;         /* why the last request failed; NULL: it succeeded */
        uint64_t since;      /* realtime; of the last transition */
        uint64_t succeeded;  /* realtime */
        uint64_t delay;      /* back-off delay */
        uint64_t not_before; /* boot time of the next request */
        uint64_t last_event; /* its number */
        char message[STATUS_SIZE];
};

/* ---- timers ---- */

static bool is_report_timer_armed(sd_event_source *timer) {
        int enabled = SD_EVENT_OFF;

        return sd_event_source_get_enabled(timer, &enabled) > 0 && enabled != SD_EVENT_OFF;
}

static void arm_report_timer(sd_event_source *timer, uint64_t usec) {
        int r;

        if (is_report_timer_armed(timer))
                return;
        r = event_timer_arm(timer, usec);
        if (r < 0)
                (void) log_error_errno(r, "Cannot set the report timer");
}

static bool is_report_due(const StatusReport *report) {
        if (report->child)
                return false;
        return report->directory ? report->is_changed && !report->is_absent
                                 : report_queue_length(report->queue) > 0;
}

/* Lines may be pending to be sent or written. */
static void wake_report(StatusReport *report) {
        uint64_t now = now_boottime_usec();
        uint64_t wait = report->not_before > now ? report->not_before - now : 0;

        if (is_report_due(report))
                arm_report_timer(report->send_timer, MAX(wait, GATHER_USEC));
        report_store_wake(report->store);
}

/* ---- the state ---- */

static void record_report_event(StatusReport *report) {
        cleanup_free char *message =
                text_format("report: %s", report->error       ? report->error
                                          : report->directory ? "it is written again"
                                                              : "the server accepts reports again");

        if (!message)
                return;
        report->config.on_event(
                &(PodEvent){ .kind = report->error ? POD_EVENT_WARNING : POD_EVENT_NORMAL,
                             .reason = report->error ? "ReportFailed" : "ReportSent",
                             .message = message },
                report->config.userdata);
}

/* NULL: there is no failure. Only a transition is recorded. */
static void set_report_error(StatusReport *report, const char *text) {
        bool was_failed = report->error != NULL, is_first = report->since == 0;

        (void) text_replace(&report->error, text);
        if (!is_first && was_failed == (text != NULL))
                return;
        report->since = now_realtime_usec();
        if (text)
                log_error("Cannot %s the report: %s; %s", report->directory ? "write" : "send",
                          text,
                          report->directory ? "the latest lines are kept"
                                            : "unsent lines stay queued");
        if (text || was_failed)
                record_report_event(report);
        report->config.on_status(report->config.userdata);
}

static void describe_report(StatusReport *report) {
        size_t n = report_queue_length(report->queue);
        uint64_t dropped = report_queue_dropped(report->queue);

        if (!report->directory)
                (void) snprintf(report->message, sizeof(report->message),
                                "%.800s%s%zu lines wait, %" PRIu64 " were dropped",
                                strna(report->error), report->error ? "; " : "", n, dropped);
        else
                (void) snprintf(report->message, sizeof(report->message), "%.800s%s%zu lines, %s",
                                strna(report->error), report->error ? "; " : "", n,
                                report->is_absent    ? "to be written when the directory is there"
                                : report->is_changed ? "to be written"
                                                     : "all written");
}

NodeSources status_report_add_to(StatusReport *report, NodeSources sources) {
        if (!report || sources.n == NODE_SOURCES_MAX)
                return sources;
        describe_report(report);
        sources.items[sources.n++] =
                (NodeSourceStatus){ .name = NODE_REPORT_NAME,
                                    .message = report->message,
                                    .has_failed = report->error != NULL,
                                    .n_waiting = report_queue_length(report->queue),
                                    .n_dropped = report_queue_dropped(report->queue),
                                    .since = report->since,
                                    .succeeded = report->succeeded };
        return sources;
}

/* ---- requests ---- */

static void on_report_asked(const ChildResult *result, void *userdata);

static void put_report_line(StatusReport *report, const char *name, const char *key,
                            const char *line) {
        if (report_queue_put(report->queue, name, key, line) > 0)
                report->is_changed = true;
}

/* A change of the Node causes no request, but is part of the next one. */
static void add_node_line(StatusReport *report) {
        cleanup_free char *json = report->config.print_node(report->config.userdata);
        cleanup_free char *line = json ? report_line_of_node(json) : NULL;

        if (line)
                put_report_line(report, report->config.node_name, REPORT_STATUS_KEY, line);
}

static int open_report_settings(StatusReport *report, const char *body) {
        const StatusReportConfig *config = &report->config;
        bool has_logs = report->directory && report->settings->log_lines.value > 0;
        cleanup_free char *directory = has_logs ? path_join(config->paths->log_dir, "pods") : NULL;
        cleanup_free char *logs = has_logs ? unready_logs_list(config->pods) : NULL;

        if (has_logs && (!directory || !logs))
                return -ENOMEM;
        return fetch_settings_of_report(
                config->config, &(ReportContent){ .node_name = config->node_name,
                                                  .body = body,
                                                  .n_dropped = report_queue_dropped(report->queue),
                                                  .log_directory = directory,
                                                  .logs = logs });
}

static int start_report_helper(StatusReport *report, const char *body, Error *reterr) {
        cleanup_free char *helper = strdup(report->config.paths->image_helper);
        cleanup_close int settings = open_report_settings(report, body);

        if (settings < 0)
                return settings;
        if (!helper)
                return -ENOMEM;
        return child_spawn(report->config.event,
                           &(ChildSpec){ .argv = (char *[]){ helper, (char[]){ "report" }, NULL },
                                         .output_max = ANSWER_BYTES_MAX,
                                         .timeout_usec = HELPER_TIMEOUT_USEC,
                                         .input_fd = settings },
                           on_report_asked, report, &report->child, reterr);
}

static void back_off_report(StatusReport *report) {
        const BackOffLimits limits = { report->settings->interval_usec,
                                       MAX(BACK_OFF_MAX_USEC, report->settings->interval_usec) };

        report->delay = back_off_next_delay(report->delay, &limits);
        report->not_before =
                now_boottime_usec() +
                back_off_add_jitter(report->delay, BACK_OFF_JITTER_PERCENT, back_off_random());
}

static void end_report_request(StatusReport *report, int r, const Error *error) {
        if (r >= 0) {
                report->delay = 0;
                report->succeeded = now_realtime_usec();
        } else
                back_off_report(report);
        if (report->directory)
                report->is_changed |= r < 0;
        else if (r >= 0) {
                report_queue_sent(report->queue);
                report_store_save(report->store);
        } else
                report_queue_not_sent(report->queue);
        set_report_error(report, r < 0 ? error_message(error, r) : NULL);
        wake_report(report);
}

/* The directory may have appeared before it was watched, so it is tried once more. */
static void notice_missing_directory(StatusReport *report) {
        bool is_watched = report->is_watched;

        report->is_watched = stick_watch_set_absent(report->stick_watch, true) >= 0;
        report->is_absent = is_watched && report->is_watched;
        report->is_changed = true;
        if (!is_watched)
                report->not_before = 0;
        set_report_error(report, NULL);
        wake_report(report);
}

static void on_report_asked(const ChildResult *result, void *userdata) {
        StatusReport *report = userdata;
        cleanup_error Error error = ERROR_NULL;
        int r = child_explain(result, "mainstay-image", &error);

        report->child = NULL;
        if (report->directory && result->code == CLD_EXITED && result->status == EX_NOINPUT) {
                notice_missing_directory(report);
                return;
        }
        if (report->directory && r >= 0) {
                report->is_watched = false;
                (void) stick_watch_set_absent(report->stick_watch, false);
                log_info("The report was written to %s", report->directory);
        }
        end_report_request(report, r, &error);
}

static int put_status_again(const Pod *pod, const PodStatus *status, void *userdata);

/* A report to a directory contains the status of each pod, even if its line was dropped from a full
 * queue. */
static char *compose_report(StatusReport *report) {
        add_node_line(report);
        if (!report->directory)
                return report_queue_take(report->queue, REQUEST_BYTES_MAX);
        (void) pod_manager_for_each_pod(report->config.pods, put_status_again, report);
        report->is_changed = false;
        return report_queue_print(report->queue, FILE_BYTES_MAX);
}

static void send_next_report(StatusReport *report) {
        const ReportConfig *settings = report->settings;
        cleanup_error Error error = ERROR_NULL;
        cleanup_free char *body = compose_report(report);
        int r;

        report->not_before =
                now_boottime_usec() + settings->interval_usec +
                settings->jitter_usec / JITTER_STEPS * (back_off_random() % (JITTER_STEPS + 1));
        r = body ? start_report_helper(report, body, &error) : -ENOMEM;
        if (r < 0)
                end_report_request(report, r, &error);
}

static void on_report_directory_changed(void *userdata) {
        StatusReport *report = userdata;

        report->is_absent = false;
        report->is_changed = true;
        report->not_before = report->delay = 0;
        (void) sd_event_source_set_enabled(report->send_timer, SD_EVENT_OFF);
        wake_report(report);
}

static int on_report_send_timer(sd_event_source *timer, uint64_t usec, void *userdata) {
        StatusReport *report = userdata;

        if (!pod_manager_is_synced(report->config.pods))
                wake_report(report);
        else if (is_report_due(report))
                send_next_report(report);
        return 0;
}

/* ---- reports ---- */

static char *print_pod_line(const StatusReport *report, const Pod *pod) {
        const PodStatus *status = pod_manager_pod_status(report->config.pods, pod->metadata.uid);
        cleanup_free char *json =
                status ? pod_manager_print_pod(report->config.pods, pod, status) : NULL;

        return json ? report_line_of_pod(json, report->config.node_name) : NULL;
}

static int put_status_again(const Pod *pod, const PodStatus *status, void *userdata) {
        StatusReport *report = userdata;
        cleanup_free char *line = print_pod_line(report, pod);

        if (line)
                put_report_line(report, pod->metadata.uid, REPORT_STATUS_KEY, line);
        return 0;
}

void status_report_pod(StatusReport *report, const Pod *pod, bool is_gone) {
        cleanup_free char *line = NULL;

        if (!report)
                return;
        line = is_gone ? report_line_of_gone_pod(pod, report->config.node_name, now_realtime_usec())
                       : print_pod_line(report, pod);
        if (line)
                put_report_line(report, pod->metadata.uid, REPORT_STATUS_KEY, line);
        if (is_gone)
                report_queue_forget(report->queue, pod->metadata.uid);
        wake_report(report);
}

/* 1: there may be more events. */
static int add_next_event(StatusReport *report) {
        cleanup_free char *json = NULL, *key = NULL, *uid = NULL;
        int r = event_store_next(report->config.events, report->last_event, &report->last_event,
                                 &json);

        if (r <= 0)
                return r;
        if (report_event_names(json, &key, &uid) >= 0)
                put_report_line(report, uid, key, json);
        return 1;
}

void status_report_events(StatusReport *report) {
        if (!report)
                return;
        while (add_next_event(report) > 0)
                ;
        wake_report(report);
}

/* ---- start and end ---- */

static int add_report_timer(StatusReport *report) {
        int r = sd_event_add_time_relative(report->config.event, &report->send_timer,
                                           CLOCK_BOOTTIME, 0, USEC_PER_SEC, on_report_send_timer,
                                           report);

        return r < 0 ? r : sd_event_source_set_enabled(report->send_timer, SD_EVENT_OFF);
}

static int load_report_queue(StatusReport *report) {
        cleanup_free char *directory = path_join(report->config.paths->state_dir, "report");

        report->queue = report_queue_new(report->settings->queue_bytes);
        if (!directory || !report->queue)
                return -ENOMEM;
        return report_store_new(report->config.event, directory, report->queue, &report->store);
}

int status_report_new(const StatusReportConfig *config, StatusReport **ret) {
        cleanup_with(status_report_freep) StatusReport *report = NULL;
        int r;

        *ret = NULL;
        if (!config->config->mainstay.report)
                return 0;
        report = calloc(1, sizeof(*report));
        if (!report)
                return -ENOMEM;
        report->config = *config;
        report->settings = config->config->mainstay.report;
        r = load_report_queue(report);
        if (r < 0)
                return r;
        r = add_report_timer(report);
        if (r < 0)
                return r;
        report->directory = source_stick_path(report->settings->url);
        if (report->directory)
                r = stick_watch_new(config->event, report->directory, on_report_directory_changed,
                                    report, &report->stick_watch);
        if (r < 0)
                return r;
        report->is_changed = true;
        wake_report(report);
        *ret = TAKE_PTR(report);
        return 0;
}

StatusReport *status_report_free(StatusReport *report) {
        if (!report)
                return NULL;
        child_free(report->child);
        stick_watch_free(report->stick_watch);
        report_store_free(report->store);
        report_queue_free(report->queue);
        sd_event_source_disable_unref(report->send_timer);
        free(report->error);
        free(report);
        return NULL;
}
