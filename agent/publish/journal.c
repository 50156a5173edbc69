/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/publish/journal.h"

#include "common/log.h"
#include "common/message-ids.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <syslog.h>
#include <unistd.h>

#define SD_JOURNAL_SUPPRESS_LOCATION
#include <systemd/sd-journal.h>

enum {
        FIELD_SIZE = 512, /* names of Kubernetes have at most 253 bytes */
        FIELDS_MAX = 8,
};

/* "<device>:<inode>" of the stream that systemd connected us with; a redirection changes it. */
static bool error_is_journal(void) {
        const char *stream = getenv("JOURNAL_STREAM");
        uint64_t device, inode;
        struct stat st;

        return stream && sscanf(stream, "%" SCNu64 ":%" SCNu64, &device, &inode) == 2 &&
               fstat(STDERR_FILENO, &st) >= 0 && st.st_dev == device && st.st_ino == inode;
}

typedef struct Entry {
        struct iovec fields[FIELDS_MAX];
        char texts[FIELDS_MAX][FIELD_SIZE];
        int n;
} Entry;

static void add_field(Entry *entry, const char *name, const char *value) {
        char *text = entry->texts[entry->n];
        int length;

        if (!value)
                return;
        length = snprintf(text, FIELD_SIZE, "%s=%s", name, value);
        entry->fields[entry->n++] =
                (struct iovec){ text, (size_t) MIN(length, (int) FIELD_SIZE - 1) };
}

static void send_entry(int priority, const char *sentence, const char *message_id,
                       const LogSubject *subject) {
        char number[8], *message;
        int length = asprintf(&message, "MESSAGE=%s", sentence);
        Entry entry = { 0 };

        if (length < 0)
                return;
        (void) snprintf(number, sizeof(number), "%d", priority);
        entry.fields[entry.n++] = (struct iovec){ message, (size_t) length };
        add_field(&entry, "PRIORITY", number);
        add_field(&entry, "MESSAGE_ID", message_id);
        if (subject) {
                add_field(&entry, "POD_NAMESPACE", subject->namespace);
                add_field(&entry, "POD_NAME", subject->pod);
                add_field(&entry, "POD_UID", subject->uid);
                add_field(&entry, "CONTAINER_NAME", subject->container);
        }
        (void) sd_journal_sendv(entry.fields, entry.n);
        free(message);
}

void journal_take_log(void) {
        if (error_is_journal())
                log_set_sink(send_entry);
}

void journal_tell_event(const PodEvent *event) {
        static const struct {
                const char *reason;
                const char *message_id;
        } reasons[] = {
                { "BackOff", MESSAGE_CONTAINER_BACK_OFF },
                { "Failed", MESSAGE_CONTAINER_FAILED },
        };
        const ObjectMeta *metadata = event->pod ? &event->pod->metadata : NULL;

        if (!metadata || !error_is_journal()) /* of sets all is in the log */
                return;
        for (size_t i = 0; i < N_ELEMENTS(reasons); i++)
                if (streq(reasons[i].reason, event->reason))
                        send_entry(event->kind == POD_EVENT_WARNING ? LOG_WARNING : LOG_INFO,
                                   event->message, reasons[i].message_id,
                                   &(LogSubject){ .namespace = metadata->namespace,
                                                  .pod = metadata->name,
                                                  .uid = metadata->uid,
                                                  .container = event->container });
}
