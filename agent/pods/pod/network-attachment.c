/* SPDX-License-Identifier: Apache-2.0 */
/* The plugins run one after another; the shim starts each of them. The states: idle; adding (step
 * n); deleting (step n), followed by adding, idle, or a report of the failure that led to the
 * deletion; checking (step n). */

#include "agent/pods/pod/network-attachment.h"

#include "agent/bundle/pod-paths.h"
#include "common/checksummed.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/dump.h"
#include "common/failpoint.h"
#include "common/file.h"
#include "common/log.h"

#include <fcntl.h>
#include <sys/stat.h>

enum {
        PLUGIN_TIMEOUT_SEC = 60,
};

typedef enum NetworkAttachmentState {
        NETWORK_ATTACHMENT_IDLE,
        NETWORK_ATTACHMENT_ADDING,
        NETWORK_ATTACHMENT_DELETING,
        NETWORK_ATTACHMENT_CHECKING,
} NetworkAttachmentState;

struct NetworkAttachment {
        const BundleConfig *bundle;
        const CniSettings *settings;
        const char *uid;
        network_attachment_done_t done;
        network_attachment_done_t checked;
        void *userdata;

        CniNetwork *network; /* the record on disk; NULL: no plugin was started */
        unsigned next_number;
        NetworkAttachmentState state;
        size_t step;
        Sandbox *sandbox; /* while an operation is in progress */
        const Pod *pod;   /* to be added after the deletion; NULL: none */
        Error failure;    /* failure of the ADD that led to the deletion */
        int failure_code;
        Error delete_failure; /* first failure of the current deletion */
        int delete_failure_code;
        bool is_damaged;   /* the record is damaged or unreadable; something may be left */
        bool is_built_in;  /* the network that is being added is the built-in one */
        SandboxExec *exec; /* the running plugin */
        int netns_fd;      /* the namespace of the sandbox that was attached, or -EBADF */
        pid_t netns_pid;
};

static const char network_record_name[] = "network";

int network_attachment_new(const BundleConfig *bundle, const CniSettings *settings, const char *uid,
                           network_attachment_done_t done, void *userdata,
                           NetworkAttachment **ret) {
        NetworkAttachment *attachment = calloc(1, sizeof(*attachment));

        if (!attachment)
                return -ENOMEM;
        *attachment = (NetworkAttachment){
                .bundle = bundle,
                .settings = settings,
                .uid = uid,
                .done = done,
                .userdata = userdata,
                .netns_fd = -EBADF,
        };
        *ret = attachment;
        return 0;
}

NetworkAttachment *network_attachment_free(NetworkAttachment *attachment) {
        if (!attachment)
                return NULL;
        sandbox_exec_cancel(attachment->exec);
        cni_network_free(attachment->network);
        error_done(&attachment->failure);
        error_done(&attachment->delete_failure);
        close_fd(attachment->netns_fd);
        free(attachment);
        return NULL;
}

bool network_attachment_is_known(const NetworkAttachment *attachment) {
        return attachment->network != NULL || attachment->is_damaged;
}

bool network_attachment_is_deleting(const NetworkAttachment *attachment) {
        return attachment->network && !cni_network_is_attached(attachment->network);
}

bool network_attachment_is_attached(const NetworkAttachment *attachment) {
        return attachment->network && cni_network_is_attached(attachment->network);
}

const char *network_attachment_address(const NetworkAttachment *attachment, size_t i) {
        const CniNetwork *network = attachment->network;

        if (!network_attachment_is_attached(attachment))
                return NULL;
        /* As in the kubelet, the family of the node's address comes first. */
        if (attachment->settings->is_ipv6_first && i < 2 && cni_network_address(network, 1))
                i = 1 - i;
        return cni_network_address(network, i);
}

/* ---- on disk ---- */

static int open_network_state_dir(const NetworkAttachment *attachment) {
        cleanup_free char *path = pod_state_dir(attachment->bundle, attachment->uid);
        int fd = path ? open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;

        if (!path)
                return -ENOMEM;
        return fd < 0 ? -errno : fd;
}

