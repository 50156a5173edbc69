/* SPDX-License-Identifier: Apache-2.0 */

/* Each missing layer is unpacked by its own process, starting with the lowest layer, and at most
 * one process per CPU runs at the same time. Most of a layer does not depend on the layers below
 * it: its files, and the directories that its tar contains. Only things that the tar omits (a
 * parent, the effect of a whiteout, the target of a hard link) are looked up below; then the
 * process waits at its gate until all lower layers are complete. So unpacking uses all CPUs, and
 * the result does not depend on timing.
 *
 * The only message between processes is one byte: "the layers below you are complete". */

#include "agent/image-helper/process/image-confine.h"
#include "agent/image-helper/process/parent-check.h"
#include "agent/image-helper/process/safe-message.h"
#include "agent/image-helper/unpack/layer-unpack.h"
#include "agent/image-helper/unpack/unpack-private.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

enum {
        WORKERS_MAX = 8,
        TICK_MSEC = 250
};

/* The result of one process, written to a pipe atomically. */
typedef struct LayerOutcome {
        int r;
        uint64_t size;
        char message[SAFE_MESSAGE_LENGTH_MAX + 1];
} LayerOutcome;

typedef enum LayerWorkerState {
        LAYER_WORKER_NONE, /* the layer was already present */
        LAYER_WORKER_WAITING,
        LAYER_WORKER_RUNNING,
        LAYER_WORKER_DONE,
} LayerWorkerState;

typedef struct LayerWorker {
        LayerWorkerState state;
        pid_t pid;
        int pidfd;
        int outcome_fd; /* read end of the pipe */
        int gate_fd;    /* write end; closed once the gate is open */
} LayerWorker;

typedef struct LayerGate {
        LayerViewGate gate;
        int fd;
} LayerGate;

static const char *layer_name(const ImageUnpack *unpack, size_t i) {
        const CatalogBlob *blob = catalog_image_blob(unpack->image, i);

        return blob->digest[0] ? blob->digest : blob->member;
}

/* ---- one layer ---- */

/* Verifies the blob against the manifest. */
static int verify_layer_blob(const ImageUnpack *unpack, size_t i, ByteStream *packed,
                             Error *reterr) {
        const CatalogBlob *blob = catalog_image_blob(unpack->image, i);
        char digest[DIGEST_SIZE];
        int r;

        r = byte_stream_drain(packed, reterr);
        if (r < 0)
                return r;
        byte_stream_digest(packed, digest);
        if (blob->digest[0] &&
            (byte_stream_length(packed) != blob->size || !streq(digest, blob->digest)))
                return error_setf(reterr, EBADMSG, "is damaged: its digest is %s", digest);
        return 0;
}

/* Verifies the tar against the configuration. */
static int verify_layer_diff_id(const ImageUnpack *unpack, size_t i, ByteStream *tar,
                                Error *reterr) {
        const char *diff_id = unpack->image->settings->diff_ids[i];
        char digest[DIGEST_SIZE];
        int r;

        r = verify_layer_blob(unpack, i, byte_stream_packed(tar), reterr);
        if (r < 0)
                return r;
        byte_stream_digest(tar, digest);
        if (!streq(digest, diff_id))
                return error_setf(reterr, EBADMSG, "is damaged: its DiffID is %s, not %s", digest,
                                  diff_id);
        return 0;
}

static int unpack_or_drain_layer(const ImageUnpack *unpack, size_t i, int fd, LayerViewGate *gate,
                                 uint64_t *ret_size, Error *reterr) {
        LayerView below = { .layers = unpack->stack + (unpack->n - i),
                            .n_layers = i,
                            .gate = gate };
        LayerView base = { .layers = unpack->base.layers,
                           .n_layers = unpack->base.n,
                           .lookups = unpack->budget ? &unpack->budget->lookups : NULL };
        cleanup_with(byte_stream_freep) ByteStream *tar = NULL;
        ByteStream *packed;
        int r;

        r = unpack->source->open_layer(unpack->source->userdata, i, &packed, reterr);
        if (r < 0)
                return r;
        r = catalog_image_needs_base(unpack->image, i)
                    ? byte_stream_new_patched_take(packed, &base, &tar, reterr)
                    : byte_stream_new_unpacked_take(packed, &tar, reterr);
        if (r < 0)
                return r;
        r = fd >= 0 ? unpack_layer_tar(tar, fd, &below, unpack->budget, reterr)
                    : byte_stream_drain(tar, reterr);
        if (r < 0)
                return r;
        r = verify_layer_diff_id(unpack, i, tar, reterr);
        if (r < 0)
                return r;
        *ret_size = byte_stream_length(tar);
        return 0;
}

