/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of a container's lines in the journal (journalContainerLogs; annotation
 * mainstay.dev/journal-logs). */

#include "agent/bundle/log-paths.h"
#include "agent/model/own-values.h"
#include "common/cleanup.h"
#include "common/strv.h"

/* The annotation of a pod overrides the node's setting. */
static bool is_logged_to_journal(const BundleConfig *config, const Pod *pod) {
        const char *says = own_pod_value(pod, OWN_KEY_JOURNAL_LOGS);

        return says ? streq(says, "true") : config->has_journal;
}

int bundle_journal_fields(const BundleConfig *config, const Pod *pod, const Container *container,
                          const char *id, char ***ret) {
        const ObjectMeta *metadata = &pod->metadata;
        cleanup_strv char **fields = NULL;
        int r;

        if (!is_logged_to_journal(config, pod)) {
                *ret = NULL;
                return 0;
        }
        r = strv_appendf(&fields, "CONTAINER_NAME=%s", container->name);
        if (r < 0)
                return r;
        r = strv_appendf(&fields, "CONTAINER_ID=%.12s", id);
        if (r < 0)
                return r;
        r = strv_appendf(&fields, "CONTAINER_ID_FULL=%s", id);
        if (r < 0)
                return r;
        r = strv_appendf(&fields, "POD_NAMESPACE=%s", metadata->namespace);
        if (r < 0)
                return r;
        r = strv_appendf(&fields, "POD_NAME=%s", metadata->name);
        if (r < 0)
                return r;
        r = strv_appendf(&fields, "POD_UID=%s", metadata->uid);
        if (r < 0)
                return r;
        r = strv_appendf(&fields, "SYSLOG_IDENTIFIER=%s", container->name);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(fields);
        return 0;
}