static int store_network_record(const NetworkAttachment *attachment, Error *reterr) {
        cleanup_close int fd = open_network_state_dir(attachment);
        cleanup_free char *text = cni_network_to_text(attachment->network);
        int r = fd < 0 ? fd : -ENOMEM;

        if (fd >= 0 && text)
                r = checksummed_write_at(fd, network_record_name, text, 0600);
        DIE_AT("network.recorded");
        return r < 0 ? error_prefixf(reterr, r, "cannot write the record of the pod's network") : 0;
}

static void forget_network_record(NetworkAttachment *attachment) {
        cleanup_close int fd = open_network_state_dir(attachment);

        DIE_AT("network.forget-record");
        if (fd >= 0)
                (void) unlinkat(fd, network_record_name, 0);
        if (attachment->network)
                attachment->next_number = cni_network_sandbox_number(attachment->network) + 1;
        attachment->network = cni_network_free(attachment->network);
        attachment->is_damaged = false;
        attachment->netns_fd = close_fd(attachment->netns_fd);
        attachment->netns_pid = 0;
}

int network_attachment_load(NetworkAttachment *attachment) {
        cleanup_close int fd = open_network_state_dir(attachment);
        cleanup_free char *text = NULL;
        cleanup_error Error error = ERROR_NULL;
        int r = fd < 0 ? fd : checksummed_read_at(fd, network_record_name, CNI_RECORD_MAX, &text);

        if (r == -ENOENT)
                return 0;
        if (r >= 0)
                r = cni_network_from_text(text, &attachment->network, &error);
        if (r >= 0)
                cni_network_pack(attachment->network);
        attachment->is_damaged = r < 0;
        if (r >= 0)
                return 1;
        if (!is_content_damage(text, r)) {
                log_warning("Cannot read the network record of pod %s: %s", attachment->uid,
                            error_message(&error, r));
                return r;
        }
        log_warning("Setting aside the damaged network record of pod %s: %s", attachment->uid,
                    error_message(&error, r));
        checksummed_set_aside_at(fd, network_record_name);
        return -EBADMSG;
}

/* ---- plugins ---- */

bool sandbox_has_network(const Sandbox *sandbox) {
        cleanup_close int fd = sandbox_open_network_namespace(sandbox);

        return fd != -ENOENT;
}

void network_attachment_hold_netns(NetworkAttachment *attachment, const Sandbox *sandbox) {
        if (attachment->netns_fd >= 0)
                return;
        attachment->netns_fd = sandbox_open_network_namespace(sandbox);
        attachment->netns_pid = sandbox_pid(sandbox);
}

/* The attachment's network namespace: the shim's, or the one that the agent holds for a lost shim.
 * If the shim runs, the path contains the shim's PID rather than the agent's, because the plugin
 * may outlive the agent. */
static void print_netns_path(const NetworkAttachment *attachment, char *buffer, size_t size) {
        pid_t shim = sandbox_pid(attachment->sandbox);

        if (attachment->netns_fd < 0)
                buffer[0] = '\0';
        else if (attachment->netns_pid == shim)
                (void) snprintf(buffer, size, "/proc/%d/ns/net", (int) shim);
        else
                (void) snprintf(buffer, size, "/proc/%d/fd/%d", (int) getpid(),
                                attachment->netns_fd);
}

static void on_cni_plugin_done(const ShimEvent *event, void *userdata);

/* Before a plugin runs, its step is stored on disk, with the results of the plugins before it. */
static int run_cni_plugin(NetworkAttachment *attachment, CniCommand command, Error *reterr) {
        cleanup_with(cni_invocation_done) CniInvocation invocation = { 0 };
        char netns[64];
        int r;

        print_netns_path(attachment, netns, sizeof(netns));
        r = cni_invocation_build(attachment->network, command, attachment->step, netns, &invocation,
                                 reterr);
        if (r < 0)
                return r;
        if (command == CNI_ADD) {
                cni_network_record_add_step(attachment->network, attachment->step + 1);
                r = store_network_record(attachment, reterr);
        }
        if (r < 0)
                return r;
        r = sandbox_run_program(
                attachment->sandbox,
                &(SandboxProgram){
                        .argv = invocation.argv,
                        .environment = invocation.environment,
                        .input = invocation.input,
                        .in_host = true,
                        .timeout_usec = PLUGIN_TIMEOUT_SEC * USEC_PER_SEC,
                        .interface = invocation.interface,
                        .address = invocation.address,
                        .keeps_router_advertisements = invocation.enables_ipv6_forwarding,
                },
                on_cni_plugin_done, attachment, &attachment->exec);
        return r < 0 ? error_prefixf(reterr, r, "cannot run the plugin '%s'", invocation.plugin)
                     : 0;
}