int read_and_verify_layer(const ImageUnpack *unpack, size_t i, int fd, LayerViewGate *gate,
                          uint64_t *ret_size, Error *reterr) {
        int r = unpack_or_drain_layer(unpack, i, fd, gate, ret_size, reterr);

        return r < 0 ? error_prefixf(reterr, r, "layer '%s'", layer_name(unpack, i)) : 0;
}

static int read_blob(const ImageUnpack *unpack, size_t i, Error *reterr) {
        cleanup_with(byte_stream_freep) ByteStream *packed = NULL;
        int r = unpack->source->open_layer(unpack->source->userdata, i, &packed, reterr);

        if (r >= 0)
                r = verify_layer_blob(unpack, i, packed, reterr);
        return r < 0 ? error_prefixf(reterr, r, "layer '%s'", layer_name(unpack, i)) : 0;
}

/* Damage may first appear as an invalid entry, but must be reported as damage. Therefore the layer
 * is read once more, only to compute its digests. */
static int explain_layer_failure(const ImageUnpack *unpack, size_t i, int r, Error *reterr) {
        cleanup_error Error error = ERROR_NULL;
        uint64_t size;
        int q;

        if (r == -ENOMEM || r == -ENOSPC || r == -EDQUOT || r == -ECANCELED)
                return r;
        q = read_blob(unpack, i, &error);
        if (q >= 0)
                q = read_and_verify_layer(unpack, i, -EBADF, NULL, &size, &error);
        if (q >= 0)
                return r;
        error_move(reterr, &error);
        return q;
}

static int wait_at_layer_gate(LayerViewGate *gate) {
        int fd = ((LayerGate *) gate)->fd;
        char byte;
        ssize_t n;

        do
                n = read(fd, &byte, 1);
        while (n < 0 && errno == EINTR);
        return n == 1 ? 0 : -ECANCELED;
}

static void run_layer_worker(const ImageUnpack *unpack, size_t i, int gate_fd, int outcome_fd) {
        LayerGate gate = { .gate = { .wait = wait_at_layer_gate }, .fd = gate_fd };
        cleanup_error Error error = ERROR_NULL;
        int fd = unpack->stack[unpack->n - 1 - i];
        LayerOutcome outcome = { 0 };

        if (unpack->feed)
                unpack->feed->on_worker(unpack->feed->userdata);
        outcome.r = confine_layer_unpacker(fd, store_fd(unpack->store), &error);
        if (outcome.r >= 0) {
                outcome.r = read_and_verify_layer(unpack, i, fd, &gate.gate, &outcome.size, &error);
                if (outcome.r < 0)
                        outcome.r = explain_layer_failure(unpack, i, outcome.r, &error);
        }
        if (outcome.r < 0) {
                cleanup_free char *message = format_safe_message(&error, outcome.r);

                (void) snprintf(outcome.message, sizeof(outcome.message), "%s", strna(message));
        }
        (void) !write(outcome_fd, &outcome, sizeof(outcome));
}

/* ---- all layers ---- */

static size_t count_processors(void) {
        cpu_set_t set;

        if (sched_getaffinity(0, sizeof(set), &set) < 0)
                return 2;
        return MIN(MAX((size_t) CPU_COUNT(&set), (size_t) 2), (size_t) WORKERS_MAX);
}

static int start_layer_worker(const ImageUnpack *unpack, LayerWorker *works, size_t i) {
        int gate[2] = { -EBADF, -EBADF }, outcome[2] = { -EBADF, -EBADF };

        if (pipe2(gate, O_CLOEXEC) < 0 || pipe2(outcome, O_CLOEXEC) < 0 ||
            (works[i].pid = parent_check_fork_with_pidfd(&works[i].pidfd)) < 0) {
                int r = -errno;

                close_fd(gate[0]);
                close_fd(gate[1]);
                close_fd(outcome[0]);
                close_fd(outcome[1]);
                return r;
        }
        if (works[i].pid == 0) {
                run_layer_worker(unpack, i, gate[0], outcome[1]);
                _exit(0);
        }
        close_fd(gate[0]);
        close_fd(outcome[1]);
        works[i].gate_fd = gate[1];
        works[i].outcome_fd = outcome[0];
        works[i].state = LAYER_WORKER_RUNNING;
        return 0;
}

static int start_layer_workers(const ImageUnpack *unpack, LayerWorker *works) {
        size_t running = 0, max = count_processors();

        for (size_t i = 0; i < unpack->n; i++)
                running += works[i].state == LAYER_WORKER_RUNNING;
        for (size_t i = 0; i < unpack->n && running < max; i++) {
                int r;

                if (works[i].state != LAYER_WORKER_WAITING)
                        continue;
                r = start_layer_worker(unpack, works, i);
                if (r < 0)
                        return r;
                running++;
        }
        return 0;
}

