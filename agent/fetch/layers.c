/* SPDX-License-Identifier: Apache-2.0 */

/* A process for each layer that is missing, the lowest first and no more at once than there are
 * processors. Most of what a layer is can be said without the layers below it: its files, and the
 * directories that its tar has. Only what the tar leaves out (a parent, what a whiteout hides, what
 * a hard link means) is looked for below; then the process waits at its gate until all those below
 * are whole. So unpacking is as wide as the machine, and nothing depends on who was faster.
 *
 * What one process says to another is one byte: "those below you are whole". */

#include "agent/fetch/confine.h"
#include "agent/fetch/layer.h"
#include "agent/fetch/sentence.h"
#include "agent/fetch/unpack-internal.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum {
        WORKERS_MAX = 8,
        TICK_MSEC = 250
};

/* How one ended, through a pipe, in one piece. */
typedef struct Outcome {
        int r;
        uint64_t size;
        char sentence[SENTENCE_LENGTH_MAX + 1];
} Outcome;

typedef enum WorkState {
        WORK_NONE, /* the layer was here */
        WORK_WAITING,
        WORK_RUNNING,
        WORK_DONE,
} WorkState;

typedef struct Work {
        WorkState state;
        pid_t pid;
        int outcome_fd; /* to read from */
        int gate_fd;    /* to write to; closed once it is open */
} Work;

typedef struct Gate {
        ViewGate gate;
        int fd;
} Gate;

static const char *layer_name(const Unpack *unpack, size_t i) {
        const CatalogBlob *blob = &unpack->image->layers[i];

        return blob->digest[0] ? blob->digest : blob->member;
}

/* ---- one layer ---- */

/* The blob as the manifest promised it. */
static int verify_blob(const Unpack *unpack, size_t i, Stream *packed, Error *reterr) {
        const CatalogBlob *blob = &unpack->image->layers[i];
        char digest[DIGEST_SIZE];
        int r;

        r = stream_drain(packed, reterr);
        if (r < 0)
                return r;
        stream_digest(packed, digest);
        if (blob->digest[0] &&
            (stream_length(packed) != blob->size || !streq(digest, blob->digest)))
                return error_setf(reterr, EBADMSG, "is damaged: its digest is %s", digest);
        return 0;
}

/* And the tar in it as the configuration did. */
static int verify_layer(const Unpack *unpack, size_t i, Stream *tar, Error *reterr) {
        const char *diff_id = unpack->image->settings->diff_ids[i];
        char digest[DIGEST_SIZE];
        int r;

        r = verify_blob(unpack, i, stream_below(tar), reterr);
        if (r < 0)
                return r;
        stream_digest(tar, digest);
        if (!streq(digest, diff_id))
                return error_setf(reterr, EBADMSG, "is damaged: its DiffID is %s, not %s", digest,
                                  diff_id);
        return 0;
}

int layer_read(const Unpack *unpack, size_t i, int fd, ViewGate *gate, uint64_t *ret_size,
               Error *reterr) {
        View below = { unpack->stack + (unpack->n - i), i, gate, 0 };
        cleanup_with(stream_freep) Stream *tar = NULL;
        Stream *packed;
        int r;

        r = unpack->source->open_layer(unpack->source->userdata, i, &packed, reterr);
        if (r >= 0)
                r = stream_new_plain_take(packed, &tar, reterr);
        if (r >= 0)
                r = fd >= 0 ? layer_unpack(tar, fd, &below, unpack->allowance, reterr)
                            : stream_drain(tar, reterr);
        if (r >= 0)
                r = verify_layer(unpack, i, tar, reterr);
        if (r >= 0)
                *ret_size = stream_length(tar);
        return r < 0 ? error_prefixf(reterr, r, "layer '%s'", layer_name(unpack, i)) : 0;
}