static void become_idle(NetworkAttachment *attachment) {
        attachment->state = NETWORK_ATTACHMENT_IDLE;
        attachment->sandbox = NULL;
        attachment->pod = NULL;
        attachment->exec = sandbox_exec_cancel(attachment->exec);
        if (attachment->network)
                cni_network_pack(attachment->network);
}

static void report_attachment_done(NetworkAttachment *attachment, int r, const Error *error) {
        become_idle(attachment);
        attachment->done(r, error, attachment->userdata);
}

static void begin_network_delete(NetworkAttachment *attachment);

/* The next attempt omits IPv6. */
static void drop_broken_ipv6(const NetworkAttachment *attachment) {
        const char *message = error_message(&attachment->failure, attachment->failure_code);

        if (attachment->is_built_in &&
            cni_built_in_drop_ipv6(attachment->settings->built_in, message))
                log_warning("The built-in network continues without IPv6: %s; when the cause is "
                            "removed, restart mainstayd",
                            message);
}

/* After a failed ADD everything is deleted; then the failure is reported. */
static void fail_network_add(NetworkAttachment *attachment, int r, Error *error) {
        attachment->failure_code = r;
        error_done(&attachment->failure);
        if (!error->message)
                (void) error_prefixf(error, r, "plugins cannot be run");
        error_move(&attachment->failure, error);
        drop_broken_ipv6(attachment);
        attachment->pod = NULL;
        begin_network_delete(attachment);
}

static void step_cni_add(NetworkAttachment *attachment) {
        cleanup_error Error error = ERROR_NULL;
        int r;

        if (attachment->step < cni_network_n_steps(attachment->network, CNI_ADD))
                r = run_cni_plugin(attachment, CNI_ADD, &error);
        else {
                r = store_network_record(attachment, &error);
                if (r >= 0)
                        report_attachment_done(attachment, 0, NULL);
        }
        if (r < 0)
                fail_network_add(attachment, r, &error);
}

static void on_cni_add_done(NetworkAttachment *attachment, const CniPluginExit *answer) {
        cleanup_error Error error = ERROR_NULL;
        int r = cni_network_process_exit(attachment->network, CNI_ADD, attachment->step++, answer,
                                         &error);

        if (r < 0)
                fail_network_add(attachment, r, &error);
        else
                step_cni_add(attachment);
}

static int new_network_from_config(NetworkAttachment *attachment, const CniSettings *settings,
                                   const Pod *pod, Error *reterr) {
        cleanup_free char *text = NULL, *file = NULL;
        int r = cni_config_load(settings, &text, &file, reterr);

        if (r < 0)
                return r;
        attachment->is_built_in = !file;
        r = cni_network_new(text, settings->plugin_path, pod, attachment->next_number,
                            &attachment->network, reterr);
        if (r < 0)
                return error_prefixf(reterr, r, "%s", file ? file : "the default network");
        r = store_network_record(attachment, reterr);
        if (r < 0) /* no plugin was started */
                attachment->network = cni_network_free(attachment->network);
        return r;
}

static void begin_network_add(NetworkAttachment *attachment) {
        cleanup_error Error error = ERROR_NULL;
        int r;

        /* Plugins never run in the host's network namespace. */
        network_attachment_hold_netns(attachment, attachment->sandbox);
        if (attachment->netns_fd < 0)
                r = error_setf(&error, ENOTTY, "the sandbox is in the host network namespace");
        else
                r = new_network_from_config(attachment, attachment->settings, attachment->pod,
                                            &error);
        if (r < 0) {
                report_attachment_done(attachment, r, &error);
                return;
        }
        attachment->state = NETWORK_ATTACHMENT_ADDING;
        attachment->step = 0;
        step_cni_add(attachment);
}

/* All plugins have run DEL. */
static void finish_network_delete(NetworkAttachment *attachment) {
        cleanup_error Error failure = ERROR_NULL;
        int r = attachment->failure_code;

        forget_network_record(attachment);
        attachment->failure_code = 0;
        error_move(&failure, &attachment->failure);
        if (attachment->pod)
                begin_network_add(attachment);
        else
                report_attachment_done(attachment, r, r < 0 ? &failure : NULL);
}

