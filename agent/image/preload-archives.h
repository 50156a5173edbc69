/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The archives in the preload directory: which ones exist, their images and their errors. Starts no
 * process. */

#include "common/child.h"
#include "common/error.h"

#include <stdint.h>
#include <sys/stat.h>

typedef struct ArchivedImage {
        char *digest;       /* "" if not even the digest is readable */
        char *index_digest; /* digest of the multi-platform index, or NULL */
        char *transport;    /* "oci-archive" or "docker-archive" */
        char **names;       /* normalised references */
        char *refusal;      /* why the image cannot be used here, or NULL */
        int64_t size_bytes; /* size of its layers in the archive; 0: unknown */
        bool is_delta;      /* the archive contains only the differences from another image */
        char *failure;      /* why the delta could not be applied, so that another source must
                             * provide the image; or NULL */
} ArchivedImage;

typedef enum ArchiveState {
        ARCHIVE_NEW,      /* not indexed yet */
        ARCHIVE_INDEXING, /* a child is reading it */
        ARCHIVE_INDEXED,
        ARCHIVE_BROKEN, /* .error has the reason */
} ArchiveState;

typedef struct Archive {
        char *file; /* file name in the directory */
        uint64_t size, inode;
        int64_t mtime_nsec;
        ArchiveState state;
        ArchivedImage *images;
        size_t n_images;
        char *error;
        bool is_transient; /* the error is caused by the machine, not by the archive */
        bool seen;         /* seen by the current scan */
        Child *child;
        void *store; /* for callbacks; borrowed */
} Archive;

typedef struct ArchiveSet {
        Archive **archives;
        size_t n_archives;
} ArchiveSet;

/* Whether a file with that name is an archive: not hidden, and not a partial download. */
bool archive_is_candidate_name(const char *file);

/* Scans the directory for changes. New or changed archives become ARCHIVE_NEW, removed ones are
 * dropped; an unreadable directory changes nothing. 1 if anything changed, 0, or -errno. */
int archive_set_scan(ArchiveSet *set, int dir_fd);

/* A file with that name was written to: a broken archive is read again. */
void archive_set_reset_broken(ArchiveSet *set, const char *file);

/* Archives that failed because of insufficient space or memory become ARCHIVE_NEW. True if there
 * are any. */
bool archive_set_retry_transient(ArchiveSet *set);

/* The image with that name or digest, from the newest archive that contains one for this machine;
 * NULL: none. Deltas that could not be applied are ignored. */
const ArchivedImage *archive_set_find(const ArchiveSet *set, const char *reference,
                                      const Archive **ret_archive);

/* Records that the delta in that archive could not be applied. True if there is a delta that was
 * usable before. */
bool archive_set_give_up_delta(const ArchiveSet *set, const char *file, const char *digest,
                               const char *failure);

/* The reason why a delta for that image could not be applied; NULL: there is none. */
const char *archive_set_find_failure(const ArchiveSet *set, const char *reference);

/* The set of images has changed: a new one may be the base of a delta. */
void archive_set_retry_deltas(const ArchiveSet *set);

/* Whether some archives are not indexed yet. */
bool archive_set_is_pending(const ArchiveSet *set);

/* Reads the output of "mainstay-image index". 0 or -EBADMSG. */
int archive_parse_index(Archive *archive, const char *text);

/* Marks it as broken with this message. */
void archive_mark_broken(Archive *archive, const char *message);

/* Loads and stores the index of valid archives. A damaged file is set aside, after which all
 * archives are read again. */
void archive_set_load(ArchiveSet *set, int images_fd);
int archive_set_save(const ArchiveSet *set, int images_fd);

void archive_set_done(ArchiveSet *set);
