/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The archives in the preload directory: which there are, what they hold, what is wrong with them.
 * Starts no process. */

#include "common/child.h"
#include "common/error.h"

#include <stdint.h>
#include <sys/stat.h>

typedef struct ArchivedImage {
        char *digest;       /* "" where not even that could be read */
        char *index_digest; /* of the index over several platforms, or NULL */
        char **names;       /* normalised references */
        char *refusal;      /* why it cannot be used here, or NULL */
} ArchivedImage;

typedef enum ArchiveState {
        ARCHIVE_NEW,      /* to be indexed */
        ARCHIVE_INDEXING, /* a child reads it */
        ARCHIVE_INDEXED,
        ARCHIVE_BROKEN, /* .trouble says why */
} ArchiveState;

typedef struct Archive {
        char *file; /* name in the directory */
        uint64_t size, inode;
        int64_t mtime_nsec;
        ArchiveState state;
        ArchivedImage *images;
        size_t n_images;
        char *error;
        bool is_transient; /* the trouble is the machine's rather than the archive's */
        bool seen;         /* in the scan at work */
        Child *child;
        void *store; /* for callbacks; borrowed */
} Archive;

typedef struct ArchiveSet {
        Archive **archives;
        size_t n_archives;
} ArchiveSet;

/* Whether a file of that name is meant as an archive: none that are hidden, or still arriving. */
bool archive_is_candidate_name(const char *file);

/* Scans the directory and compares. What is new or has changed becomes ARCHIVE_NEW, what is gone is
 * dropped; a directory that cannot be read changes nothing. 1 if anything changed, 0, or -errno. */
int archive_set_scan(ArchiveSet *set, int dir_fd);

/* A file of that name was written to: what is broken is worth another look. */
void archive_set_reset_broken(ArchiveSet *set, const char *file);

/* What broke for lack of room or memory becomes ARCHIVE_NEW. True if anything did. */
bool archive_set_retry_transient(ArchiveSet *set);

/* The image of that name or digest, from the newest archive that has one for this machine; NULL
 * where there is none. */
const ArchivedImage *archive_set_find(const ArchiveSet *set, const char *reference,
                                      const Archive **ret_archive);

/* Whether some are not indexed yet. */
bool archive_set_is_pending(const ArchiveSet *set);

/* Takes what "mainstay-image index" printed. 0 or -EBADMSG. */
int archive_parse_index(Archive *archive, const char *text);

/* Sets what is wrong with it. */
void archive_mark_broken(Archive *archive, const char *message);

/* Loads and stores what is known of sound archives. A damaged file is set aside; nothing is lost
 * but time. */
void archive_set_load(ArchiveSet *set, int images_fd);
int archive_set_save(const ArchiveSet *set, int images_fd);

void archive_set_done(ArchiveSet *set);
