/* SPDX-License-Identifier: Apache-2.0 */
/* The attachment of one pod, and the words in which its plugins are spoken to. It is kept as the
 * JSON that it is written down as: what was read is used as it is. */

#include "agent/network/network.h"

#include "agent/network/allocator.h"
#include "agent/network/config.h"
#include "agent/network/request.h"
#include "agent/network/result.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/hash.h"
#include "common/strv.h"

enum {
        DEPTH_MAX = 64,
};

static const char interface_name[] = "eth0";

/* "form" 1:
 *   number, containerId: of the sandbox
 *   pod: {name, namespace, uid}
 *   path: where plugins are looked for
 *   list: the configuration
 *   request: the capabilities' arguments
 *   result: of the last plugin that added something, absent before
 *   begun: how many plugins ADD has begun with
 *   attached: ADD is done
 *   addresses: that the pod had, once DEL has begun */
struct Network {
        json_t *root;
        Addresses addresses;
};

/* clang-format off */
static const char *const command_names[N_NETWORK_COMMANDS] = {
        [NETWORK_ADD]   = "ADD",
        [NETWORK_DEL]   = "DEL",
        [NETWORK_CHECK] = "CHECK",
};

static const char *const command_words[N_NETWORK_COMMANDS] = {
        [NETWORK_ADD]   = "add",
        [NETWORK_DEL]   = "delete",
        [NETWORK_CHECK] = "check",
};
/* clang-format on */

static const char *string_of(const json_t *object, const char *key) {
        return strna(json_string_value(json_object_get(object, key)));
}

static const json_t *plugins_of(const Network *network) {
        return json_object_get(json_object_get(network->root, "list"), "plugins");
}

Network *network_free(Network *network) {
        if (!network)
                return NULL;
        json_decref(network->root);
        free(network);
        return NULL;
}

static int network_new_take(json_t *root, Network **ret) {
        Network *network = root ? calloc(1, sizeof(*network)) : NULL;

        if (!network) {
                json_decref(root);
                return -ENOMEM;
        }
        network->root = root;
        *ret = network;
        return 0;
}

/* What plugins know the sandbox by: never the same for two sandboxes of a pod, so that what a lost
 * one may have left is not taken for the next one's. */
static void sandbox_id(const char *uid, unsigned number, char ret[SHA256_HEX_SIZE]) {
        char text[128];
        int n = snprintf(text, sizeof(text), "%s/sandbox/%u", uid, number);

        sha256_hex(text, MIN((size_t) n, sizeof(text) - 1), ret);
}

int network_new(const char *config, const char *plugin_path, const Pod *pod, unsigned number,
                Network **ret, Error *reterr) {
        const ObjectMeta *metadata = &pod->metadata;
        json_t *list = NULL, *request = NULL;
        char id[SHA256_HEX_SIZE];
        int r = network_list_parse(config, &list, reterr);

        if (r < 0)
                return r;
        r = network_request(pod, &request, reterr);
        if (r < 0) {
                json_decref(list);
                return r;
        }
        sandbox_id(metadata->uid, number, id);
        return network_new_take(
                json_pack("{s:i, s:I, s:s, s:{s:s, s:s, s:s}, s:s, s:o, s:o, s:b}", "form", 1,
                          "number", (json_int_t) number, "containerId", id, "pod", "name",
                          metadata->name, "namespace", metadata->namespace, "uid", metadata->uid,
                          "path", plugin_path, "list", list, "request", request, "attached", 0),
                ret);
}

char *network_to_text(const Network *network) {
        return json_dumps(network->root, JSON_COMPACT);
}

