/* SPDX-License-Identifier: Apache-2.0 */
/* One plugin after another, each an exec of the shim's. The states: idle, adding (step n), deleting
 * (step n) and, once that is done, adding or idle or reporting the failure that made us delete;
 * checking (step n). */

#include "agent/supervise/attachment.h"

#include "agent/bundle/paths.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/log.h"
#include "common/sealed.h"

#include <fcntl.h>
#include <sys/stat.h>

enum {
        PLUGIN_TIMEOUT_SEC = 60,
        TOKEN_SIZE = 32,
};

typedef enum AttachmentState {
        ATTACHMENT_IDLE,
        ATTACHMENT_ADDING,
        ATTACHMENT_DELETING,
        ATTACHMENT_CHECKING,
} AttachmentState;

struct Attachment {
        const BundleConfig *bundle;
        const NetworkPlaces *places;
        const char *uid;
        attachment_done_t done;
        attachment_done_t checked;
        void *userdata;

        Network *network; /* what is on disk; NULL: nothing was begun */
        unsigned next_number;
        AttachmentState state;
        size_t step;
        Sandbox *sandbox; /* while something is under way */
        const Pod *pod;   /* to add once the deletion is done; NULL: nothing */
        Error failure;    /* of the ADD because of which we delete */
        int failure_code;
        Error delete_failure; /* the first of the deletion under way */
        int delete_failure_code;
        bool is_damaged; /* the record was; something may be left */
        unsigned n_execs;
        char token[TOKEN_SIZE];
        int netns_fd; /* of the sandbox that was attached, or -EBADF */
        pid_t netns_pid;
};

static const char record_name[] = "network";

int attachment_new(const BundleConfig *bundle, const NetworkPlaces *places, const char *uid,
                   attachment_done_t done, void *userdata, Attachment **ret) {
        Attachment *attachment = calloc(1, sizeof(*attachment));

        if (!attachment)
                return -ENOMEM;
        *attachment = (Attachment){
                .bundle = bundle,
                .places = places,
                .uid = uid,
                .done = done,
                .userdata = userdata,
                .netns_fd = -EBADF,
        };
        *ret = attachment;
        return 0;
}

Attachment *attachment_free(Attachment *attachment) {
        if (!attachment)
                return NULL;
        network_free(attachment->network);
        error_done(&attachment->failure);
        error_done(&attachment->delete_failure);
        close_fd(attachment->netns_fd);
        free(attachment);
        return NULL;
}

bool attachment_is_known(const Attachment *attachment) {
        return attachment->network != NULL || attachment->is_damaged;
}

bool attachment_is_deleting(const Attachment *attachment) {
        return attachment->network && !network_is_attached(attachment->network);
}

bool attachment_is_attached(const Attachment *attachment) {
        return attachment->network && network_is_attached(attachment->network);
}

const char *attachment_address(const Attachment *attachment, size_t i) {
        return attachment_is_attached(attachment) ? network_address(attachment->network, i) : NULL;
}

/* ---- on disk ---- */

static int open_state_dir(const Attachment *attachment) {
        cleanup_free char *path = pod_state_dir(attachment->bundle, attachment->uid);
        int fd = path ? open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;

        if (!path)
                return -ENOMEM;
        return fd < 0 ? -errno : fd;
}

static int store(const Attachment *attachment, Error *reterr) {
        cleanup_close int fd = open_state_dir(attachment);
        cleanup_free char *text = network_to_text(attachment->network);
        int r = fd < 0 ? fd : -ENOMEM;

        if (fd >= 0 && text)
                r = sealed_write_at(fd, record_name, text, 0600);
        return r < 0 ? error_prefixf(reterr, r, "cannot write down the pod's network") : 0;
}

static void forget(Attachment *attachment) {
        cleanup_close int fd = open_state_dir(attachment);

        if (fd >= 0)
                (void) unlinkat(fd, record_name, 0);
        if (attachment->network)
                attachment->next_number = network_number(attachment->network) + 1;
        attachment->network = network_free(attachment->network);
        attachment->is_damaged = false;
        attachment->netns_fd = close_fd(attachment->netns_fd);
        attachment->netns_pid = 0;
}

