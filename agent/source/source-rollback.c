/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/source/source-rollback.h"

#include "common/checksummed.h"
#include "common/cleanup.h"
#include "common/failpoint.h"
#include "common/file.h"
#include "common/text.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

enum {
        ROLLBACK_BYTES_MAX = 64 * 1024
};

void source_rollback_done(SourceRollback *rollback) {
        free(rollback->sha256);
        free(rollback->reason);
        *rollback = (SourceRollback){ 0 };
}

void source_rollback_load(int dir_fd, SourceRollback *ret) {
        cleanup_free char *text = NULL;
        int r = checksummed_load_at(dir_fd, SOURCE_ROLLBACK_NAME, ROLLBACK_BYTES_MAX,
                                    "The record of an index that was rolled back",
                                    "that index may be tried again", &text);
        char *rest = text, *sha256, *reason;

        source_rollback_done(ret);
        sha256 = r > 0 ? strsep(&rest, "\n") : NULL;
        reason = rest ? strsep(&rest, "\n") : NULL;
        if (!sha256 || !reason)
                return;
        ret->sha256 = strdup(sha256);
        ret->reason = strdup(reason);
        if (!ret->sha256 || !ret->reason)
                source_rollback_done(ret);
}

int source_rollback_store(int dir_fd, const char *sha256, const char *reason) {
        int r;
        cleanup_free char *text = text_format("%s\n%s\n", sha256, reason);

        if (!text)
                return -ENOMEM;
        FAIL_AT("source.rollback");
        r = checksummed_write_at(dir_fd, SOURCE_ROLLBACK_NAME, text, 0600);
        DIE_AT("source.noted");
        return r;
}

/* Only an earlier index of the same fleet counts as the previous one, not an index that was offered
 * in the meantime. */
static bool is_one_before(const SourceInUse *in_use, const SourceInUse *before) {
        return before->is_there && before->fleet && streq_ptr(before->fleet, in_use->fleet) &&
               before->number > 0 && before->number < in_use->number;
}

bool source_rollback_is_due(const SourceInUse *in_use, const SourceInUse *before,
                            const SourceRollback *rollback) {
        return rollback->sha256 && streq_ptr(rollback->sha256, in_use->sha256) &&
               is_one_before(in_use, before);
}

bool source_is_on_trial(int dir_fd, const SourceInUse *in_use, const SourceInUse *before,
                        const SourceRollback *rollback) {
        if (in_use->deadline_usec == 0 || !in_use->sha256 || !is_one_before(in_use, before) ||
            (rollback->sha256 && streq_ptr(rollback->sha256, in_use->sha256)))
                return false;
        return faccessat(dir_fd, "current/" SOURCE_PROVEN_NAME, F_OK, AT_SYMLINK_NOFOLLOW) < 0;
}

int source_mark_proven(int dir_fd) {
        cleanup_close int fd = open_beneath(dir_fd, "current", O_RDONLY | O_DIRECTORY, 0);

        return fd < 0 ? fd : checksummed_write_at(fd, SOURCE_PROVEN_NAME, "", 0600);
}