/* Sealed texts are our own; so this is about a version that is not ours. */
static int check_form(const json_t *root, Error *reterr) {
        cleanup_free char *text = json_dumps(json_object_get(root, "list"), 0);
        json_t *list = NULL;
        int r;

        if (json_integer_value(json_object_get(root, "form")) != 1)
                return error_setf(reterr, EBADMSG, "was written by a newer version");
        if (network_check_depth(root, DEPTH_MAX) < 0 || !string_of(root, "containerId")[0] ||
            !json_is_object(json_object_get(root, "pod")) || !text)
                return error_setf(reterr, EBADMSG, "is no record of a network");
        r = network_list_parse(text, &list, reterr);
        json_decref(list);
        return r == -EINVAL ? -EBADMSG : r;
}

int network_from_text(const char *text, Network **ret, Error *reterr) {
        cleanup_with(network_freep) Network *network = NULL;
        json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
        int r = root ? check_form(root, reterr)
                     : error_setf(reterr, EBADMSG, "is no record of a network");

        if (r < 0) {
                json_decref(root);
                return r;
        }
        r = network_new_take(root, &network);
        if (r >= 0 && network_is_attached(network))
                r = network_result_addresses(json_object_get(root, "result"), interface_name,
                                             &network->addresses, reterr);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(network);
        return 0;
}

unsigned network_number(const Network *network) {
        return (unsigned) json_integer_value(json_object_get(network->root, "number"));
}

static size_t n_begun(const Network *network) {
        json_int_t n = json_integer_value(json_object_get(network->root, "begun"));
        size_t max = json_array_size(plugins_of(network));

        return n < 0 ? 0 : MIN((size_t) n, max);
}

static const json_t *addresses_of(const Network *network) {
        return json_object_get(network->root, "addresses");
}

/* bridge and ptp take the addresses that they have masqueraded from the interface. */
static size_t n_stand_ins(const Network *network, const json_t *plugin) {
        return json_is_true(json_object_get(plugin, "ipMasq"))
                       ? json_array_size(addresses_of(network))
                       : 0;
}

typedef struct Step {
        const json_t *plugin;
        const char *address; /* of a stand-in; NULL: it is none for a stand-in */
} Step;

/* One that is not there has no plugin. */
static Step step_to_delete(const Network *network, size_t step) {
        for (size_t i = n_begun(network); i > 0; i--) {
                const json_t *plugin = json_array_get(plugins_of(network), i - 1);
                size_t n = n_stand_ins(network, plugin);

                if (step < n)
                        return (Step){ plugin, strna(json_string_value(json_array_get(
                                                       addresses_of(network), step))) };
                if (step == n)
                        return (Step){ plugin, NULL };
                step -= n + 1;
        }
        return (Step){ NULL, NULL };
}

static Step get_step(const Network *network, NetworkCommand command, size_t step) {
        if (command == NETWORK_DEL)
                return step_to_delete(network, step);
        return (Step){ json_array_get(plugins_of(network), step), NULL };
}

/* CHECK came with version 0.4.0. */
size_t network_n_steps(const Network *network, NetworkCommand command) {
        const json_t *list = json_object_get(network->root, "list");
        size_t n = 0;

        if (command == NETWORK_CHECK &&
            (json_is_true(json_object_get(list, "disableCheck")) ||
             network_version_compare(string_of(list, "cniVersion"), "0.4.0") < 0))
                return 0;
        while (get_step(network, command, n).plugin)
                n++;
        return n;
}

void network_note_begun(Network *network, size_t n) {
        (void) json_object_set_new(network->root, "begun", json_integer((json_int_t) n));
}

/* ---- what a plugin is given ---- */

/* Of what the pod asks for, what the plugin says that it can. */
static json_t *runtime_config(const Network *network, const json_t *plugin) {
        json_t *request = json_object_get(network->root, "request"), *argument;
        json_t *config = json_object();
        const char *key;

        json_object_foreach(request, key, argument)
                if (json_is_true(json_object_get(json_object_get(plugin, "capabilities"), key)))
                        (void) json_object_set(config, key, argument);
        return config;
}

/* DEL and CHECK know the result from version 0.4.0 on. */
static bool wants_result(const Network *network, NetworkCommand command) {
        const json_t *list = json_object_get(network->root, "list");

        return command == NETWORK_ADD ||
               network_version_compare(string_of(list, "cniVersion"), "0.4.0") >= 0;
}

