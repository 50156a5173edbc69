/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shim/attempt.h"

#include "common/cleanup.h"
#include "common/clock.h"

enum {
        ID_MAX = 128,
};

/* The ID becomes a file name and an argument of the runtime. */
static bool id_is_valid(const char *id) {
        static const char safe[] =
                "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
        size_t length = strlen(id);

        return length > 0 && length <= ID_MAX && strspn(id, safe) == length && id[0] != '-' &&
               id[0] != '.';
}

static void attempt_free(Attempt *attempt) {
        free(attempt->id);
        free(attempt->name);
        free(attempt->note);
        free(attempt->message);
        free(attempt->bundle);
        free(attempt->events_file);
        container_output_free(attempt->output);
        free(attempt);
}

static void unlink_and_free(AttemptList *list, Attempt *attempt) {
        for (Attempt **link = &list->first; *link; link = &(*link)->next)
                if (*link == attempt) {
                        *link = attempt->next;
                        attempt_free(attempt);
                        return;
                }
}

/* Only the record is left. */
static bool is_past_attempt(const Attempt *attempt) {
        return !attempt->deleting && (attempt->deleted || attempt->state == ATTEMPT_FAILED);
}

static size_t count_present_attempts(const AttemptList *list) {
        size_t n = 0;

        for (const Attempt *attempt = list->first; attempt; attempt = attempt->next)
                n += !is_past_attempt(attempt);
        return n;
}

static void append_attempt(AttemptList *list, Attempt *attempt) {
        Attempt **end = &list->first;

        while (*end)
                end = &(*end)->next;
        *end = attempt;
}

/* The number of past attempts of that container name, and the oldest one. */
static size_t count_past_attempts(const AttemptList *list, const char *name, Attempt **ret_oldest) {
        size_t n = 0;

        for (Attempt *attempt = list->first; attempt; attempt = attempt->next)
                if (is_past_attempt(attempt) && streq(attempt->name, name) && n++ == 0)
                        *ret_oldest = attempt;
        return n;
}

static void forget_old_attempts(AttemptList *list, const char *name) {
        Attempt *oldest;

        while (count_past_attempts(list, name, &oldest) > ATTEMPTS_REMEMBERED)
                unlink_and_free(list, oldest);
}

int attempt_new(AttemptList *list, const ShimRequest *request, Attempt **ret) {
        Attempt *attempt, *known = attempt_find(list, request->id);

        if (!id_is_valid(request->id))
                return -EINVAL;
        if (known && (known->state != ATTEMPT_FAILED || known->deleting))
                return -EEXIST;
        if (count_present_attempts(list) >= ATTEMPTS_MAX)
                return -ENOBUFS;
        attempt = calloc(1, sizeof(*attempt));
        if (!attempt)
                return -ENOMEM;
        attempt->state = ATTEMPT_STARTING;
        attempt->number = request->attempt;
        attempt->signal_at = USEC_INFINITY;
        attempt->kill_at = USEC_INFINITY;
        attempt->id = strdup(request->id);
        attempt->name = strdup(request->name);
        attempt->note = strndup(strna(request->note), SHIM_PROTOCOL_NOTE_MAX);
        attempt->bundle = strdup(request->bundle);
        attempt->events_file = strdup(strna(request->events_file));
        if (!attempt->id || !attempt->name || !attempt->note || !attempt->bundle ||
            !attempt->events_file) {
                attempt_free(attempt);
                return -ENOMEM;
        }
        if (known)
                unlink_and_free(list, known);
        forget_old_attempts(list, attempt->name);
        append_attempt(list, attempt);
        *ret = attempt;
        return 0;
}

Attempt *attempt_find(const AttemptList *list, const char *id) {
        for (Attempt *attempt = list->first; attempt; attempt = attempt->next)
                if (streq(attempt->id, id))
                        return attempt;
        return NULL;
}

Attempt *attempt_find_output(const AttemptList *list, unsigned output_id) {
        for (Attempt *attempt = list->first; attempt; attempt = attempt->next)
                if (attempt->output && container_output_id(attempt->output) == output_id)
                        return attempt;
        return NULL;
}

Attempt *attempt_find_pid(const AttemptList *list, pid_t pid) {
        for (Attempt *attempt = list->first; attempt; attempt = attempt->next)
                if (attempt->state == ATTEMPT_RUNNING && attempt->pid == pid)
                        return attempt;
        return NULL;
}

void attempt_set_checkpoint(Attempt *attempt, const char *note) {
        char *copy = strndup(strna(note), SHIM_PROTOCOL_NOTE_MAX);

        if (!copy)
                return;
        free(attempt->note);
        attempt->note = copy;
}

void attempt_set_deleted(Attempt *attempt) {
        attempt->deleting = false;
        attempt->deleted = true;
        attempt->output = container_output_free(attempt->output);
        free(TAKE_PTR(attempt->bundle));
        free(TAKE_PTR(attempt->events_file));
}

ShimEvent attempt_event(const Attempt *attempt, ShimEventType type) {
        return (ShimEvent){
                .type = type,
                .id = attempt->id,
                .name = attempt->name,
                .note = attempt->note,
                .message = attempt->message,
                .attempt = attempt->number,
                .pid = attempt->pid,
                .exit_code = attempt->exit_code,
                .signal = attempt->signal,
                .oom_killed = attempt->oom_killed,
                .runtime_failed = attempt->runtime_failed,
                .deleted = attempt->deleted,
                .started_at = attempt->started_at,
                .finished_at = attempt->finished_at,
        };
}

ShimEvent attempt_last_event(const Attempt *attempt) {
        static const ShimEventType types[] = {
                [ATTEMPT_STARTING] = SHIM_EVENT_STARTING,   [ATTEMPT_RUNNING] = SHIM_EVENT_STARTED,
                [ATTEMPT_ENDING] = SHIM_EVENT_STARTED,      [ATTEMPT_EXITED] = SHIM_EVENT_EXITED,
                [ATTEMPT_FAILED] = SHIM_EVENT_START_FAILED,
        };
        ShimEvent event = attempt_event(attempt, types[attempt->state]);

        event.replayed = true;
        return event;
}

void attempts_free(AttemptList *list) {
        while (list->first)
                unlink_and_free(list, list->first);
}
