/* SPDX-License-Identifier: Apache-2.0 */

/* The network attachment of one pod, and the stdin and environment of its plugins. In memory, an
 * attachment is the JSON of its record, so that a loaded record can be used directly; when packed,
 * it is the text of the record. The shim runs the plugins. */

#include "agent/cni/cni.h"

#include "agent/cni/capability-args.h"
#include "agent/cni/ipam-host-local.h"
#include "agent/cni/network-config.h"
#include "agent/cni/result.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/hash.h"
#include "common/json-text.h"
#include "common/strv.h"

enum {
        DEPTH_MAX = 64,
};

static const char interface_name[] = "eth0";
static const char started_key[] = "begun"; /* key in records; must not change */

/* "form" 1:
 *   number, containerId: of the sandbox
 *   pod: {name, namespace, uid}
 *   path: where plugins are looked for
 *   list: the configuration
 *   request: the capabilities' arguments
 *   result: of the last plugin that added something, absent before
 *   started_key: how many plugins ADD has started
 *   attached: ADD is complete
 *   addresses: those of the pod, when DEL has started */
struct CniNetwork {
        json_t *root; /* NULL: packed */
        char *packed; /* the text of 'root', which it replaces */
        unsigned number;
        bool is_attached;
        CniAddresses addresses;
};

/* clang-format off */
static const char *const command_names[N_CNI_COMMANDS] = {
        [CNI_ADD]   = "ADD",
        [CNI_DEL]   = "DEL",
        [CNI_CHECK] = "CHECK",
};

static const char *const command_words[N_CNI_COMMANDS] = {
        [CNI_ADD]   = "add",
        [CNI_DEL]   = "delete",
        [CNI_CHECK] = "check",
};
/* clang-format on */

static const char *get_json_text(const json_t *object, const char *key) {
        return strna(json_text(object, key));
}

static const json_t *get_plugins(const CniNetwork *network) {
        return json_object_get(json_object_get(network->root, "list"), "plugins");
}

CniNetwork *cni_network_free(CniNetwork *network) {
        if (!network)
                return NULL;
        json_decref(network->root);
        free(network->packed);
        free(network);
        return NULL;
}

static int new_network_from_root(json_t *root, CniNetwork **ret) {
        CniNetwork *network = root ? calloc(1, sizeof(*network)) : NULL;

        if (!network) {
                json_decref(root);
                return -ENOMEM;
        }
        network->root = root;
        network->number = (unsigned) json_integer_value(json_object_get(root, "number"));
        network->is_attached = json_is_true(json_object_get(root, "attached"));
        *ret = network;
        return 0;
}

/* CNI_CONTAINERID. It differs between two sandboxes of a pod, so that leftovers of a lost sandbox
 * are not attributed to the next one. */
static void make_cni_container_id(const char *uid, unsigned number, char ret[SHA256_HEX_SIZE]) {
        char text[128];
        int n = snprintf(text, sizeof(text), "%s/sandbox/%u", uid, number);

        sha256_hex(text, MIN((size_t) n, sizeof(text) - 1), ret);
}

int cni_network_new(const char *config, const char *plugin_path, const Pod *pod, unsigned number,
                    CniNetwork **ret, Error *reterr) {
        const ObjectMeta *metadata = &pod->metadata;
        json_t *list = NULL, *request = NULL;
        char id[SHA256_HEX_SIZE];
        int r = cni_config_list_parse(config, &list, reterr);

        if (r < 0)
                return r;
        r = cni_capability_args_build(pod, &request, reterr);
        if (r < 0) {
                json_decref(list);
                return r;
        }
        make_cni_container_id(metadata->uid, number, id);
        return new_network_from_root(
                json_pack("{s:i, s:I, s:s, s:{s:s, s:s, s:s}, s:s, s:o, s:o, s:b}", "form", 1,
                          "number", (json_int_t) number, "containerId", id, "pod", "name",
                          metadata->name, "namespace", metadata->namespace, "uid", metadata->uid,
                          "path", plugin_path, "list", list, "request", request, "attached", 0),
                ret);
}