static char *make_input(const Network *network, NetworkCommand command, const json_t *plugin) {
        json_t *list = json_object_get(network->root, "list");
        json_t *result = json_object_get(network->root, "result");
        json_t *config = json_deep_copy(plugin), *arguments = runtime_config(network, plugin);
        char *text = NULL;
        int r;

        r = json_object_set(config, "name", json_object_get(list, "name"));
        r |= json_object_set(config, "cniVersion", json_object_get(list, "cniVersion"));
        (void) json_object_del(config, "capabilities");
        if (json_object_size(arguments) > 0)
                r |= json_object_set(config, "runtimeConfig", arguments);
        if (result && wants_result(network, command))
                r |= json_object_set(config, "prevResult", result);
        if (r == 0)
                text = json_dumps(config, JSON_COMPACT);
        json_decref(arguments);
        json_decref(config);
        return text;
}

static int make_environment(const Network *network, NetworkCommand command, const char *netns,
                            char ***ret) {
        const json_t *pod = json_object_get(network->root, "pod");
        const char *id = string_of(network->root, "containerId");
        int r = strv_appendf(ret, "CNI_COMMAND=%s", command_names[command]);

        if (r >= 0)
                r = strv_appendf(ret, "CNI_CONTAINERID=%s", id);
        if (r >= 0)
                r = strv_appendf(ret, "CNI_NETNS=%s", netns);
        if (r >= 0)
                r = strv_appendf(ret, "CNI_IFNAME=%s", interface_name);
        if (r >= 0)
                r = strv_appendf(ret,
                                 "CNI_ARGS=IgnoreUnknown=1;K8S_POD_NAMESPACE=%s;K8S_POD_NAME=%s;"
                                 "K8S_POD_INFRA_CONTAINER_ID=%s;K8S_POD_UID=%s",
                                 string_of(pod, "namespace"), string_of(pod, "name"), id,
                                 string_of(pod, "uid"));
        if (r >= 0)
                r = strv_appendf(ret, "CNI_PATH=%s", string_of(network->root, "path"));
        if (r >= 0) /* for what plugins call themselves, such as iptables */
                r = strv_append(
                        ret, "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
        return r;
}

/* The first directory of the path that has the program. */
static int find_plugin(const Network *network, const char *type, char **ret, Error *reterr) {
        const char *path = string_of(network->root, "path");
        cleanup_free char *copy = strdup(path);
        char *rest = copy, *directory;

        if (!copy)
                return -ENOMEM;
        while ((directory = strsep(&rest, ":"))) {
                cleanup_free char *program =
                        directory[0] == '/' ? path_join(directory, type) : NULL;

                if (program && access(program, X_OK) >= 0) {
                        *ret = TAKE_PTR(program);
                        return 0;
                }
        }
        return error_setf(reterr, ENOENT, "failed to find plugin \"%s\" in path [%s]", type, path);
}

int network_invocation(const Network *network, NetworkCommand command, size_t step,
                       const char *netns, NetworkInvocation *ret, Error *reterr) {
        cleanup_with(network_invocation_done) NetworkInvocation invocation = { 0 };
        const Step what = get_step(network, command, step);
        const char *type = string_of(what.plugin, "type");
        cleanup_free char *program = NULL;
        int r = find_plugin(network, type, &program, reterr);

        if (r < 0)
                return r;
        invocation.plugin = strdup(type);
        invocation.input = make_input(network, command, what.plugin);
        invocation.interface = what.address ? interface_name : NULL;
        invocation.address = what.address;
        if (!invocation.plugin || !invocation.input)
                return -ENOMEM;
        r = strv_append(&invocation.argv, program);
        if (r >= 0)
                r = make_environment(network, command, netns, &invocation.environment);
        if (r < 0)
                return r;
        *ret = invocation;
        invocation = (NetworkInvocation){ 0 };
        return 0;
}

void network_invocation_done(NetworkInvocation *invocation) {
        free(invocation->plugin);
        free(invocation->input);
        strv_free(invocation->argv);
        strv_free(invocation->environment);
        *invocation = (NetworkInvocation){ 0 };
}

/* ---- what it answers ---- */

static int explain(const NetworkAnswer *answer, Error *reterr) {
        cleanup_free char *sentence = NULL;

        if (answer->timed_out)
                return error_setf(reterr, ETIMEDOUT, "it took too long and was ended");
        if (answer->has_run)
                sentence = network_error_sentence(strna(answer->output));
        if (sentence)
                return error_setf(reterr, EIO, "%s", sentence);
        if (strna(answer->error)[0])
                return error_setf(reterr, EIO, "%s", answer->error);
        return error_setf(reterr, EIO, "it ended with status %d", answer->exit_code);
}

static int take_result(Network *network, size_t step, const char *output, Error *reterr) {
        json_t *result = NULL;
        int r = network_result_parse(output, &result, reterr);

        if (r < 0)
                return r;
        if (step + 1 == network_n_steps(network, NETWORK_ADD))
                r = network_result_addresses(result, interface_name, &network->addresses, reterr);
        if (r < 0) {
                json_decref(result);
                return r;
        }
        if (json_object_set_new(network->root, "result", result) < 0)
                return -ENOMEM;
        if (network->addresses.n > 0 &&
            json_object_set_new(network->root, "attached", json_true()) < 0)
                return -ENOMEM;
        return 0;
}

/* What a plugin has undone already it may not find, and call that a failure. */
static bool may_be_done(const Step *step, const NetworkAnswer *answer) {
        cleanup_free char *sentence = network_error_sentence(strna(answer->output));

        return step->address && answer->has_run && !answer->timed_out && sentence;
}

int network_take(Network *network, NetworkCommand command, size_t step, const NetworkAnswer *answer,
                 Error *reterr) {
        const Step what = get_step(network, command, step);
        int r = 0;

        if (may_be_done(&what, answer))
                return 0;
        if (!answer->has_run || answer->exit_code != 0 || answer->timed_out)
                r = explain(answer, reterr);
        else if (command == NETWORK_ADD)
                r = take_result(network, step, strna(answer->output), reterr);
        if (r < 0)
                return error_prefixf(reterr, r, "plugin type=\"%s\" failed (%s)",
                                     string_of(what.plugin, "type"), command_words[command]);
        return 0;
}

bool network_is_attached(const Network *network) {
        return json_is_true(json_object_get(network->root, "attached"));
}

/* Those that the plugin's allocator has given away, where we know its ways. */
static void append_allocated(const Network *network, const json_t *plugin, json_t *list) {
        const json_t *ipam = json_object_get(plugin, "ipam");
        cleanup_strv char **addresses = NULL;

        if (!streq(string_of(ipam, "type"), "host-local"))
                return;
        (void) allocator_list(string_of(ipam, "dataDir"),
                              string_of(json_object_get(network->root, "list"), "name"),
                              string_of(network->root, "containerId"), &addresses);
        strv_foreach(address, addresses)
                (void) json_array_append_new(list, json_string(*address));
}

static json_t *find_addresses(const Network *network) {
        const json_t *result = json_object_get(network->root, "result"), *plugin;
        json_t *list = network_result_list(result, interface_name);
        size_t i;

        json_array_foreach(plugins_of(network), i, plugin)
                if (!result)
                        append_allocated(network, plugin, list);
        return list;
}

void network_begin_delete(Network *network) {
        if (json_array_size(addresses_of(network)) == 0)
                (void) json_object_set_new(network->root, "addresses", find_addresses(network));
        (void) json_object_set_new(network->root, "attached", json_false());
        network->addresses = (Addresses){ 0 };
}

const char *network_address(const Network *network, size_t i) {
        return i < network->addresses.n ? network->addresses.texts[i] : NULL;
}
