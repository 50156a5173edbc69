/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The attachment of a pod to its network (CNI ADD, CHECK, DEL): cni/ determines the plugins, the
 * shim runs them. Additions are recorded on disk before they are used, in
 * <state-dir>/pods/<uid>/network, so that a later agent deletes them with the same configuration.
 *
 * Addresses do not leak: each step is recorded before it starts, and recorded additions are deleted
 * before a new attachment, after a failed plugin, and before the pod's last shim exits. After the
 * loss of a shim, a new one runs the plugins: in the network namespace of the lost one if this
 * agent still holds it, otherwise without a namespace, which CNI allows. Plugins that look up the
 * pod's addresses in the namespace get a dummy interface. */

#include "agent/bundle/bundle.h"
#include "agent/cni/cni.h"
#include "agent/sandbox/sandbox.h"

#include <stdio.h>

typedef struct NetworkAttachment NetworkAttachment;

/* The result of network_attachment_attach() or network_attachment_detach(), from the loop: 0, or
 * -errno with an error. A failed attach leaves nothing behind, unless the error reports this; then
 * the attachment is still known, and the next call first deletes it. */
typedef void (*network_attachment_done_t)(int r, const Error *error, void *userdata);

/* 'uid' and the configurations are borrowed. */
int network_attachment_new(const BundleConfig *bundle, const CniSettings *settings, const char *uid,
                           network_attachment_done_t done, void *userdata, NetworkAttachment **ret);

/* Frees it; the record stays on disk. No callback follows. */
NetworkAttachment *network_attachment_free(NetworkAttachment *attachment);

/* Reads the record of an earlier agent. A damaged one is set aside and logged. 1: there is one; 0:
 * there is none; -EBADMSG: it was damaged; or another -errno, which is logged: the deletion reads
 * it again. */
int network_attachment_load(NetworkAttachment *attachment);

/* Whether there is something to delete; also true if the record was damaged or cannot be read. */
bool network_attachment_is_known(const NetworkAttachment *attachment);

/* Whether a deletion was started, by this agent or an earlier one. False if the record was
 * damaged. */
bool network_attachment_is_deleting(const NetworkAttachment *attachment);

/* Whether the pod has its addresses. */
bool network_attachment_is_attached(const NetworkAttachment *attachment);
const char *network_attachment_address(const NetworkAttachment *attachment, size_t i);

/* Deletes the known attachment, if any, then adds one with the current configuration. */
void network_attachment_attach(NetworkAttachment *attachment, Sandbox *sandbox, const Pod *pod);

/* Deletes the known attachment. */
void network_attachment_detach(NetworkAttachment *attachment, Sandbox *sandbox);

/* CNI CHECK: the plugins check whether their additions are still in place; 'checked' gets the first
 * error. Changes nothing. Attaching and detaching cancel it. */
void network_attachment_check(NetworkAttachment *attachment, Sandbox *sandbox,
                              network_attachment_done_t checked);

/* Whether the sandbox has its own network namespace. */
bool sandbox_has_network(const Sandbox *sandbox);

/* Keeps the network namespace of the sandbox open, for a deletion after the loss of the shim. Does
 * nothing if a namespace is already held, or if the pod is in the host network. */
void network_attachment_hold_netns(NetworkAttachment *attachment, const Sandbox *sandbox);

/* The connection to the shim was interrupted: the current request is cancelled, and must be made
 * again.
 */
void network_attachment_interrupt(NetworkAttachment *attachment);

/* The shim and its namespace are gone: the known attachment must be deleted. */
void network_attachment_on_sandbox_lost(NetworkAttachment *attachment);

/* Records the loss on disk. To be called before another shim is started, because the next agent
 * would otherwise mistake it for the one that was attached. 0, or -errno with a message. */
int network_attachment_record_sandbox_lost(NetworkAttachment *attachment, Error *reterr);

/* Prints its state, addresses and errors for `mainstay debug dump`. */
void network_attachment_dump(const NetworkAttachment *attachment, FILE *out);
