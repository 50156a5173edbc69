/* SPDX-License-Identifier: Apache-2.0 */

/* Log messages as journal entries with fields; see the header. */

#include "agent/metrics/journal.h"

#include "common/cleanup.h"
#include "common/journal-socket.h"
#include "common/log.h"
#include "common/message-ids.h"
#include "common/utf8.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <syslog.h>

enum {
        MESSAGE_MAX = 4 * KIB,
        JOURNAL_ENTRY_SIZE = MESSAGE_MAX + 2 * KIB, /* names in Kubernetes have at most 253 bytes */
};

/* The log is global, so its journal is global as well. */
static JournalSocket journal = JOURNAL_SOCKET_NULL(JOURNAL_SOCKET_PATH);
static uint64_t n_lost_messages;

/* JOURNAL_STREAM is "<device>:<inode>" of the stream that systemd has connected; standard error has
 * other numbers after a redirection. */
static bool stderr_is_journal(void) {
        const char *stream = getenv("JOURNAL_STREAM");
        uint64_t device, inode;
        struct stat st;

        return stream && sscanf(stream, "%" SCNu64 ":%" SCNu64, &device, &inode) == 2 &&
               fstat(STDERR_FILENO, &st) >= 0 && st.st_dev == device && st.st_ino == inode;
}

typedef struct JournalEntry {
        char text[JOURNAL_ENTRY_SIZE];
        size_t length;
} JournalEntry;

/* A field that does not fit is omitted. */
static void append_journal_field(JournalEntry *entry, const char *name, const char *value) {
        size_t space = sizeof(entry->text) - entry->length;
        int n = value ? snprintf(&entry->text[entry->length], space, "%s=%s\n", name, value) : -1;

        if (n > 0 && (size_t) n < space)
                entry->length += (size_t) n;
}

static int send_journal_entry(int priority, const char *text, const char *message_id,
                              const LogSubject *subject) {
        JournalEntry entry = { .length = 0 };
        char number[8], message[MESSAGE_MAX];

        (void) snprintf(number, sizeof(number), "%d", priority);
        (void) snprintf(message, sizeof(message), "%s", text);
        utf8_sanitize(message); /* a line break would end the field */
        append_journal_field(&entry, "MESSAGE", message);
        append_journal_field(&entry, "PRIORITY", number);
        append_journal_field(&entry, "SYSLOG_IDENTIFIER", program_invocation_short_name);
        append_journal_field(&entry, "MESSAGE_ID", message_id);
        if (subject) {
                append_journal_field(&entry, "POD_NAMESPACE", subject->namespace);
                append_journal_field(&entry, "POD_NAME", subject->pod);
                append_journal_field(&entry, "POD_UID", subject->uid);
                append_journal_field(&entry, "CONTAINER_NAME", subject->container);
        }
        return journal_socket_send(&journal, &(struct iovec){ entry.text, entry.length }, 1);
}

/* Messages that the journal does not accept are counted; the count is logged when it accepts
 * messages again. */
static void send_log_to_journal(int priority, const char *text, const char *message_id,
                                const LogSubject *subject) {
        char lost_message[64];

        (void) snprintf(lost_message, sizeof(lost_message), "%" PRIu64 " messages were lost",
                        n_lost_messages);
        if (n_lost_messages > 0 && send_journal_entry(LOG_WARNING, lost_message, NULL, NULL) >= 0)
                n_lost_messages = 0;
        if (send_journal_entry(priority, text, message_id, subject) < 0)
                n_lost_messages++;
}

void journal_attach_log(const char *socket_path) {
        journal_socket_done(&journal);
        journal = (JournalSocket) JOURNAL_SOCKET_NULL(socket_path);
        if (stderr_is_journal())
                log_set_sink(send_log_to_journal);
}

void journal_report_event(const PodEvent *event) {
        static const struct {
                const char *reason;
                const char *message_id;
        } reasons[] = {
                { "BackOff", MESSAGE_CONTAINER_BACK_OFF },
                { "Failed", MESSAGE_CONTAINER_FAILED },
        };
        const ObjectMeta *metadata = event->pod ? &event->pod->metadata : NULL;

        if (!metadata || !stderr_is_journal()) /* all events of DaemonSets are logged */
                return;
        for (size_t i = 0; i < N_ELEMENTS(reasons); i++)
                if (streq(reasons[i].reason, event->reason))
                        send_log_to_journal(event->kind == POD_EVENT_WARNING ? LOG_WARNING
                                                                             : LOG_INFO,
                                            event->message, reasons[i].message_id,
                                            &(LogSubject){ .namespace = metadata->namespace,
                                                           .pod = metadata->name,
                                                           .uid = metadata->uid,
                                                           .container = event->container });
}
