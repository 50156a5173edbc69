/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* CNI, the network plugins for pods (specification 0.3.0 to 1.1.0): determines which plugins run,
 * with which JSON, and in which order. Nothing here starts a process. The configuration directory
 * and the files of the IPAM plugin host-local are read; the rest is computed.
 *
 * A CniNetwork is the attachment of one pod: its configuration, the capability arguments, and the
 * results of the plugins. It can be stored as text, so that a later agent runs DEL with the input
 * of ADD; between two commands it is packed, which takes a fifth of the memory. */

#include "agent/cni/config-directory.h"
#include "agent/cni/limits.h"
#include "agent/model/pod.h"
#include "common/error.h"

typedef enum CniCommand {
        CNI_ADD,
        CNI_DEL,
        CNI_CHECK,
        N_CNI_COMMANDS,
} CniCommand;

typedef struct CniNetwork CniNetwork;

/* The attachment of a pod to the network that 'config' (the text) describes. 'number' is the number
 * of the pod's sandbox: each sandbox has its own CNI_CONTAINERID. -EINVAL with a message for an
 * invalid configuration, hostPort or annotation. */
int cni_network_new(const char *config, const char *plugin_path, const Pod *pod, unsigned number,
                    CniNetwork **ret, Error *reterr);
CniNetwork *cni_network_free(CniNetwork *network);
DEFINE_CLEANUP(CniNetwork *, cni_network_free)

/* Converts it to text, which the caller frees (NULL: out of memory), and back (-EBADMSG with a
 * message). */
char *cni_network_to_text(const CniNetwork *network);
int cni_network_from_text(const char *text, CniNetwork **ret, Error *reterr);

/* A packed attachment keeps only its number, its addresses, and whether it is attached; every other
 * function needs it unpacked. Unpacking returns 0 or -ENOMEM; packing changes nothing if memory is
 * exhausted. Both may be called twice. */
void cni_network_pack(CniNetwork *network);
int cni_network_unpack(CniNetwork *network);

unsigned cni_network_sandbox_number(const CniNetwork *network);

/* The number of plugin runs that a command takes. DEL runs the plugins that ADD has started; CHECK
 * runs none if the configuration disables it. A plugin that masquerades ("ipMasq") reads from the
 * pod's interface the addresses whose rules it must remove. Before its regular DEL, it is run once
 * more for each address of the pod, with a dummy interface if the pod's interface is gone. */
size_t cni_network_n_steps(const CniNetwork *network, CniCommand command);

/* Records that ADD starts its step 'n' - 1. Called before the plugin runs and before the text is
 * stored: DEL skips plugins that are not recorded. */
void cni_network_record_add_step(CniNetwork *network, size_t n);

/* The command that the shim runs for one step. It owns its strings, except for interface and
 * address. */
typedef struct CniInvocation {
        char *plugin; /* type of the plugin */
        char **argv;
        char **environment;
        char *input;
        const char *interface; /* NULL, or the step runs only if the pod's interface … */
        const char *address;   /* … with this address is gone, and uses a dummy interface */
        bool enables_ipv6_forwarding; /* the plugin may enable IPv6 forwarding for the whole node */
} CniInvocation;

/* Builds the invocation of one step. DEL runs the plugins in reverse order. 'netns' is the path of
 * the pod's network namespace, "" if it is gone. ADD passes the previous result on to the next
 * plugin; DEL and CHECK get the last one. -ENOENT with a message if the plugin is not installed. */
int cni_invocation_build(const CniNetwork *network, CniCommand command, size_t step,
                         const char *netns, CniInvocation *ret, Error *reterr);
void cni_invocation_done(CniInvocation *invocation);

/* How a plugin exited. */
typedef struct CniPluginExit {
        bool has_run;
        bool timed_out;
        int exit_code;
        const char *output;
        const char *error; /* a message: why it did not run, or the last line of its output */
} CniPluginExit;

/* Processes the result of a step. It is an error if the attachment has no address after the last
 * step of ADD. 0 or -errno with a message that names the plugin. */
int cni_network_process_exit(CniNetwork *network, CniCommand command, size_t step,
                             const CniPluginExit *exit, Error *reterr);

/* True after ADD is complete, until DEL starts. */
bool cni_network_is_attached(const CniNetwork *network);

/* Called before the steps of DEL, and before the text is stored. Records the addresses of the pod:
 * from the result or, if ADD was interrupted before it returned one, from the files of host-local,
 * which the first DEL may remove. */
void cni_network_begin_delete(CniNetwork *network);

/* The sandbox and its addresses are lost, but DEL does not start yet. The attachment may be
 * packed. */
void cni_network_set_lost(CniNetwork *network);

/* The i-th address of the pod: at most one of each family, IPv4 first. NULL after the last. */
const char *cni_network_address(const CniNetwork *network, size_t i);
