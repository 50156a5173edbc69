/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A pod's attachment to its network: network/ says which plugins, a shim runs them, and what they
 * added is on disk before it is used, in <state-dir>/pods/<uid>/network, so that any later agent
 * deletes it with the same words.
 *
 * Addresses do not leak: what was begun is written down before it begins; whatever is written down
 * is deleted before something new is added, after a plugin failed, and before the last shim of the
 * pod ends. Where the shim is gone another one runs the plugins, in the network namespace of the
 * lost one as long as this agent holds it, else without one, which CNI allows; those that look for
 * the pod's addresses in it are given a stand-in before. */

#include "agent/bundle/bundle.h"
#include "agent/cni/cni.h"
#include "agent/sandbox/sandbox.h"

typedef struct NetworkAttachment NetworkAttachment;

/* The end of network_attachment_attach() or network_attachment_detach(), from the loop: 0, or
 * -errno with the sentence. After a failed attach nothing is left of it, unless the sentence says
 * so; then it is still known here, and the next call begins with it. */
typedef void (*network_attachment_done_t)(int r, const Error *error, void *userdata);

/* 'uid' is borrowed, and so are the configurations. */
int network_attachment_new(const BundleConfig *bundle, const CniPaths *places, const char *uid,
                           network_attachment_done_t done, void *userdata, NetworkAttachment **ret);

/* Forgets it; what is on disk stays. Nothing calls back any more. */
NetworkAttachment *network_attachment_free(NetworkAttachment *attachment);

/* Reads what an earlier agent wrote down. A record that does not verify is set aside and named in
 * the log. 1: there is one; 0: there is none; -EBADMSG: there was, and nothing is known of it. */
int network_attachment_load(NetworkAttachment *attachment);

/* Something was begun that is not deleted; also where its record was damaged. */
bool network_attachment_is_known(const NetworkAttachment *attachment);

/* It was asked to go, by this agent or an earlier one, and may be half gone. Not true of one of
 * which nothing is known. */
bool network_attachment_is_deleting(const NetworkAttachment *attachment);

/* The pod has its addresses. */
bool network_attachment_is_attached(const NetworkAttachment *attachment);
const char *network_attachment_address(const NetworkAttachment *attachment, size_t i);

/* Deletes what is known, then adds, by the configuration of now. */
void network_attachment_attach(NetworkAttachment *attachment, Sandbox *sandbox, const Pod *pod);

/* Deletes what is known. */
void network_attachment_detach(NetworkAttachment *attachment, Sandbox *sandbox);

/* Asks the plugins whether what they added is still in place; 'checked' is told, with the sentence
 * of the first that says no. Nothing is changed by it. Attaching and detaching forget it. */
void network_attachment_check(NetworkAttachment *attachment, Sandbox *sandbox,
                              network_attachment_done_t checked);

/* True where the sandbox is in a network namespace that is not ours. */
bool sandbox_has_network(const Sandbox *sandbox);

/* Holds the network namespace of the sandbox, so that it can be tidied up should the shim end. One
 * that is held already, and the node's own, are left alone. */
void network_attachment_hold_netns(NetworkAttachment *attachment, const Sandbox *sandbox);

/* The shim may not have heard: what is under way is forgotten, and to be asked for again. */
void network_attachment_interrupt(NetworkAttachment *attachment);

/* The shim is gone and its namespace with it: what is known is to be deleted. */
void network_attachment_on_sandbox_lost(NetworkAttachment *attachment);

/* For SANDBOX_EXEC_DONE: true where it was ours. */
bool network_attachment_on_exec_done(NetworkAttachment *attachment, const SandboxEvent *event);
