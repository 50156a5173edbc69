/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/bundle/cdi-edits.h"

#include "agent/manifest/cdi-spec.h"
#include "common/cleanup.h"
#include "common/json-text.h"
#include "common/text.h"
#include "tests/test.h"

#include <errno.h>
#include <sys/stat.h>

static const BundleConfig config = { .run_dir = "/run/mainstay",
                                     .state_dir = "/var/lib/mainstay",
                                     .log_dir = "/var/log",
                                     .cgroup_root = "/",
                                     .shim_path = "/shim" };

static int find_in_spec(const char *name, CdiMatch *ret, Error *reterr, void *userdata) {
        const CdiSpec *spec = userdata;
        const char *device = strchr(name, '=') + 1;

        for (size_t i = 0; i < spec->devices.n; i++)
                if (streq(spec->devices.items[i].name, device)) {
                        *ret = (CdiMatch){ spec, &spec->devices.items[i] };
                        return 0;
                }
        return error_setf(reterr, ENOENT, "nothing defines it");
}

/* Returns the result of a document as text, or the error message. */
static char *edit(const char *spec_text, const char *annotation, const char *document_text,
                  const char *users) {
        cleanup_with(cdi_spec_freep) CdiSpec *spec = NULL;
        cleanup_error Error error = ERROR_NULL;
        KeyValue annotations[] = { { (char[]){ "cdi.k8s.io/a" },
                                     (char *) (uintptr_t) annotation } };
        const Pod pod = { .metadata = { .namespace = (char[]){ "default" },
                                        .name = (char[]){ "web" },
                                        .uid = (char[]){ "u" },
                                        .annotations = { annotations, 1 } } };
        const Container container = { .name = (char[]){ "main" } };
        BundleConfig with_cdi = config;
        RuntimeSpecInput input = {
                .config = &with_cdi, .pod = &pod, .container = &container, .users = users
        };
        cleanup_json json_t *document = json_loads(document_text, 0, NULL);
        int r = cdi_spec_parse("x.yaml", spec_text, strlen(spec_text), &spec, &error);

        if (r < 0)
                test_fail(__FILE__, __LINE__, spec_text, "%s", error.message);
        REQUIRE(spec && document);
        with_cdi.cdi = (CdiLookup){ find_in_spec, spec };
        r = cdi_edit_runtime_spec(&input, document, &error);
        return r < 0 ? text_format("%s", error_message(&error, r))
                     : json_to_text(document, JSON_COMPACT | JSON_SORT_KEYS);
}

#define EXPECT_EDITED(spec, annotation, document, users, expected)                  \
        do {                                                                        \
                cleanup_free char *text_ = edit(spec, annotation, document, users); \
                EXPECT_STREQ(text_, expected);                                      \
        } while (0)

#define DOCUMENT                                                                   \
        "{\"process\":{\"user\":{\"uid\":0,\"gid\":0},\"env\":[\"A=0\",\"B=0\"]}," \
        "\"linux\":{\"resources\":{\"devices\":[]}},\"mounts\":[]}"

#define HEAD "cdiVersion: 1.1.0\nkind: v/c\n"

TEST(edits_of_the_file_apply_once_and_before_those_of_its_devices)
{
        EXPECT_EDITED(
                HEAD "containerEdits: {env: [A=file, FILE=1], additionalGids: [0, 5]}\n"
                     "devices:\n"
                     "- {name: one, containerEdits: {env: [B=one], additionalGids: [5, 6]}}\n"
                     "- {name: two, containerEdits: {env: [A=two]}}\n",
                "v/c=one,v/c=two", DOCUMENT, NULL,
                "{\"linux\":{\"resources\":{\"devices\":[]}},\"mounts\":[],\"process\":{\"env\":"
                "[\"A=two\",\"B=one\",\"FILE=1\"],\"user\":{\"additionalGids\":[5,6],\"gid\":0,"
                "\"uid\":0}}}");
}