char *cni_network_to_text(const CniNetwork *network) {
        return json_to_text(network->root, JSON_COMPACT);
}

/* Records are checksummed and written by an agent, so this finds records of other versions. */
static int check_network_record(const json_t *root, Error *reterr) {
        cleanup_free char *text = json_to_text(json_object_get(root, "list"), 0);
        json_t *list = NULL;
        int r;

        if (json_integer_value(json_object_get(root, "form")) != 1)
                return error_setf(reterr, EBADMSG, "was written by a newer version");
        if (cni_check_json_depth(root, DEPTH_MAX) < 0 || !get_json_text(root, "containerId")[0] ||
            !json_is_object(json_object_get(root, "pod")) || !text)
                return error_setf(reterr, EBADMSG, "is not a network record");
        r = cni_config_list_parse(text, &list, reterr);
        json_decref(list);
        return r == -EINVAL ? -EBADMSG : r;
}

int cni_network_from_text(const char *text, CniNetwork **ret, Error *reterr) {
        cleanup_with(cni_network_freep) CniNetwork *network = NULL;
        cleanup_json json_t *root = NULL;
        int r = json_parse_text(text, strlen(text), JSON_REJECT_DUPLICATES, &root, NULL);

        if (r == -EBADMSG)
                return error_setf(reterr, EBADMSG, "is not a network record");
        if (r < 0)
                return r;
        r = check_network_record(root, reterr);
        if (r < 0)
                return r;
        r = new_network_from_root(TAKE_PTR(root), &network);
        if (r < 0)
                return r;
        if (cni_network_is_attached(network))
                r = cni_result_pod_addresses(json_object_get(network->root, "result"),
                                             interface_name, &network->addresses, reterr);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(network);
        return 0;
}

void cni_network_pack(CniNetwork *network) {
        if (!network->root)
                return;
        network->packed = cni_network_to_text(network);
        if (!network->packed)
                return;
        json_decref(network->root);
        network->root = NULL;
}

int cni_network_unpack(CniNetwork *network) {
        if (network->root)
                return 0;
        if (json_parse_text(network->packed, strlen(network->packed), 0, &network->root, NULL) < 0)
                return -ENOMEM; /* the text was created by us */
        free(network->packed);
        network->packed = NULL;
        return 0;
}

unsigned cni_network_sandbox_number(const CniNetwork *network) {
        return network->number;
}

static size_t count_added_plugins(const CniNetwork *network) {
        json_int_t n = json_integer_value(json_object_get(network->root, started_key));
        size_t max = json_array_size(get_plugins(network));

        return n < 0 ? 0 : MIN((size_t) n, max);
}

static const json_t *get_recorded_addresses(const CniNetwork *network) {
        return json_object_get(network->root, "addresses");
}

/* bridge and ptp read the addresses that they have masqueraded from the interface. */
static size_t count_dummy_interface_steps(const CniNetwork *network, const json_t *plugin) {
        return json_is_true(json_object_get(plugin, "ipMasq"))
                       ? json_array_size(get_recorded_addresses(network))
                       : 0;
}

typedef struct CniStep {
        const json_t *plugin;
        const char *address; /* address of the dummy interface; NULL: not needed */
} CniStep;

/* After the last step, the plugin is NULL. */
static CniStep get_delete_step(const CniNetwork *network, size_t step) {
        for (size_t i = count_added_plugins(network); i > 0; i--) {
                const json_t *plugin = json_array_get(get_plugins(network), i - 1);
                size_t n = count_dummy_interface_steps(network, plugin);

                if (step < n)
                        return (CniStep){ plugin,
                                          strna(json_string_value(json_array_get(
                                                  get_recorded_addresses(network), step))) };
                if (step == n)
                        return (CniStep){ plugin, NULL };
                step -= n + 1;
        }
        return (CniStep){ NULL, NULL };
}

static bool has_bandwidth_limit(const json_t *plugin, const json_t *request) {
        bool is_capable =
                json_is_true(json_object_get(json_object_get(plugin, "capabilities"), "bandwidth"));

        return (is_capable && json_object_get(request, "bandwidth")) ||
               json_object_get(plugin, "ingressRate") || json_object_get(plugin, "egressRate");
}