int attachment_load(Attachment *attachment) {
        cleanup_close int fd = open_state_dir(attachment);
        cleanup_free char *text = NULL;
        cleanup_error Error error = ERROR_NULL;
        int r = fd < 0 ? fd : sealed_read_at(fd, record_name, NETWORK_TEXT_MAX, &text);

        if (r == -ENOENT)
                return 0;
        if (r >= 0)
                r = network_from_text(text, &attachment->network, &error);
        if (r >= 0)
                return 1;
        log_warning("The record of the network of pod %s is set aside: %s", attachment->uid,
                    error_message(&error, r));
        if (fd >= 0)
                sealed_set_aside_at(fd, record_name);
        attachment->is_damaged = true;
        return -EBADMSG;
}

/* ---- plugins ---- */

bool sandbox_has_network(const Sandbox *sandbox) {
        cleanup_close int fd = sandbox_open_network(sandbox);

        return fd != -ENOENT;
}

void attachment_hold(Attachment *attachment, const Sandbox *sandbox) {
        if (attachment->netns_fd >= 0)
                return;
        attachment->netns_fd = sandbox_open_network(sandbox);
        attachment->netns_pid = sandbox_pid(sandbox);
}

/* The namespace that the attachment was made in: the shim's, or of a shim that is gone what we
 * hold. By way of the shim where that lives, for it lives longer than we may. */
static void print_netns(const Attachment *attachment, char *buffer, size_t size) {
        pid_t shim = sandbox_pid(attachment->sandbox);

        if (attachment->netns_fd < 0)
                buffer[0] = '\0';
        else if (attachment->netns_pid == shim)
                (void) snprintf(buffer, size, "/proc/%d/ns/net", (int) shim);
        else
                (void) snprintf(buffer, size, "/proc/%d/fd/%d", (int) getpid(),
                                attachment->netns_fd);
}

/* Before a plugin adds something it is on disk that it may have, with what those before it
 * answered.
 */
static int run_step(Attachment *attachment, NetworkCommand command, Error *reterr) {
        cleanup_with(network_invocation_done) NetworkInvocation invocation = { 0 };
        char netns[64];
        int r;

        print_netns(attachment, netns, sizeof(netns));
        r = network_invocation(attachment->network, command, attachment->step, netns, &invocation,
                               reterr);
        if (r >= 0 && command == NETWORK_ADD) {
                network_note_begun(attachment->network, attachment->step + 1);
                r = store(attachment, reterr);
        }
        if (r < 0)
                return r;
        (void) snprintf(attachment->token, sizeof(attachment->token), "network-%d-%u",
                        (int) getpid(), attachment->n_execs++);
        r = sandbox_exec(attachment->sandbox,
                         &(SandboxExec){
                                 .id = attachment->token,
                                 .argv = invocation.argv,
                                 .environment = invocation.environment,
                                 .input = invocation.input,
                                 .in_host = true,
                                 .timeout_usec = PLUGIN_TIMEOUT_SEC * USEC_PER_SEC,
                                 .interface = invocation.interface,
                                 .address = invocation.address,
                         });
        return r < 0 ? error_prefixf(reterr, r, "cannot run the plugin '%s'", invocation.plugin)
                     : 0;
}

static void report(Attachment *attachment, int r, const Error *error) {
        attachment->state = ATTACHMENT_IDLE;
        attachment->sandbox = NULL;
        attachment->pod = NULL;
        attachment->token[0] = '\0';
        attachment->done(r, error, attachment->userdata);
}

static void begin_delete(Attachment *attachment);

/* An ADD that failed is deleted; then its failure is what is reported. */
static void fail_add(Attachment *attachment, int r, Error *error) {
        attachment->failure_code = r;
        error_done(&attachment->failure);
        if (!error->message)
                (void) error_prefixf(error, r, "plugins cannot be run");
        error_move(&attachment->failure, error);
        attachment->pod = NULL;
        begin_delete(attachment);
}

