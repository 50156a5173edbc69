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
#include "agent/network/network.h"
#include "agent/sandbox/sandbox.h"

typedef struct Attachment Attachment;

/* The end of attachment_attach() or attachment_detach(), from the loop: 0, or -errno with the
 * sentence. After a failed attach nothing is left of it, unless the sentence says so; then it is
 * still known here, and the next call begins with it. */
typedef void (*attachment_done_t)(int r, const Error *error, void *userdata);

/* 'uid' is borrowed, and so are the configurations. */
int attachment_new(const BundleConfig *bundle, const NetworkPlaces *places, const char *uid,
                   attachment_done_t done, void *userdata, Attachment **ret);

/* Forgets it; what is on disk stays. Nothing calls back any more. */
Attachment *attachment_free(Attachment *attachment);

/* Reads what an earlier agent wrote down. A record that does not verify is set aside and named in
 * the log. 1: there is one; 0: there is none; -EBADMSG: there was, and nothing is known of it. */
int attachment_load(Attachment *attachment);

/* Something was begun that is not deleted; also where its record was damaged. */
bool attachment_is_known(const Attachment *attachment);

/* It was asked to go, by this agent or an earlier one, and may be half gone. Not true of one of
 * which nothing is known. */
bool attachment_is_deleting(const Attachment *attachment);

/* The pod has its addresses. */
bool attachment_is_attached(const Attachment *attachment);
const char *attachment_address(const Attachment *attachment, size_t i);

/* Deletes what is known, then adds, by the configuration of now. */
void attachment_attach(Attachment *attachment, Sandbox *sandbox, const Pod *pod);

/* Deletes what is known. */
void attachment_detach(Attachment *attachment, Sandbox *sandbox);

/* Asks the plugins whether what they added is still in place; 'checked' is told, with the sentence
 * of the first that says no. Nothing is changed by it. Attaching and detaching forget it. */
void attachment_check(Attachment *attachment, Sandbox *sandbox, attachment_done_t checked);

/* True where the sandbox is in a network namespace that is not ours. */
bool sandbox_has_network(const Sandbox *sandbox);

/* Holds the network namespace of the sandbox, so that it can be tidied up should the shim end. One
 * that is held already, and the node's own, are left alone. */
void attachment_hold(Attachment *attachment, const Sandbox *sandbox);

/* The shim may not have heard: what is under way is forgotten, and to be asked for again. */
void attachment_interrupt(Attachment *attachment);

/* The shim is gone and its namespace with it: what is known is to be deleted. */
void attachment_lose(Attachment *attachment);

/* For SANDBOX_EXEC_DONE: true where it was ours. */
bool attachment_handle(Attachment *attachment, const SandboxEvent *event);