/* The bandwidth plugin does nothing for a pod without limits, and some of its versions crash when
 * they check such a pod. portmap looks for IPv4 and IPv6 rules regardless of the pod's addresses,
 * and fails if it has created none. */
static bool can_be_checked(const CniNetwork *network, const json_t *plugin) {
        const json_t *request = json_object_get(network->root, "request");
        const char *type = get_json_text(plugin, "type");

        if (streq(type, "portmap"))
                return !json_object_get(request, "portMappings") ||
                       cni_network_address(network, 1); /* if there is one address per family */
        return !streq(type, "bandwidth") || has_bandwidth_limit(plugin, request);
}

static CniStep get_check_step(const CniNetwork *network, size_t step) {
        size_t i;
        json_t *plugin;

        json_array_foreach(get_plugins(network), i, plugin) {
                if (can_be_checked(network, plugin) && step-- == 0)
                        return (CniStep){ plugin, NULL };
        }
        return (CniStep){ NULL, NULL };
}

static CniStep get_command_step(const CniNetwork *network, CniCommand command, size_t step) {
        if (command == CNI_DEL)
                return get_delete_step(network, step);
        if (command == CNI_CHECK)
                return get_check_step(network, step);
        return (CniStep){ json_array_get(get_plugins(network), step), NULL };
}

/* CHECK was introduced with version 0.4.0. */
size_t cni_network_n_steps(const CniNetwork *network, CniCommand command) {
        const json_t *list = json_object_get(network->root, "list");
        size_t n = 0;

        if (command == CNI_CHECK &&
            (json_is_true(json_object_get(list, "disableCheck")) ||
             cni_version_compare(get_json_text(list, "cniVersion"), "0.4.0") < 0))
                return 0;
        while (get_command_step(network, command, n).plugin)
                n++;
        return n;
}

void cni_network_record_add_step(CniNetwork *network, size_t n) {
        (void) json_object_set_new(network->root, started_key, json_integer((json_int_t) n));
}

/* ---- the input of a plugin ---- */

/* The pod's capability arguments for the capabilities that the plugin has. */
static json_t *build_runtime_config(const CniNetwork *network, const json_t *plugin) {
        json_t *request = json_object_get(network->root, "request"), *argument;
        json_t *config = json_object();
        const char *key;

        json_object_foreach(request, key, argument)
                if (json_is_true(json_object_get(json_object_get(plugin, "capabilities"), key)))
                        (void) json_object_set(config, key, argument);
        return config;
}

/* DEL and CHECK accept prevResult since version 0.4.0. */
static bool takes_prev_result(const CniNetwork *network, CniCommand command) {
        const json_t *list = json_object_get(network->root, "list");

        return command == CNI_ADD ||
               cni_version_compare(get_json_text(list, "cniVersion"), "0.4.0") >= 0;
}

static char *build_plugin_stdin(const CniNetwork *network, CniCommand command,
                                const json_t *plugin) {
        json_t *list = json_object_get(network->root, "list");
        json_t *result = json_object_get(network->root, "result");
        json_t *config = json_deep_copy(plugin), *arguments = build_runtime_config(network, plugin);
        char *text = NULL;
        int r;

        r = json_object_set(config, "name", json_object_get(list, "name"));
        r |= json_object_set(config, "cniVersion", json_object_get(list, "cniVersion"));
        (void) json_object_del(config, "capabilities");
        if (json_object_size(arguments) > 0)
                r |= json_object_set(config, "runtimeConfig", arguments);
        if (result && takes_prev_result(network, command))
                r |= json_object_set(config, "prevResult", result);
        if (r == 0)
                text = json_to_text(config, JSON_COMPACT);
        json_decref(arguments);
        json_decref(config);
        return text;
}