static void step_add(Attachment *attachment) {
        cleanup_error Error error = ERROR_NULL;
        int r;

        if (attachment->step < network_n_steps(attachment->network, NETWORK_ADD))
                r = run_step(attachment, NETWORK_ADD, &error);
        else {
                r = store(attachment, &error);
                if (r >= 0)
                        report(attachment, 0, NULL);
        }
        if (r < 0)
                fail_add(attachment, r, &error);
}

static void on_added(Attachment *attachment, const NetworkAnswer *answer) {
        cleanup_error Error error = ERROR_NULL;
        int r = network_take(attachment->network, NETWORK_ADD, attachment->step++, answer, &error);

        if (r < 0)
                fail_add(attachment, r, &error);
        else
                step_add(attachment);
}

static int make_network(Attachment *attachment, const Pod *pod, Error *reterr) {
        cleanup_free char *text = NULL, *file = NULL;
        int r = network_config_read(attachment->places->config_dir, &text, &file, reterr);

        if (r < 0)
                return r;
        r = network_new(text, attachment->places->plugin_path, pod, attachment->next_number,
                        &attachment->network, reterr);
        if (r < 0)
                return error_prefixf(reterr, r, "%s", file ? file : "the default network");
        r = store(attachment, reterr);
        if (r < 0) /* nothing was begun */
                attachment->network = network_free(attachment->network);
        return r;
}

static void begin_add(Attachment *attachment) {
        cleanup_error Error error = ERROR_NULL;
        int r;

        /* Never in the node's namespace, whatever the shim may be. */
        attachment_hold(attachment, attachment->sandbox);
        if (attachment->netns_fd < 0)
                r = error_setf(&error, ENOTTY, "the sandbox has no network namespace of its own");
        else
                r = make_network(attachment, attachment->pod, &error);
        if (r < 0) {
                report(attachment, r, &error);
                return;
        }
        attachment->state = ATTACHMENT_ADDING;
        attachment->step = 0;
        step_add(attachment);
}

/* All is deleted. */
static void finish_delete(Attachment *attachment) {
        cleanup_error Error failure = ERROR_NULL;
        int r = attachment->failure_code;

        forget(attachment);
        attachment->failure_code = 0;
        error_move(&failure, &attachment->failure);
        if (attachment->pod)
                begin_add(attachment);
        else
                report(attachment, r, r < 0 ? &failure : NULL);
}

static void fail_delete(Attachment *attachment) {
        cleanup_error Error both = ERROR_NULL, failure = ERROR_NULL;
        int r = attachment->delete_failure_code;

        error_move(&failure, &attachment->delete_failure);
        if (attachment->failure_code < 0)
                (void) error_setf(&both, -r, "%s; and then %s",
                                  error_message(&attachment->failure, attachment->failure_code),
                                  error_message(&failure, r));
        else
                error_move(&both, &failure);
        attachment->delete_failure_code = attachment->failure_code = 0;
        error_done(&attachment->failure);
        report(attachment, r, &both);
}

/* A plugin that fails to delete does not keep the others from it. */
static void note_delete_failure(Attachment *attachment, int r, Error *error) {
        if (attachment->delete_failure_code == 0) {
                attachment->delete_failure_code = r;
                error_move(&attachment->delete_failure, error);
        }
}

static void step_delete(Attachment *attachment) {
        size_t n = network_n_steps(attachment->network, NETWORK_DEL);

        for (; attachment->step < n; attachment->step++) {
                cleanup_error Error error = ERROR_NULL;
                int r = run_step(attachment, NETWORK_DEL, &error);

                if (r >= 0)
                        return;
                note_delete_failure(attachment, r, &error);
        }
        if (attachment->delete_failure_code < 0)
                fail_delete(attachment);
        else
                finish_delete(attachment);
}

static void on_deleted(Attachment *attachment, const NetworkAnswer *answer) {
        cleanup_error Error error = ERROR_NULL;
        int r = network_take(attachment->network, NETWORK_DEL, attachment->step++, answer, &error);

        if (r < 0)
                note_delete_failure(attachment, r, &error);
        step_delete(attachment);
}