/* Opens the gate of layers whose lower layers are complete. */
static void open_layer_gates(const ImageUnpack *unpack, LayerWorker *works) {
        for (size_t i = 0; i < unpack->n; i++) {
                if (works[i].gate_fd >= 0) {
                        (void) !write(works[i].gate_fd, "", 1);
                        works[i].gate_fd = close_fd(works[i].gate_fd);
                }
                if (works[i].state == LAYER_WORKER_WAITING ||
                    works[i].state == LAYER_WORKER_RUNNING)
                        return;
        }
}

static int take_layer_outcome(ImageUnpack *unpack, LayerWorker *works, size_t i, Error *reterr) {
        LayerOutcome outcome = { 0 };
        int status = 0;
        ssize_t n;

        do
                n = read(works[i].outcome_fd, &outcome, sizeof(outcome));
        while (n < 0 && errno == EINTR);
        works[i].outcome_fd = close_fd(works[i].outcome_fd);
        works[i].state = LAYER_WORKER_DONE;
        (void) waitpid(works[i].pid, &status, 0);
        if (n != sizeof(outcome) && parent_check_error_of_status(status) == -ENOMEM)
                outcome.r = error_setf(reterr, ENOMEM, "layer '%s': %s", layer_name(unpack, i),
                                       strerror(ENOMEM));
        else if (n != sizeof(outcome))
                outcome.r = error_setf(reterr, EIO,
                                       "layer '%s': the unpacking process was killed by signal %d",
                                       layer_name(unpack, i), WTERMSIG(status));
        else if (outcome.r < 0)
                (void) error_setf(reterr, EIO, "%.*s", SAFE_MESSAGE_LENGTH_MAX, outcome.message);
        unpack->sizes[i] = outcome.size;
        if (unpack->feed)
                outcome.r = unpack->feed->on_layer(unpack->feed->userdata, i, outcome.r, reterr);
        return outcome.r;
}

/* Waits for the next event and handles it. 0: all layers are done; 1: more events follow; or
 * -errno. */
static int wait_for_layer_worker(ImageUnpack *unpack, LayerWorker *works, Error *reterr) {
        const LayerDownloadFeed *feed = unpack->feed;
        struct pollfd fds[WORKERS_MAX + 1];
        size_t which[WORKERS_MAX + 1], n = 0;
        int r = 0;

        for (size_t i = 0; i < unpack->n; i++)
                if (works[i].state == LAYER_WORKER_RUNNING) {
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
        if (r < 0)
                return r;
        if (feed)
                r = feed->on_tick(feed->userdata, reterr);
        if (r < 0)
                return r;
        for (size_t k = 0; k < n; k++) {
                if (fds[k].revents)
                        r = take_layer_outcome(unpack, works, which[k], reterr);
                if (r < 0)
                        return r;
        }
        return 1;
}

static void end_layer_workers(const ImageUnpack *unpack, LayerWorker *works) {
        for (size_t i = 0; i < unpack->n; i++) {
                if (works[i].state == LAYER_WORKER_RUNNING) {
                        parent_check_kill(works[i].pidfd);
                        (void) waitpid(works[i].pid, NULL, 0);
                }
                close_fd(works[i].pidfd);
                close_fd(works[i].gate_fd);
                close_fd(works[i].outcome_fd);
        }
        free(works);
}

/* To be called before the processes are started, all of which read from it. */
static int open_needed_base(ImageUnpack *unpack, Error *reterr) {
        for (size_t i = 0; i < unpack->n; i++)
                if (unpack->made[i] && catalog_image_needs_base(unpack->image, i))
                        return delta_base_open(unpack->store, unpack->image->base_config,
                                               &unpack->base, reterr);
        return 0;
}

int unpack_missing_layers(ImageUnpack *unpack, Error *reterr) {
        cleanup_with(unpack_budget_freep) UnpackBudget *budget = unpack_budget_new();
        LayerWorker *works;
        int r = open_needed_base(unpack, reterr);

        if (r < 0)
                return r;
        works = calloc(unpack->n, sizeof(*works));
        if (!works || !budget) {
                free(works);
                return -ENOMEM;
        }
        unpack->budget = budget;
        for (size_t i = 0; i < unpack->n; i++)
                works[i] = (LayerWorker){ .state = unpack->made[i] ? LAYER_WORKER_WAITING
                                                                   : LAYER_WORKER_NONE,
                                          .pidfd = -EBADF,
                                          .gate_fd = -EBADF,
                                          .outcome_fd = -EBADF };
        do {
                r = start_layer_workers(unpack, works);
                if (r < 0) {
                        (void) error_prefixf(reterr, r, "cannot start a process for a layer");
                        break;
                }
                open_layer_gates(unpack, works);
                r = wait_for_layer_worker(unpack, works, reterr);
        } while (r > 0);
        end_layer_workers(unpack, works);
        unpack->budget = NULL;
        return r;
}