static int read_blob(const Unpack *unpack, size_t i, Error *reterr) {
        cleanup_with(stream_freep) Stream *packed = NULL;
        int r = unpack->source->open_layer(unpack->source->userdata, i, &packed, reterr);

        if (r >= 0)
                r = verify_blob(unpack, i, packed, reterr);
        return r < 0 ? error_prefixf(reterr, r, "layer '%s'", layer_name(unpack, i)) : 0;
}

/* Damage shows late, sometimes as an entry that makes no sense; then it is still damage that the
 * person must hear of. The layer is read once more, for its digests only. */
static int explain_failure(const Unpack *unpack, size_t i, int r, Error *reterr) {
        cleanup_error Error error = ERROR_NULL;
        uint64_t size;
        int q;

        if (r == -ENOMEM || r == -ENOSPC || r == -EDQUOT || r == -ECANCELED)
                return r;
        q = read_blob(unpack, i, &error);
        if (q >= 0)
                q = layer_read(unpack, i, -EBADF, NULL, &size, &error);
        if (q >= 0)
                return r;
        error_move(reterr, &error);
        return q;
}

static int wait_at_gate(ViewGate *gate) {
        int fd = ((Gate *) gate)->fd;
        char byte;
        ssize_t n;

        do
                n = read(fd, &byte, 1);
        while (n < 0 && errno == EINTR);
        return n == 1 ? 0 : -ECANCELED;
}

static void work(const Unpack *unpack, size_t i, int gate_fd, int outcome_fd) {
        Gate gate = { .gate = { .wait = wait_at_gate }, .fd = gate_fd };
        cleanup_error Error error = ERROR_NULL;
        int fd = unpack->stack[unpack->n - 1 - i];
        Outcome outcome = { 0 };

        outcome.r = confine_layer(fd, store_fd(unpack->store), &error);
        if (outcome.r >= 0) {
                outcome.r = layer_read(unpack, i, fd, &gate.gate, &outcome.size, &error);
                if (outcome.r < 0)
                        outcome.r = explain_failure(unpack, i, outcome.r, &error);
        }
        if (outcome.r < 0) {
                cleanup_free char *sentence = sentence_format(&error, outcome.r);

                (void) snprintf(outcome.sentence, sizeof(outcome.sentence), "%s", strna(sentence));
        }
        (void) !write(outcome_fd, &outcome, sizeof(outcome));
}

/* ---- all of them ---- */

static size_t count_processors(void) {
        cpu_set_t set;

        if (sched_getaffinity(0, sizeof(set), &set) < 0)
                return 2;
        return MIN(MAX((size_t) CPU_COUNT(&set), (size_t) 2), (size_t) WORKERS_MAX);
}

