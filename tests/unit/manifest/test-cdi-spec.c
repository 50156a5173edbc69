/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/manifest/cdi-spec.h"

#include "common/cleanup.h"
#include "common/text.h"
#include "tests/test.h"

#include <errno.h>

static const char everything[] =
        "cdiVersion: v1.1.0\n"
        "kind: vendor.com/class.a\n"
        "annotations: {vendor.com/note: x}\n"
        "containerEdits:\n"
        "  env: [COMMON=1]\n"
        "devices:\n"
        "- name: 0:a\n"
        "  annotations: {note: two}\n"
        "  containerEdits:\n"
        "    env: [A=1, B=]\n"
        "    deviceNodes:\n"
        "    - {path: /dev/a, hostPath: /dev/x, type: c, major: 1, minor: 3, fileMode: 0660,\n"
        "       permissions: rw, uid: 7, gid: 8}\n"
        "    netDevices: [{hostInterfaceName: eth7, name: net0}]\n"
        "    mounts: [{hostPath: /lib/a, containerPath: /lib/b, type: bind, options: [ro, bind]}]\n"
        "    hooks: [{hookName: createContainer, path: /bin/h, args: [h, x], env: [E=1], timeout: "
        "5}]\n"
        "    intelRdt: {closID: c, l3CacheSchema: l, memBwSchema: m, schemata: [s],\n"
        "               enableMonitoring: true}\n"
        "    additionalGids: [5, 6]\n";

TEST(a_file_with_all_fields_is_read)
{
        cleanup_with(cdi_spec_freep) CdiSpec *spec = NULL;
        cleanup_error Error error = ERROR_NULL;
        const CdiDevice *device;

        if (cdi_spec_parse("x.yaml", everything, strlen(everything), &spec, &error) < 0)
                test_fail(__FILE__, __LINE__, "everything", "%s", error.message);
        REQUIRE(spec && spec->devices.n == 1);
        EXPECT_STREQ(spec->kind, "vendor.com/class.a");
        EXPECT_STREQ(spec->edits.env[0], "COMMON=1");
        device = &spec->devices.items[0];
        EXPECT_STREQ(device->name, "0:a");
        EXPECT_EQ(device->line, 7);
        EXPECT_EQ(device->edits.device_nodes.items[0].file_mode.value, 0660);
        EXPECT_EQ(device->edits.device_nodes.items[0].gid.value, 8);
        EXPECT_STREQ(device->edits.net_devices.items[0].name, "net0");
        EXPECT_STREQ(device->edits.mounts.items[0].options[1], "bind");
        EXPECT_EQ(device->edits.hooks.items[0].timeout.value, 5);
        EXPECT(device->edits.intel_rdt->enable_monitoring);
        EXPECT_EQ(device->edits.additional_gids.items[1], 6);
}

TEST(json_is_read_too)
{
        static const char text[] = "{\"cdiVersion\": \"0.3.0\", \"kind\": \"v/c\", \"devices\": "
                                   "[{\"name\": \"d\", \"containerEdits\": {\"env\": [\"A=b\"]}}]}";
        cleanup_with(cdi_spec_freep) CdiSpec *spec = NULL;

        EXPECT_EQ(cdi_spec_parse("x.json", text, strlen(text), &spec, NULL), 0);
}

/* Returns a file with this version and these edits of its device after other lines. */
static int parse_device(const char *version, const char *kind, const char *name, const char *lines,
                        const char *edits, Error *reterr) {
        cleanup_with(cdi_spec_freep) CdiSpec *spec = NULL;
        cleanup_free char *text = text_format("cdiVersion: %s\nkind: %s\n%sdevices:\n- name: %s\n"
                                              "  containerEdits: {%s}\n",
                                              version, kind, lines, name, edits);

        REQUIRE(text);
        return cdi_spec_parse("x.yaml", text, strlen(text), &spec, reterr);
}

typedef struct VersionCase {
        const char *first; /* first version with the field */
        const char *before;
        const char *kind, *name, *lines, *edits;
        const char *message; /* with the previous version */
} VersionCase;