/* Of a damaged record: what the first sandbox of the pod would have been given by the configuration
 * of now. */
static int assume(Attachment *attachment, Error *reterr) {
        char nobody[] = "";
        cleanup_free char *uid = strdup(attachment->uid);
        const Pod pod = { .metadata = { .name = nobody, .namespace = nobody, .uid = uid } };

        int r = uid ? make_network(attachment, &pod, reterr) : -ENOMEM;

        if (r >= 0)
                network_note_begun(attachment->network,
                                   network_n_steps(attachment->network, NETWORK_ADD));
        return r;
}

static void begin_delete(Attachment *attachment) {
        cleanup_error Error error = ERROR_NULL;
        int r = attachment->network ? 0 : assume(attachment, &error);

        if (r >= 0) {
                network_begin_delete(attachment->network);
                r = store(attachment, &error);
        }
        if (r < 0) {
                note_delete_failure(attachment, r, &error);
                fail_delete(attachment);
                return;
        }
        attachment->state = ATTACHMENT_DELETING;
        attachment->step = 0;
        step_delete(attachment);
}

void attachment_attach(Attachment *attachment, Sandbox *sandbox, const Pod *pod) {
        attachment->sandbox = sandbox;
        attachment->pod = pod;
        if (attachment_is_known(attachment))
                begin_delete(attachment);
        else
                begin_add(attachment);
}

void attachment_detach(Attachment *attachment, Sandbox *sandbox) {
        attachment->sandbox = sandbox;
        attachment->pod = NULL;
        if (attachment_is_known(attachment))
                begin_delete(attachment);
        else
                report(attachment, 0, NULL);
}

static void report_check(Attachment *attachment, int r, const Error *error) {
        attachment_interrupt(attachment);
        attachment->checked(r, error, attachment->userdata);
}

static void step_check(Attachment *attachment) {
        cleanup_error Error error = ERROR_NULL;
        int r = 0;

        if (attachment->step < network_n_steps(attachment->network, NETWORK_CHECK))
                r = run_step(attachment, NETWORK_CHECK, &error);
        else
                report_check(attachment, 0, NULL);
        if (r < 0)
                report_check(attachment, r, &error);
}

static void on_checked(Attachment *attachment, const NetworkAnswer *answer) {
        cleanup_error Error error = ERROR_NULL;
        int r = network_take(attachment->network, NETWORK_CHECK, attachment->step++, answer,
                             &error);

        if (r < 0)
                report_check(attachment, r, &error);
        else
                step_check(attachment);
}

void attachment_check(Attachment *attachment, Sandbox *sandbox, attachment_done_t checked) {
        if (attachment->state != ATTACHMENT_IDLE || !attachment_is_attached(attachment))
                return;
        attachment->sandbox = sandbox;
        attachment->checked = checked;
        attachment->state = ATTACHMENT_CHECKING;
        attachment->step = 0;
        step_check(attachment);
}

void attachment_interrupt(Attachment *attachment) {
        attachment->state = ATTACHMENT_IDLE;
        attachment->sandbox = NULL;
        attachment->pod = NULL;
        attachment->token[0] = '\0';
        attachment->failure_code = attachment->delete_failure_code = 0;
        error_done(&attachment->failure);
        error_done(&attachment->delete_failure);
}

void attachment_lose(Attachment *attachment) {
        attachment_interrupt(attachment);
        if (attachment->network)
                network_begin_delete(attachment->network);
}

bool attachment_handle(Attachment *attachment, const SandboxEvent *event) {
        NetworkAnswer answer = {
                .has_run = !event->message[0],
                .timed_out = event->timed_out,
                .exit_code = event->exit_code,
                .output = event->output,
                .error = event->message[0] ? event->message : event->error,
        };

        if (attachment->state == ATTACHMENT_IDLE || !streq_ptr(event->id, attachment->token))
                return false;
        if (attachment->state == ATTACHMENT_ADDING)
                on_added(attachment, &answer);
        else if (attachment->state == ATTACHMENT_DELETING)
                on_deleted(attachment, &answer);
        else
                on_checked(attachment, &answer);
        return true;
}