static void fail_network_delete(NetworkAttachment *attachment) {
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
        report_attachment_done(attachment, r, &both);
}

/* If a plugin fails, the others delete their additions nevertheless. */
static void keep_first_delete_error(NetworkAttachment *attachment, int r, Error *error) {
        if (attachment->delete_failure_code == 0) {
                attachment->delete_failure_code = r;
                error_move(&attachment->delete_failure, error);
        }
}

static void step_cni_del(NetworkAttachment *attachment) {
        size_t n = cni_network_n_steps(attachment->network, CNI_DEL);

        for (; attachment->step < n; attachment->step++) {
                cleanup_error Error error = ERROR_NULL;
                int r = run_cni_plugin(attachment, CNI_DEL, &error);

                if (r >= 0)
                        return;
                keep_first_delete_error(attachment, r, &error);
        }
        if (attachment->delete_failure_code < 0)
                fail_network_delete(attachment);
        else
                finish_network_delete(attachment);
}

static void on_cni_del_done(NetworkAttachment *attachment, const CniPluginExit *answer) {
        cleanup_error Error error = ERROR_NULL;
        int r = cni_network_process_exit(attachment->network, CNI_DEL, attachment->step++, answer,
                                         &error);

        if (r < 0)
                keep_first_delete_error(attachment, r, &error);
        step_cni_del(attachment);
}

/* Replaces a damaged record: assumes the network that the pod's first sandbox would get from the
 * current configuration; without one, the built-in bridge, which the node may have had before it
 * joined a cluster. */
static int assume_default_network(NetworkAttachment *attachment, Error *reterr) {
        char nobody[] = "";
        cleanup_free char *uid = strdup(attachment->uid);
        const Pod pod = { .metadata = { .name = nobody, .namespace = nobody, .uid = uid } };

        CniSettings settings = *attachment->settings;
        int r;

        settings.has_default = true;
        r = uid ? new_network_from_config(attachment, &settings, &pod, reterr) : -ENOMEM;
        if (r < 0)
                return r;
        cni_network_record_add_step(attachment->network,
                                    cni_network_n_steps(attachment->network, CNI_ADD));
        return 0;
}

static int record_network_delete(NetworkAttachment *attachment, Error *reterr) {
        int r = attachment->network ? 1 : network_attachment_load(attachment);

        if (r < 0 && r != -EBADMSG)
                return error_prefixf(reterr, r, "cannot read the record of the pod's network");
        if (r <= 0)
                r = assume_default_network(attachment, reterr);
        if (r >= 0)
                r = cni_network_unpack(attachment->network);
        if (r < 0)
                return r;
        cni_network_begin_delete(attachment->network);
        return store_network_record(attachment, reterr);
}

static void begin_network_delete(NetworkAttachment *attachment) {
        cleanup_error Error error = ERROR_NULL;
        int r = record_network_delete(attachment, &error);

        if (r < 0) {
                keep_first_delete_error(attachment, r, &error);
                fail_network_delete(attachment);
                return;
        }
        attachment->state = NETWORK_ATTACHMENT_DELETING;
        attachment->step = 0;
        step_cni_del(attachment);
}

/* The result of a plugin that is still running CHECK is ignored. */
static void set_attachment_target(NetworkAttachment *attachment, Sandbox *sandbox, const Pod *pod) {
        attachment->exec = sandbox_exec_cancel(attachment->exec);
        attachment->sandbox = sandbox;
        attachment->pod = pod;
}

void network_attachment_attach(NetworkAttachment *attachment, Sandbox *sandbox, const Pod *pod) {
        set_attachment_target(attachment, sandbox, pod);
        if (network_attachment_is_known(attachment))
                begin_network_delete(attachment);
        else
                begin_network_add(attachment);
}

void network_attachment_detach(NetworkAttachment *attachment, Sandbox *sandbox) {
        set_attachment_target(attachment, sandbox, NULL);
        if (network_attachment_is_known(attachment))
                begin_network_delete(attachment);
        else
                report_attachment_done(attachment, 0, NULL);
}