TEST(each_version_accepts_the_fields_that_were_added_until_then)
{
        static const VersionCase cases[] = {
                { "0.4.0", "0.3.0", "v/c", "d", "",
                  "mounts: [{hostPath: /a, containerPath: /b, type: bind}]",
                  "x.yaml:5:69: devices[0].containerEdits.mounts[0].type: needs cdiVersion 0.4.0 "
                  "or "
                  "later; this file has 0.3.0" },
                { "0.5.0", "0.4.0", "v/c", "d", "",
                  "deviceNodes: [{path: /dev/a, hostPath: /dev/b}]",
                  "x.yaml:5:59: devices[0].containerEdits.deviceNodes[0].hostPath: needs "
                  "cdiVersion "
                  "0.5.0 or later; this file has 0.4.0" },
                { "0.5.0", "0.4.0", "v/c", "\"0\"", "", "env: [A=b]",
                  "x.yaml:4:9: devices[0].name: must start with a letter before cdiVersion 0.5.0" },
                { "0.6.0", "0.5.0", "v/c", "d", "annotations: {a: b}\n", "env: [A=b]",
                  "x.yaml:3:14: annotations: needs cdiVersion 0.6.0 or later; this file has "
                  "0.5.0" },
                { "0.6.0", "0.5.0", "v/c.d", "d", "", "env: [A=b]",
                  "x.yaml:2:7: kind: must have no '.' in its class before cdiVersion 0.6.0" },
                { "0.7.0", "0.6.0", "v/c", "d", "", "intelRdt: {closID: a}",
                  "x.yaml:5:30: devices[0].containerEdits.intelRdt: needs cdiVersion 0.7.0 or "
                  "later; "
                  "this file has 0.6.0" },
                { "0.7.0", "0.6.0", "v/c", "d", "", "additionalGids: [1]",
                  "x.yaml:5:36: devices[0].containerEdits.additionalGids: needs cdiVersion 0.7.0 "
                  "or "
                  "later; this file has 0.6.0" },
                { "1.1.0", "1.0.0", "v/c", "d", "", "netDevices: [{hostInterfaceName: a, name: b}]",
                  "x.yaml:5:32: devices[0].containerEdits.netDevices: needs cdiVersion 1.1.0 or "
                  "later; this file has 1.0.0" },
                { "1.1.0", "1.0.0", "v/c", "d", "", "intelRdt: {schemata: [a]}",
                  "x.yaml:5:41: devices[0].containerEdits.intelRdt.schemata: needs cdiVersion "
                  "1.1.0 "
                  "or later; this file has 1.0.0" },
                { "1.1.0", "0.8.0", "v/c", "d", "", "intelRdt: {enableMonitoring: true}",
                  "x.yaml:5:49: devices[0].containerEdits.intelRdt.enableMonitoring: needs "
                  "cdiVersion "
                  "1.1.0 or later; this file has 0.8.0" },
                { "1.0.0", "1.1.0", "v/c", "d", "", "intelRdt: {enableCMT: true}",
                  "x.yaml:5:42: devices[0].containerEdits.intelRdt.enableCMT: was removed in "
                  "version "
                  "1.1.0; use enableMonitoring" },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                const VersionCase *one = &cases[i];
                cleanup_error Error error = ERROR_NULL, good = ERROR_NULL;

                if (parse_device(one->first, one->kind, one->name, one->lines, one->edits, &good) <
                    0)
                        test_fail(__FILE__, __LINE__, one->edits, "%s", good.message);
                EXPECT_EQ(parse_device(one->before, one->kind, one->name, one->lines, one->edits,
                                       &error),
                          -EINVAL);
                EXPECT_STREQ(error.message, one->message);
        }
}

TEST(versions_that_do_not_exist_are_refused)
{
        static const char *const good[] = { "0.3.0",  "v0.4.0", "0.5.0", "0.6.0",
                                            "v0.7.0", "0.8.0",  "1.0.0", "1.1.0" };
        static const char *const bad[] = { "0.1.0", "0.2.0",   "0.9.0", "1.2.0",
                                           "1.1",   "vv1.1.0", "0.3.1", "2.0.0" };

        for (size_t i = 0; i < N_ELEMENTS(good); i++)
                EXPECT_EQ(parse_device(good[i], "v/c", "d", "", "env: [A=b]", NULL), 0);
        for (size_t i = 0; i < N_ELEMENTS(bad); i++)
                EXPECT_EQ(parse_device(bad[i], "v/c", "d", "", "env: [A=b]", NULL), -EINVAL);
}

