/* SPDX-License-Identifier: Apache-2.0 */

/* The tables for files of the Container Device Interface, versions 0.3.0 to 1.1.0. Further rules,
 * and the version that introduced each field, are in manifest/cdi-spec.c. */

#include "agent/model/cdi.h"
#include "agent/model/names.h"
#include "common/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define KERNEL_NUMBER_MAX ((int64_t) INT32_MAX)

static const char *const hook_names[] = {
        "prestart", "createRuntime", "createContainer", "startContainer", "poststart", "poststop",
        NULL,
};

/* The hooks of the OCI runtime specification. */
static bool cdi_hook_is_known(const char *name) {
        return text_is_one_of(name, hook_names);
}

static int check_hook_name(const char *value, Error *reterr) {
        char text[EXCERPT_SIZE];

        if (cdi_hook_is_known(value))
                return 0;
        return error_setf(reterr, EINVAL,
                          "must be prestart, createRuntime, createContainer, startContainer, "
                          "poststart or poststop, not '%s'",
                          excerpt(text, value));
}

static int check_device_type(const char *value, Error *reterr) {
        static const char *const types[] = { "b", "c", "u", "p", NULL };
        char text[EXCERPT_SIZE];

        if (text_is_one_of(value, types))
                return 0;
        return error_setf(reterr, EINVAL, "must be b, c, u or p, not '%s'", excerpt(text, value));
}

static int check_permissions(const char *value, Error *reterr) {
        char text[EXCERPT_SIZE];

        if (strspn(value, "rwm") == strlen(value) || strcmp(value, "none") == 0)
                return 0;
        return error_setf(reterr, EINVAL, "must be letters of rwm, or none, not '%s'",
                          excerpt(text, value));
}

static int check_assignment(const char *value, Error *reterr) {
        char text[EXCERPT_SIZE];

        if (value[0] != '=' && strchr(value, '='))
                return 0;
        return error_setf(reterr, EINVAL, "must be NAME=value, not '%s'", excerpt(text, value));
}

/* Root wrote the path, so ".." is accepted. */
static int check_rooted_path(const char *value, Error *reterr) {
        char text[EXCERPT_SIZE];

        if (value[0] == '/')
                return 0;
        return error_setf(reterr, EINVAL, "must be an absolute path, not '%s'",
                          excerpt(text, value));
}

/* The name of a resctrl directory, or its root. */
static int check_clos_id(const char *value, Error *reterr) {
        char text[EXCERPT_SIZE];

        if (strcmp(value, "/") == 0 || (strlen(value) < 4096 && strcmp(value, ".") != 0 &&
                                        strcmp(value, "..") != 0 && !strpbrk(value, "/\n")))
                return 0;
        return error_setf(reterr, EINVAL, "must be '/' or the name of a directory, not '%s'",
                          excerpt(text, value));
}

/* The kernel's rule for interface names. */
static int check_interface_name(const char *value, Error *reterr) {
        char text[EXCERPT_SIZE];

        if (strlen(value) < 16 && strcmp(value, ".") != 0 && strcmp(value, "..") != 0 &&
            !strpbrk(value, "/: \t\n"))
                return 0;
        return error_setf(reterr, EINVAL, "must be the name of a network interface, not '%s'",
                          excerpt(text, value));
}

/* clang-format off */
#define CHECK(function) .check = (function)
#define REQUIRED        .is_required = true

static const Field device_node_fields[] = {
        FIELD("path",        STRING, CdiDeviceNode, path, REQUIRED, CHECK(check_rooted_path)),
        FIELD("hostPath",    STRING, CdiDeviceNode, host_path, CHECK(check_rooted_path)),
        FIELD("type",        STRING, CdiDeviceNode, type, CHECK(check_device_type)),
        FIELD("major",       INT,    CdiDeviceNode, major, .min = 0, .max = KERNEL_NUMBER_MAX),
        FIELD("minor",       INT,    CdiDeviceNode, minor, .min = 0, .max = KERNEL_NUMBER_MAX),
        FIELD("fileMode",    INT,    CdiDeviceNode, file_mode, .min = 0, .max = UINT32_MAX),
        FIELD("permissions", STRING, CdiDeviceNode, permissions, CHECK(check_permissions)),
        FIELD("uid",         INT,    CdiDeviceNode, uid, .min = 0, .max = UINT32_MAX),
        FIELD("gid",         INT,    CdiDeviceNode, gid, .min = 0, .max = UINT32_MAX),
};
static const Schema device_node_schema =
        SCHEMA(CdiDeviceNode, device_node_fields, .is_strict = true);