static int start(const Unpack *unpack, Work *works, size_t i) {
        int gate[2] = { -EBADF, -EBADF }, outcome[2] = { -EBADF, -EBADF };
        pid_t parent = getpid();

        if (pipe2(gate, O_CLOEXEC) < 0 || pipe2(outcome, O_CLOEXEC) < 0 ||
            (works[i].pid = fork()) < 0) {
                int r = -errno;

                close_fd(gate[0]);
                close_fd(gate[1]);
                return r;
        }
        if (works[i].pid == 0) {
                (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
                if (getppid() == parent)
                        work(unpack, i, gate[0], outcome[1]);
                _exit(0);
        }
        close_fd(gate[0]);
        close_fd(outcome[1]);
        works[i].gate_fd = gate[1];
        works[i].outcome_fd = outcome[0];
        works[i].state = WORK_RUNNING;
        return 0;
}

static int start_some(const Unpack *unpack, Work *works) {
        size_t running = 0, max = count_processors();

        for (size_t i = 0; i < unpack->n; i++)
                running += works[i].state == WORK_RUNNING;
        for (size_t i = 0; i < unpack->n && running < max; i++) {
                int r;

                if (works[i].state != WORK_WAITING)
                        continue;
                r = start(unpack, works, i);
                if (r < 0)
                        return r;
                running++;
        }
        return 0;
}

/* Tells those whose layers below are whole by now. */
static void open_gates(const Unpack *unpack, Work *works) {
        for (size_t i = 0; i < unpack->n; i++) {
                if (works[i].gate_fd >= 0) {
                        (void) !write(works[i].gate_fd, "", 1);
                        works[i].gate_fd = close_fd(works[i].gate_fd);
                }
                if (works[i].state == WORK_WAITING || works[i].state == WORK_RUNNING)
                        return;
        }
}

static int take_outcome(Unpack *unpack, Work *works, size_t i, Error *reterr) {
        Outcome outcome = { 0 };
        int status = 0;
        ssize_t n;

        do
                n = read(works[i].outcome_fd, &outcome, sizeof(outcome));
        while (n < 0 && errno == EINTR);
        works[i].outcome_fd = close_fd(works[i].outcome_fd);
        works[i].state = WORK_DONE;
        (void) waitpid(works[i].pid, &status, 0);
        if (n != sizeof(outcome))
                outcome.r =
                        error_setf(reterr, EIO, "layer '%s': its unpacking was ended by signal %d",
                                   layer_name(unpack, i), WTERMSIG(status));
        else if (outcome.r < 0)
                (void) error_setf(reterr, EIO, "%.*s", SENTENCE_LENGTH_MAX, outcome.sentence);
        unpack->sizes[i] = outcome.size;
        if (unpack->feed)
                unpack->feed->on_layer(unpack->feed->userdata, i, outcome.r);
        return outcome.r;
}

/* Waits for something, and takes it. 0: all are done; 1: go on; or -errno. */
static int turn(Unpack *unpack, Work *works, Error *reterr) {
        const LayerFeed *feed = unpack->feed;
        struct pollfd fds[WORKERS_MAX + 1];
        size_t which[WORKERS_MAX + 1], n = 0;
        int r = 0;

        for (size_t i = 0; i < unpack->n; i++)
                if (works[i].state == WORK_RUNNING) {
                        fds[n] = (struct pollfd){ .fd = works[i].outcome_fd, .events = POLLIN };
                        which[n++] = i;
                }
        if (n == 0)
                return 0;
        fds[n] = (struct pollfd){ .fd = feed ? feed->fd : -1, .events = POLLIN };
        if (poll(fds, (nfds_t) n + 1, feed ? TICK_MSEC : -1) < 0)
                return errno == EINTR ? 1 : -errno;
        if (feed && fds[n].revents)
                r = feed->on_readable(feed->userdata, reterr);
        if (feed && r >= 0)
                r = feed->on_tick(feed->userdata, reterr);
        for (size_t k = 0; r >= 0 && k < n; k++)
                if (fds[k].revents)
                        r = take_outcome(unpack, works, which[k], reterr);
        return r < 0 ? r : 1;
}

static void works_end(const Unpack *unpack, Work *works) {
        for (size_t i = 0; i < unpack->n; i++) {
                if (works[i].state == WORK_RUNNING) {
                        (void) kill(works[i].pid, SIGKILL);
                        (void) waitpid(works[i].pid, NULL, 0);
                }
                close_fd(works[i].gate_fd);
                close_fd(works[i].outcome_fd);
        }
        free(works);
}

int layers_make(Unpack *unpack, Error *reterr) {
        cleanup_with(allowance_freep) Allowance *allowance = allowance_new();
        Work *works = calloc(unpack->n, sizeof(*works));
        int r;

        if (!works || !allowance) {
                free(works);
                return -ENOMEM;
        }
        unpack->allowance = allowance;
        for (size_t i = 0; i < unpack->n; i++)
                works[i] = (Work){ .state = unpack->made[i] ? WORK_WAITING : WORK_NONE,
                                   .gate_fd = -EBADF,
                                   .outcome_fd = -EBADF };
        do {
                r = start_some(unpack, works);
                if (r < 0)
                        break;
                open_gates(unpack, works);
                r = turn(unpack, works, reterr);
        } while (r > 0);
        works_end(unpack, works);
        unpack->allowance = NULL;
        return r;
}