TEST(missing_attributes_of_a_device_are_read_from_the_node)
{
        EXPECT_EDITED(
                HEAD "devices:\n- name: d\n  containerEdits:\n    deviceNodes:\n"
                     "    - {path: /dev/sink, hostPath: /dev/null, permissions: rw}\n",
                "v/c=d",
                "{\"process\":{\"user\":{\"uid\":7,\"gid\":0}},\"linux\":{\"devices\":[{\"path\":"
                "\"/dev/sink\"}]}}",
                NULL,
                "{\"linux\":{\"devices\":[{\"fileMode\":438,\"major\":1,\"minor\":3,\"path\":"
                "\"/dev/sink\",\"type\":\"c\",\"uid\":7}],\"resources\":{\"devices\":[{\"access\":"
                "\"rw\",\"allow\":true,\"major\":1,\"minor\":3,\"type\":\"c\"}]}},\"process\":{"
                "\"user\":{\"gid\":0,\"uid\":7}}}");
}

TEST(a_complete_device_node_need_not_exist_on_the_node)
{
        EXPECT_EDITED(
                HEAD "devices:\n- name: d\n  containerEdits:\n    deviceNodes:\n"
                     "    - {path: /dev/absent, type: b, major: 240, minor: 9, fileMode: 0640,\n"
                     "       permissions: none, uid: 1, gid: 2}\n",
                "v/c=d", "{\"process\":{\"user\":{\"uid\":0,\"gid\":0}},\"linux\":{}}", NULL,
                "{\"linux\":{\"devices\":[{\"fileMode\":416,\"gid\":2,\"major\":240,\"minor\":9,"
                "\"path\":\"/dev/absent\",\"type\":\"b\",\"uid\":1}],\"resources\":{\"devices\":["
                "{\"access\":\"\",\"allow\":true,\"major\":240,\"minor\":9,\"type\":\"b\"}]}},"
                "\"process\":{\"user\":{\"gid\":0,\"uid\":0}}}");
}

TEST(a_fifo_has_no_numbers_and_no_rule)
{
        cleanup_free char *path = text_format("%s/fifo", test_directory()), *spec = NULL;

        REQUIRE(mkfifo(path, 0600) == 0);
        spec = text_format(HEAD "devices:\n- name: d\n  containerEdits:\n    deviceNodes:\n"
                                "    - {path: /fifo, hostPath: %s}\n",
                           path);
        EXPECT_EDITED(
                spec, "v/c=d", "{\"process\":{\"user\":{\"uid\":0,\"gid\":0}},\"linux\":{}}", NULL,
                "{\"linux\":{\"devices\":[{\"fileMode\":384,\"path\":\"/fifo\",\"type\":\"p\"}]},"
                "\"process\":{\"user\":{\"gid\":0,\"uid\":0}}}");
}

TEST(a_device_node_that_is_absent_or_of_another_type_is_an_error)
{
        EXPECT_EDITED(
                HEAD "devices: [{name: d, containerEdits: {deviceNodes: [{path: /dev/absent}]}}]\n",
                "v/c=d", DOCUMENT, NULL,
                "CDI device injection failed: failed to stat CDI host device \"/dev/absent\": No "
                "such file or directory");
        EXPECT_EDITED(HEAD
                      "devices: [{name: d, containerEdits: {deviceNodes: [{path: /dev/null, type: "
                      "b}]}}]\n",
                      "v/c=d", DOCUMENT, NULL,
                      "CDI device injection failed: /dev/null is a device of type c, not b");
        EXPECT_EDITED(
                HEAD "devices: [{name: d, containerEdits: {deviceNodes: [{path: /etc/passwd}]}}]\n",
                "v/c=d", DOCUMENT, NULL,
                "CDI device injection failed: /etc/passwd is not a device node");
}

TEST(mounts_replace_earlier_ones_at_their_path_and_are_sorted_by_depth)
{
        EXPECT_EDITED(
                HEAD "devices:\n- name: d\n  containerEdits:\n    mounts:\n"
                     "    - {hostPath: /x, containerPath: /a/b, options: [ro, bind]}\n"
                     "    - {hostPath: tmpfs, containerPath: /z, type: tmpfs}\n",
                "v/c=d",
                "{\"process\":{},\"linux\":{},\"mounts\":[{\"destination\":\"/a/b\"},"
                "{\"destination\":\"/a/b/c\"},{\"destination\":\"/y\"}]}",
                NULL,
                "{\"linux\":{},\"mounts\":[{\"destination\":\"/y\"},{\"destination\":\"/z\","
                "\"source\":\"tmpfs\",\"type\":\"tmpfs\"},{\"destination\":\"/a/b\",\"options\":["
                "\"ro\",\"bind\"],\"source\":\"/x\"},{\"destination\":\"/a/b/"
                "c\"}],\"process\":{}}");
}

