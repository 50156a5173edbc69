/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* CNI (the specification 1.0, and 0.3.0 to 1.1.0 as far as they agree): which plugins, which JSON,
 * in which order. Nothing here starts a process; one function reads the configuration's directory,
 * one what the allocator of addresses keeps, the rest is computed.
 *
 * A Network is one pod's attachment: the configuration that it is made with, what is asked of the
 * plugins for the pod, and what they answered. It can be written down and read again, so that what
 * was added by one agent is deleted by a later one, with the same words. */

#include "agent/model/pod.h"
#include "common/error.h"

enum {
        CNI_CONFIG_MAX = 48 * 1024,  /* bytes of a configuration; a plugin gets it in one packet */
        CNI_RECORD_MAX = 256 * 1024, /* bytes of a Network that is written down */
        CNI_RESULT_MAX = 32 * 1024,  /* bytes of what a plugin answers */
        CNI_PLUGINS_MAX = 16,
};

/* Where an administrator configures networks and installs plugins. Strings are borrowed. */
typedef struct CniPaths {
        const char *config_dir;  /* /etc/cni/net.d */
        const char *plugin_path; /* directories with ':' in between, as CNI_PATH */
} CniPaths;

typedef enum CniCommand {
        CNI_ADD,
        CNI_DEL,
        CNI_CHECK,
        N_CNI_COMMANDS,
} CniCommand;

typedef struct CniNetwork CniNetwork;

/* The text of the configuration: of the first *.conflist, *.conf or *.json by name, or our own
 * default where there is none. The caller frees the text and the name of the file (NULL: ours). 0
 * or -errno with the sentence. */
int cni_config_load(const char *config_dir, char **ret_text, char **ret_file, Error *reterr);

/* The bridge network that a lone node has, as packaging/cni/10-mainstay.conflist. */
extern const char cni_default_config[];

/* The attachment of a pod to the network that 'config' (the text) describes. 'number' tells the
 * sandboxes of a pod apart: the plugins know each by a name of its own. -EINVAL with the sentence
 * for a configuration, a hostPort or an annotation that cannot be. */
int cni_network_new(const char *config, const char *plugin_path, const Pod *pod, unsigned number,
                    CniNetwork **ret, Error *reterr);
CniNetwork *cni_network_free(CniNetwork *network);
DEFINE_CLEANUP(CniNetwork *, cni_network_free)

/* All of it as text, freed by the caller; NULL where memory ends. And back: -EBADMSG. */
char *cni_network_to_text(const CniNetwork *network);
int cni_network_from_text(const char *text, CniNetwork **ret, Error *reterr);

unsigned cni_network_sandbox_number(const CniNetwork *network);

/* How many times a command runs a plugin: DEL those that ADD had begun with, CHECK none where the
 * configuration disables it. A plugin that masquerades ("ipMasq") learns at the pod's interface
 * what to undo: before its own DEL there is one for each address of the pod's, to be run with a
 * stand-in should that interface be gone. */
size_t cni_network_n_steps(const CniNetwork *network, CniCommand command);

/* Notes that ADD begins with its step 'n' - 1. Before the plugin runs, and before the text is
 * written down: what is not noted is not deleted. */
void cni_network_note_add_step(CniNetwork *network, size_t n);

/* What the shim is to run. Strings belong to it. */
typedef struct CniInvocation {
        char *plugin; /* its type */
        char **argv;
        char **environment;
        char *input;
        const char
                *interface; /* NULL; or it is for a stand-in only, should the pod's interface ... */
        const char *address; /* ... with this address be gone; both borrowed */
} CniInvocation;

/* The invocation of one step, which counts in the order of running: DEL runs backwards. 'netns' is
 * the path of the pod's network namespace, "" where it is gone. ADD chains what
 * cni_network_process_exit() was given; DEL and CHECK repeat the last of it. -ENOENT with the
 * sentence where the plugin is not installed. */
int cni_invocation_build(const CniNetwork *network, CniCommand command, size_t step,
                         const char *netns, CniInvocation *ret, Error *reterr);
void cni_invocation_done(CniInvocation *invocation);

/* How a plugin ended. */
typedef struct CniPluginExit {
        bool has_run;
        bool timed_out;
        int exit_code;
        const char *output;
        const char *error; /* for a person: why it did not run, or its last line */
} CniPluginExit;

/* Takes the answer to a step. For the last step of ADD the attachment has addresses then, or it is
 * an error. 0 or -errno with the sentence, which names the plugin. */
int cni_network_process_exit(CniNetwork *network, CniCommand command, size_t step,
                             const CniPluginExit *answer, Error *reterr);

/* True once ADD is done and until DEL begins. */
bool cni_network_is_attached(const CniNetwork *network);

/* Before the steps of DEL are asked for, and the text is written down: notes which addresses the
 * pod had, from the result; where ADD was cut off before it gave one, from what the allocator
 * keeps, which the first DEL may make it forget. */
void cni_network_begin_delete(CniNetwork *network);

/* The pod's addresses: at most one of each family, the IPv4 one first. NULL where there are no
 * more. */
const char *cni_network_address(const CniNetwork *network, size_t i);
