/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/publish/publish.h"

#include "common/cleanup.h"
#include "common/clock.h"

#include <inttypes.h>
#include <time.h>

#include <systemd/sd-daemon.h>

struct Publish {
        char *sentence; /* as sent last */
        bool is_ready;
        bool is_stopping;
};

Publish *publish_new(void) {
        return calloc(1, sizeof(Publish));
}

bool publish_is_heard(const Publish *publish) {
        return getenv("NOTIFY_SOCKET") != NULL;
}

Publish *publish_free(Publish *publish) {
        if (publish)
                free(publish->sentence);
        free(publish);
        return NULL;
}

void publish_ready(Publish *publish) {
        if (publish->is_ready)
                return;
        publish->is_ready = true;
        (void) sd_notify(false, "READY=1");
}

void publish_begin_reload(Publish *publish) {
        struct timespec now;

        if (!publish->is_ready || clock_gettime(CLOCK_MONOTONIC, &now) < 0)
                return;
        (void) sd_notifyf(false, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64,
                          (uint64_t) now.tv_sec * USEC_PER_SEC + (uint64_t) now.tv_nsec / 1000);
}

void publish_end_reload(Publish *publish) {
        if (publish->is_ready)
                (void) sd_notify(false, "READY=1");
}

void publish_stopping(Publish *publish) {
        if (publish->is_stopping)
                return;
        publish->is_stopping = true;
        (void) sd_notify(false, "STOPPING=1");
}

void publish_stop_takes(Publish *publish, uint64_t usec) {
        (void) sd_notifyf(false, "EXTEND_TIMEOUT_USEC=%" PRIu64, usec);
}

void publish_status(Publish *publish, const PublishCounts *counts) {
        cleanup_free char *sentence = publish_sentence(counts);

        if (!sentence || (publish->sentence && streq(sentence, publish->sentence)))
                return;
        (void) sd_notifyf(false, "STATUS=%s", sentence);
        free(publish->sentence);
        publish->sentence = TAKE_PTR(sentence);
}

static const char *plural(unsigned n) {
        return n == 1 ? "" : "s";
}

static void say_manifests(FILE *out, const PublishCounts *counts) {
        if (counts->manifests_broken == 0)
                return;
        fprintf(out, "; %u manifest%s broken", counts->manifests_broken,
                plural(counts->manifests_broken));
        if (counts->manifest_error)
                fprintf(out, ": %s", counts->manifest_error);
}

/* systemd takes one line: what a sentence quotes may have others. */
static void keep_one_line(char *text) {
        for (; *text; text++)
                if ((unsigned char) *text < ' ')
                        *text = ' ';
}

char *publish_sentence(const PublishCounts *counts) {
        cleanup_free char *text = NULL;
        size_t length;
        FILE *out = open_memstream(&text, &length);

        if (!out)
                return NULL;
        fprintf(out, "%u pod%s, %u running", counts->pods, plural(counts->pods),
                counts->pods_running);
        if (counts->manifest_trouble)
                fprintf(out, "; manifests cannot be read: %s", counts->manifest_trouble);
        say_manifests(out, counts);
        if (counts->archives_broken > 0)
                fprintf(out, "; %u image archive%s broken", counts->archives_broken,
                        plural(counts->archives_broken));
        if (counts->api_trouble)
                fprintf(out, "; API server: %s", counts->api_trouble);
        if (fclose(out) != 0)
                return NULL;
        keep_one_line(text);
        return TAKE_PTR(text);
}