static int build_plugin_environment(const CniNetwork *network, CniCommand command,
                                    const char *netns, char ***ret) {
        const json_t *pod = json_object_get(network->root, "pod");
        const char *id = get_json_text(network->root, "containerId");

        if (strv_appendf(ret, "CNI_COMMAND=%s", command_names[command]) < 0 ||
            strv_appendf(ret, "CNI_CONTAINERID=%s", id) < 0 ||
            strv_appendf(ret, "CNI_NETNS=%s", netns) < 0 ||
            strv_appendf(ret, "CNI_IFNAME=%s", interface_name) < 0 ||
            strv_appendf(ret,
                         "CNI_ARGS=IgnoreUnknown=1;K8S_POD_NAMESPACE=%s;K8S_POD_NAME=%s;"
                         "K8S_POD_INFRA_CONTAINER_ID=%s;K8S_POD_UID=%s",
                         get_json_text(pod, "namespace"), get_json_text(pod, "name"), id,
                         get_json_text(pod, "uid")) < 0 ||
            strv_appendf(ret, "CNI_PATH=%s", get_json_text(network->root, "path")) < 0)
                return -ENOMEM;
        /* For programs that plugins run, such as iptables. */
        return strv_append(ret, "PATH=" CNI_PROGRAM_PATH);
}