TEST(shim_bind_mounts_devices_in_a_user_namespace)
{
        EXPECT_EDITED(
                HEAD "devices:\n- name: d\n  containerEdits:\n    mounts:\n"
                     "    - {hostPath: /x, containerPath: /m, options: [ro, bind]}\n"
                     "    deviceNodes: [{path: /dev/sink, hostPath: /dev/null}]\n",
                "v/c=d", "{\"process\":{},\"linux\":{},\"mounts\":[]}", "/proc/7/ns/user",
                "{\"linux\":{\"devices\":[],\"resources\":{\"devices\":[{\"access\":\"rwm\","
                "\"allow\":true,\"major\":1,\"minor\":3,\"type\":\"c\"}]}},\"mounts\":[{"
                "\"destination\":\"/m\",\"options\":[\"ro\",\"bind\"],\"source\":\"/run/mainstay/"
                "pods/u/containers/main/0/cdi/0\"},{\"destination\":\"/dev/sink\",\"options\":["
                "\"bind\",\"nosuid\",\"noexec\"],\"source\":\"/dev/null\",\"type\":\"bind\"}],"
                "\"process\":{}}");
}

TEST(hooks_are_appended_and_resctrl_is_replaced)
{
        EXPECT_EDITED(
                HEAD
                "devices:\n- name: d\n  containerEdits:\n    hooks:\n"
                "    - {hookName: createRuntime, path: /h, args: [h], env: [A=b], timeout: 3}\n"
                "    - {hookName: poststop, path: /p}\n"
                "    intelRdt: {closID: x, schemata: [a], enableMonitoring: true}\n",
                "v/c=d",
                "{\"process\":{},\"linux\":{\"intelRdt\":{\"closID\":\"old\"}},\"hooks\":{"
                "\"createRuntime\":[{\"path\":\"/first\"}]},\"mounts\":[]}",
                NULL,
                "{\"hooks\":{\"createRuntime\":[{\"path\":\"/first\"},{\"args\":[\"h\"],\"env\":["
                "\"A=b\"],\"path\":\"/h\",\"timeout\":3}],\"poststop\":[{\"path\":\"/p\"}]},"
                "\"linux\":{\"intelRdt\":{\"closID\":\"x\",\"enableMonitoring\":true,\"schemata\":["
                "\"a\"]}},\"mounts\":[],\"process\":{}}");
}

TEST(all_unresolvable_devices_are_named_and_nothing_is_applied)
{
        EXPECT_EDITED(HEAD "devices: [{name: d, containerEdits: {env: [A=b]}}]\n",
                      "v/c=x,v/c=d,v/c=y", DOCUMENT, NULL,
                      "CDI device injection failed: unresolvable CDI devices v/c=x, v/c=y: nothing "
                      "defines it");
        EXPECT_EDITED(
                HEAD "devices: [{name: d, containerEdits: {env: [A=b]}}]\n", "gpu", DOCUMENT, NULL,
                "failed to parse CDI device annotations: annotation cdi.k8s.io/a: must be the name "
                "of a CDI device, vendor.com/class=name, not 'gpu'");
}

TEST(network_devices_are_passed_to_the_hook_of_the_shim)
{
        cleanup_free char *expected = text_format(
                "{\"hooks\":{\"createRuntime\":[{\"args\":[\"mainstay-shim\",\"net-devices\"],"
                "\"path\":"
                "\"/shim\"}]},\"linux\":{},\"mainstay\":{\"hostNetwork\":\"/proc/%d/ns/net\","
                "\"netDevices\":{\"eth7\":\"net0\",\"eth8\":\"net1\"}},\"process\":{}}",
                (int) getpid());

        EXPECT_EDITED(HEAD
                      "containerEdits: {netDevices: [{hostInterfaceName: eth7, name: net0}]}\n"
                      "devices: [{name: d, containerEdits: {netDevices: [{hostInterfaceName: eth8, "
                      "name: net1}]}}]\n",
                      "v/c=d", "{\"process\":{},\"linux\":{}}", NULL, expected);
}