static void report_network_check(NetworkAttachment *attachment, int r, const Error *error) {
        network_attachment_interrupt(attachment);
        attachment->checked(r, error, attachment->userdata);
}

static void step_cni_check(NetworkAttachment *attachment) {
        cleanup_error Error error = ERROR_NULL;
        int r = cni_network_unpack(attachment->network);

        if (r >= 0 && attachment->step >= cni_network_n_steps(attachment->network, CNI_CHECK)) {
                report_network_check(attachment, 0, NULL);
                return;
        }
        if (r >= 0)
                r = run_cni_plugin(attachment, CNI_CHECK, &error);
        if (r < 0)
                report_network_check(attachment, r, &error);
}

static void on_cni_check_done(NetworkAttachment *attachment, const CniPluginExit *answer) {
        cleanup_error Error error = ERROR_NULL;
        int r = cni_network_process_exit(attachment->network, CNI_CHECK, attachment->step++, answer,
                                         &error);

        if (r < 0)
                report_network_check(attachment, r, &error);
        else
                step_cni_check(attachment);
}

void network_attachment_check(NetworkAttachment *attachment, Sandbox *sandbox,
                              network_attachment_done_t checked) {
        if (attachment->state != NETWORK_ATTACHMENT_IDLE ||
            !network_attachment_is_attached(attachment))
                return;
        attachment->sandbox = sandbox;
        attachment->checked = checked;
        attachment->state = NETWORK_ATTACHMENT_CHECKING;
        attachment->step = 0;
        step_cni_check(attachment);
}

void network_attachment_interrupt(NetworkAttachment *attachment) {
        become_idle(attachment);
        attachment->failure_code = attachment->delete_failure_code = 0;
        error_done(&attachment->failure);
        error_done(&attachment->delete_failure);
}

void network_attachment_on_sandbox_lost(NetworkAttachment *attachment) {
        network_attachment_interrupt(attachment);
        if (attachment->network)
                cni_network_set_lost(attachment->network);
}

int network_attachment_record_sandbox_lost(NetworkAttachment *attachment, Error *reterr) {
        int r;

        network_attachment_interrupt(attachment);
        if (!attachment->network)
                return 0;
        r = record_network_delete(attachment, reterr);
        cni_network_pack(attachment->network);
        return r;
}

static void on_cni_plugin_done(const ShimEvent *event, void *userdata) {
        NetworkAttachment *attachment = userdata;
        const CniPluginExit answer = {
                .has_run = !event->message[0],
                .timed_out = event->timed_out,
                .exit_code = event->exit_code,
                .output = event->output,
                .error = event->message[0] ? event->message : event->error,
        };

        attachment->exec = NULL;
        if (attachment->state == NETWORK_ATTACHMENT_ADDING)
                on_cni_add_done(attachment, &answer);
        else if (attachment->state == NETWORK_ATTACHMENT_DELETING)
                on_cni_del_done(attachment, &answer);
        else
                on_cni_check_done(attachment, &answer);
}

void network_attachment_dump(const NetworkAttachment *attachment, FILE *out) {
        static const char *const states[] = {
                [NETWORK_ATTACHMENT_IDLE] = "idle",
                [NETWORK_ATTACHMENT_ADDING] = "plugins add",
                [NETWORK_ATTACHMENT_DELETING] = "plugins delete",
                [NETWORK_ATTACHMENT_CHECKING] = "plugins check",
        };
        const char *address;

        dump_line(out, 2, "network: %s, %s%s",
                  network_attachment_is_attached(attachment) ? "attached"
                  : network_attachment_is_known(attachment)  ? "to be deleted"
                                                             : "not attached",
                  states[attachment->state],
                  attachment->is_damaged ? ", its record was damaged" : "");
        if (attachment->state != NETWORK_ATTACHMENT_IDLE)
                dump_line(out, 3, "step: %zu", attachment->step);
        for (size_t i = 0; (address = network_attachment_address(attachment, i)); i++)
                dump_line(out, 3, "address: %s", address);
        if (attachment->failure_code < 0)
                dump_line(out, 3, "last error: %s",
                          error_message(&attachment->failure, attachment->failure_code));
        if (attachment->delete_failure_code < 0)
                dump_line(out, 3, "last error of the deletion: %s",
                          error_message(&attachment->delete_failure,
                                        attachment->delete_failure_code));
}