/* The first directory in the path that contains the program. */
static int find_plugin_program(const CniNetwork *network, const char *type, char **ret,
                               Error *reterr) {
        const char *path = get_json_text(network->root, "path");
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

/* The plugin bridge enables IPv6 forwarding on the node as soon as it assigns an IPv6 address to a
 * pod. */
static bool enables_ipv6_forwarding(const json_t *plugin) {
        const json_t *ranges = json_object_get(json_object_get(plugin, "ipam"), "ranges");
        bool is_gateway = json_is_true(json_object_get(plugin, "isGateway")) ||
                          json_is_true(json_object_get(plugin, "isDefaultGateway"));

        for (size_t i = 0; is_gateway && i < json_array_size(ranges); i++) {
                const json_t *range = json_array_get(json_array_get(ranges, i), 0);

                if (strchr(get_json_text(range, "subnet"), ':'))
                        return streq(get_json_text(plugin, "type"), "bridge");
        }
        return false;
}

int cni_invocation_build(const CniNetwork *network, CniCommand command, size_t step,
                         const char *netns, CniInvocation *ret, Error *reterr) {
        cleanup_with(cni_invocation_done) CniInvocation invocation = { 0 };
        const CniStep todo = get_command_step(network, command, step);
        const char *type = get_json_text(todo.plugin, "type");
        cleanup_free char *program = NULL;
        int r = find_plugin_program(network, type, &program, reterr);

        if (r < 0)
                return r;
        invocation.plugin = strdup(type);
        invocation.input = build_plugin_stdin(network, command, todo.plugin);
        invocation.interface = todo.address ? interface_name : NULL;
        invocation.address = todo.address;
        invocation.enables_ipv6_forwarding =
                command == CNI_ADD && enables_ipv6_forwarding(todo.plugin);
        if (!invocation.plugin || !invocation.input)
                return -ENOMEM;
        r = strv_append(&invocation.argv, program);
        if (r < 0)
                return r;
        r = build_plugin_environment(network, command, netns, &invocation.environment);
        if (r < 0)
                return r;
        *ret = invocation;
        invocation = (CniInvocation){ 0 };
        return 0;
}

void cni_invocation_done(CniInvocation *invocation) {
        free(invocation->plugin);
        free(invocation->input);
        strv_free(invocation->argv);
        strv_free(invocation->environment);
        *invocation = (CniInvocation){ 0 };
}

/* ---- the result of a plugin ---- */

/* Errors of the published plugins whose remedy is not obvious. */
static const char *find_remedy(const char *message) {
        static const struct {
                const char *part, *remedy;
        } remedies[] = {
                { "\"iptables\": executable file not found",
                  "install iptables, or nftables with network plugins of version 1.9 or later" },
                { "already has an IP address different from",
                  "when no pod uses that bridge any more, delete it (ip link delete), or restart "
                  "the machine" },
        };

        for (size_t i = 0; i < N_ELEMENTS(remedies); i++)
                if (strstr(message, remedies[i].part))
                        return remedies[i].remedy;
        return NULL;
}

static int set_plugin_error(const CniPluginExit *exit, Error *reterr) {
        cleanup_free char *message = NULL;

        if (exit->timed_out)
                return error_setf(reterr, ETIMEDOUT, "it timed out and was killed");
        if (exit->has_run)
                message = cni_error_message(strna(exit->output));
        if (message) {
                const char *remedy = find_remedy(message);

                return error_setf(reterr, EIO, "%s%s%s", message, remedy ? "; " : "",
                                  strna(remedy));
        }
        if (strna(exit->error)[0])
                return error_setf(reterr, EIO, "%s", exit->error);
        return error_setf(reterr, EIO, "it exited with status %d", exit->exit_code);
}

static int store_add_result(CniNetwork *network, size_t step, const char *output, Error *reterr) {
        json_t *result = NULL;
        int r = cni_result_parse(output, &result, reterr);

        if (r < 0)
                return r;
        if (step + 1 == cni_network_n_steps(network, CNI_ADD))
                r = cni_result_pod_addresses(result, interface_name, &network->addresses, reterr);
        if (r < 0) {
                json_decref(result);
                return r;
        }
        if (json_object_set_new(network->root, "result", result) < 0)
                return -ENOMEM;
        if (network->addresses.n == 0)
                return 0;
        if (json_object_set_new(network->root, "attached", json_true()) < 0)
                return -ENOMEM;
        network->is_attached = true;
        return 0;
}

/* A plugin may report an error if its masquerading has already been removed. */
static bool is_masquerade_removed(const CniStep *step, const CniPluginExit *exit) {
        cleanup_free char *message = cni_error_message(strna(exit->output));

        return step->address && exit->has_run && !exit->timed_out && message;
}

int cni_network_process_exit(CniNetwork *network, CniCommand command, size_t step,
                             const CniPluginExit *exit, Error *reterr) {
        const CniStep todo = get_command_step(network, command, step);
        int r = 0;

        if (is_masquerade_removed(&todo, exit))
                return 0;
        if (!exit->has_run || exit->exit_code != 0 || exit->timed_out)
                r = set_plugin_error(exit, reterr);
        else if (command == CNI_ADD)
                r = store_add_result(network, step, strna(exit->output), reterr);
        if (r < 0)
                return error_prefixf(reterr, r, "plugin type=\"%s\" failed (%s)",
                                     get_json_text(todo.plugin, "type"), command_words[command]);
        return 0;
}

bool cni_network_is_attached(const CniNetwork *network) {
        return network->is_attached;
}

/* The addresses that the plugin's IPAM plugin has allocated, if that is host-local. */
static void append_allocated_addresses(const CniNetwork *network, const json_t *plugin,
                                       json_t *list) {
        const json_t *ipam = json_object_get(plugin, "ipam");
        cleanup_strv char **addresses = NULL;

        if (!streq(get_json_text(ipam, "type"), "host-local"))
                return;
        (void) host_local_list_addresses(get_json_text(ipam, "dataDir"),
                                         strna(json_text(network->root, "list", "name")),
                                         get_json_text(network->root, "containerId"), &addresses);
        strv_foreach(address, addresses)
                (void) json_array_append_new(list, json_string(*address));
}

static json_t *find_pod_addresses(const CniNetwork *network) {
        const json_t *result = json_object_get(network->root, "result"), *plugin;
        json_t *list = cni_result_list_addresses(result, interface_name);
        size_t i;

        json_array_foreach(get_plugins(network), i, plugin)
                if (!result)
                        append_allocated_addresses(network, plugin, list);
        return list;
}

void cni_network_set_lost(CniNetwork *network) {
        network->is_attached = false;
        network->addresses = (CniAddresses){ 0 };
}

void cni_network_begin_delete(CniNetwork *network) {
        if (json_array_size(get_recorded_addresses(network)) == 0)
                (void) json_object_set_new(network->root, "addresses", find_pod_addresses(network));
        (void) json_object_set_new(network->root, "attached", json_false());
        cni_network_set_lost(network);
}

const char *cni_network_address(const CniNetwork *network, size_t i) {
        return i < network->addresses.n ? network->addresses.texts[i] : NULL;
}