TEST(invalid_edits_are_refused_with_their_place)
{
        static const struct {
                const char *edits, *message;
        } cases[] = {
                { "", "x.yaml:5:19: devices[0].containerEdits: must not be empty" },
                { "env: [A]",
                  "x.yaml:5:26: devices[0].containerEdits.env[0]: must be NAME=value, not 'A'" },
                { "env: ['=1']",
                  "x.yaml:5:26: devices[0].containerEdits.env[0]: must be NAME=value, not '=1'" },
                { "deviceNodes: [{}]",
                  "x.yaml:5:34: devices[0].containerEdits.deviceNodes[0].path: is required" },
                { "deviceNodes: [{path: dev}]",
                  "x.yaml:5:41: devices[0].containerEdits.deviceNodes[0].path: must be an absolute "
                  "path, not 'dev'" },
                { "deviceNodes: [{path: /d, type: x}]",
                  "x.yaml:5:51: devices[0].containerEdits.deviceNodes[0].type: must be b, c, u or "
                  "p, not 'x'" },
                { "deviceNodes: [{path: /d, permissions: rx}]",
                  "x.yaml:5:58: devices[0].containerEdits.deviceNodes[0].permissions: must be "
                  "letters of rwm, or none, not 'rx'" },
                { "hooks: [{hookName: never, path: /h}]",
                  "x.yaml:5:39: devices[0].containerEdits.hooks[0].hookName: must be prestart, "
                  "createRuntime, "
                  "createContainer, startContainer, poststart or poststop, not 'never'" },
                { "hooks: [{hookName: prestart}]",
                  "x.yaml:5:28: devices[0].containerEdits.hooks[0].path: is required" },
                { "mounts: [{hostPath: /a}]",
                  "x.yaml:5:29: devices[0].containerEdits.mounts[0].containerPath: is required" },
                { "intelRdt: {closID: a/b}",
                  "x.yaml:5:39: devices[0].containerEdits.intelRdt.closID: must be '/' or the name "
                  "of a directory, not 'a/b'" },
                { "netDevices: [{hostInterfaceName: a, name: b}, {hostInterfaceName: c, name: b}]",
                  "x.yaml:5:66: devices[0].containerEdits.netDevices[1]: must have names that no "
                  "other network device has" },
                { "privileged: true",
                  "x.yaml:5:20: devices[0].containerEdits.privileged: is not a field of CdiEdits" },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_error Error error = ERROR_NULL;

                EXPECT_EQ(parse_device("1.1.0", "v/c", "d", "", cases[i].edits, &error), -EINVAL);
                EXPECT_STREQ(error.message, cases[i].message);
        }
}

static void expect_refused(const char *text, const char *message) {
        cleanup_with(cdi_spec_freep) CdiSpec *spec = NULL;
        cleanup_error Error error = ERROR_NULL;

        EXPECT_EQ(cdi_spec_parse("x.yaml", text, strlen(text), &spec, &error), -EINVAL);
        EXPECT_STREQ(error.message, message);
}

TEST(files_that_are_not_a_specification_are_refused)
{
        expect_refused("", "x.yaml: must have one document, not 0");
        expect_refused("a", "x.yaml:1:1: must be a mapping, not the string 'a'");
        expect_refused("cdiVersion: 0.3.0\nkind: v/c\n", "x.yaml:1:1: devices: is required");
        expect_refused("cdiVersion: 0.3.0\nkind: v/c\ndevices: []\n",
                       "x.yaml:3:10: devices: is required");
        expect_refused(
                "cdiVersion: 0.3.0\nkind: c\ndevices: [{name: d, containerEdits: {env: [A=b]}}]\n",
                "x.yaml:2:7: kind: must be a vendor and a class, vendor.com/class, not 'c'");
        expect_refused(
                "cdiVersion: 0.3.0\nkind: v/c\ndevices: [{name: d, containerEdits: {env: [A=b]}}, "
                "{name: d, containerEdits: {env: [A=b]}}]\n",
                "x.yaml:3:59: devices[1].name: is the name of another device of this file");
}

TEST(a_cdi_file_is_distinguished_from_a_manifest)
{
        static const char manifest[] = "apiVersion: v1\nkind: Pod\n";

        EXPECT(cdi_spec_is_one(everything, strlen(everything)));
        EXPECT(!cdi_spec_is_one(manifest, strlen(manifest)));
        EXPECT(!cdi_spec_is_one("]", 1));
        EXPECT(!cdi_spec_is_one("", 0));
}