static const Field net_device_fields[] = {
        FIELD("hostInterfaceName", STRING, CdiNetDevice, host_interface_name, REQUIRED,
              CHECK(check_interface_name)),
        FIELD("name",              STRING, CdiNetDevice, name, REQUIRED, CHECK(check_interface_name)),
};
static const Schema net_device_schema = SCHEMA(CdiNetDevice, net_device_fields, .is_strict = true);

static const Field mount_fields[] = {
        FIELD("hostPath",      STRING,  CdiMount, host_path, REQUIRED),
        FIELD("containerPath", STRING,  CdiMount, container_path, REQUIRED, CHECK(check_rooted_path)),
        FIELD("type",          STRING,  CdiMount, type),
        FIELD("options",       STRINGS, CdiMount, options),
};
static const Schema mount_schema = SCHEMA(CdiMount, mount_fields, .is_strict = true);

static const Field hook_fields[] = {
        FIELD("hookName", STRING,  CdiHook, hook_name, REQUIRED, CHECK(check_hook_name)),
        FIELD("path",     STRING,  CdiHook, path, REQUIRED, CHECK(check_rooted_path)),
        FIELD("args",     STRINGS, CdiHook, args),
        FIELD("env",      STRINGS, CdiHook, env, CHECK(check_assignment)),
        FIELD("timeout",  INT,     CdiHook, timeout, .min = 0, .max = INT32_MAX),
};
static const Schema hook_schema = SCHEMA(CdiHook, hook_fields, .is_strict = true);

static const Field intel_rdt_fields[] = {
        FIELD("closID",           STRING,  CdiIntelRdt, clos_id, CHECK(check_clos_id)),
        FIELD("l3CacheSchema",    STRING,  CdiIntelRdt, l3_cache_schema),
        FIELD("memBwSchema",      STRING,  CdiIntelRdt, mem_bw_schema),
        FIELD("schemata",         STRINGS, CdiIntelRdt, schemata),
        FIELD("enableMonitoring", BOOL,    CdiIntelRdt, enable_monitoring),
        FIELD("enableCMT",        BOOL,    CdiIntelRdt, enable_cmt),
        FIELD("enableMBM",        BOOL,    CdiIntelRdt, enable_mbm),
};
static const Schema intel_rdt_schema = SCHEMA(CdiIntelRdt, intel_rdt_fields, .is_strict = true);

static const Field edits_fields[] = {
        FIELD("env",            STRINGS,  CdiEdits, env, CHECK(check_assignment)),
        FIELD("deviceNodes",    LIST,     CdiEdits, device_nodes, .schema = &device_node_schema),
        FIELD("netDevices",     LIST,     CdiEdits, net_devices, .schema = &net_device_schema),
        FIELD("hooks",          LIST,     CdiEdits, hooks, .schema = &hook_schema),
        FIELD("mounts",         LIST,     CdiEdits, mounts, .schema = &mount_schema),
        FIELD("intelRdt",       OPTIONAL, CdiEdits, intel_rdt, .schema = &intel_rdt_schema),
        FIELD("additionalGids", INTS,     CdiEdits, additional_gids, .min = 0, .max = UINT32_MAX),
};
static const Schema edits_schema = SCHEMA(CdiEdits, edits_fields, .is_strict = true);

static const Field device_fields[] = {
        FIELD("name",           STRING,     CdiDevice, name, REQUIRED, CHECK(check_cdi_device_name)),
        FIELD("annotations",    STRING_MAP, CdiDevice, annotations),
        FIELD("containerEdits", OBJECT,     CdiDevice, edits, REQUIRED, .schema = &edits_schema),
};
static const Schema device_schema = SCHEMA(CdiDevice, device_fields, .is_strict = true);

static const Field spec_fields[] = {
        FIELD("cdiVersion",     STRING,     CdiSpec, version, REQUIRED),
        FIELD("kind",           STRING,     CdiSpec, kind, REQUIRED, CHECK(check_cdi_kind)),
        FIELD("annotations",    STRING_MAP, CdiSpec, annotations),
        FIELD("devices",        LIST,       CdiSpec, devices, REQUIRED, .schema = &device_schema),
        FIELD("containerEdits", OBJECT,     CdiSpec, edits, .schema = &edits_schema),
};
const Schema cdi_spec_schema = SCHEMA(CdiSpec, spec_fields, .is_strict = true);
/* clang-format on */

CdiSpec *cdi_spec_free(CdiSpec *spec) {
        if (spec)
                schema_done(&cdi_spec_schema, spec);
        free(spec);
        return NULL;
}
