/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/bundle/resolved-security.h"

#include "agent/bundle/seccomp.h"
#include "agent/model/capability.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "tests/test.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

static OptionalInt number(int64_t value) {
        return (OptionalInt){ .is_set = true, .value = value };
}

static BundleConfig config = { .state_dir = "/nowhere" };
static Image image = { .uid = 5, .gid = 6 };
static Container container = { .name = (char[]){ "c" } };
static Pod pod = { .metadata = { .name = (char[]){ "p" },
                                 .namespace = (char[]){ "ns" },
                                 .uid = (char[]){ "1" } } };

static RuntimeSpecInput input(void) {
        memset(&container.security_context, 0, sizeof(container.security_context));
        memset(&pod.spec, 0, sizeof(pod.spec));
        image = (Image){ .uid = 5, .gid = 6 };
        config = (BundleConfig){ .state_dir = test_directory() };
        return (RuntimeSpecInput){
                .config = &config, .pod = &pod, .container = &container, .image = &image
        };
}

/* The resolved user, or the message of the error. */
static ContainerSecurity resolve(const RuntimeSpecInput *of) {
        cleanup_error Error error = ERROR_NULL;
        ContainerSecurity security = { 0 };
        int r = resolve_container_security(of, &security, &error);

        if (r < 0)
                test_fail(__FILE__, __LINE__, "container_security()", "%s",
                          error_message(&error, r));
        return security;
}

static char *groups(const ContainerSecurity *security) {
        return json_dumps(security->groups, JSON_COMPACT);
}

TEST(user_of_image_is_the_default_with_its_groups)
{
        gid_t of_image[] = { 29, 6 };
        RuntimeSpecInput in = input();
        cleanup_with(container_security_done) ContainerSecurity security = { 0 };
        cleanup_free char *text = NULL;

        image.groups = of_image;
        image.n_groups = N_ELEMENTS(of_image);
        security = resolve(&in);
        text = groups(&security);
        EXPECT_EQ(security.uid, 5);
        EXPECT_EQ(security.gid, 6);
        EXPECT_STREQ(text, "[6,29]");
        EXPECT(!security.no_new_privileges && !security.is_privileged);
        EXPECT(security.seccomp);
}

static void write_layer(const char *layer, const char *file, const char *text) {
        cleanup_free char *path = NULL;
        char *slash;

        REQUIRE(asprintf(&path, "%s/%s/etc/%s", test_directory(), layer, file) > 0);
        slash = strrchr(path, '/');
        *slash = '\0';
        REQUIRE(mkdir_parents_at(AT_FDCWD, path, 0755) == 0);
        *slash = '/';
        REQUIRE(write_file_atomic_at(AT_FDCWD, path, text, strlen(text), 0644) == 0);
}

TEST(topmost_passwd_and_group_files_count)
{
        RuntimeSpecInput in = input();
        cleanup_free char *top = path_join(test_directory(), "top"),
                          *base = path_join(test_directory(), "base");
        char *layers[] = { top, base, NULL };
        static const struct {
                int64_t uid;
                const char *groups;
        } cases[] = {
                { 1000, "[100,29]" }, { 1001, "[0]" }, { 1002, "[0]" }, { 7, "[7]" }, { 8, "[0]" },
        };

        write_layer("top", "passwd",
                    "app:x:1000:100:An app:/:/bin/sh\nbroken:x:1001\nodd:x:1002:99x:\n"
                    "last:x:7:7::");
        write_layer("base", "passwd", "hidden:x:8:8::\n");
        write_layer("base", "group", "audio:x:29:x,app,y\napple:x:30:apple\n\n:::\nbad:x:z:app\n");
        image.layers = layers;
        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_with(container_security_done) ContainerSecurity security = { 0 };
                cleanup_free char *text = NULL;

                pod.spec.security_context.run_as_user = number(cases[i].uid);
                security = resolve(&in);
                text = groups(&security);
                EXPECT_STREQ(text, cases[i].groups);
        }
}

TEST(whiteout_hides_passwd)
{
        RuntimeSpecInput in = input();
        cleanup_free char *top = path_join(test_directory(), "top"),
                          *base = path_join(test_directory(), "base"), *etc = path_join(top, "etc");
        char *layers[] = { top, base, NULL };
        cleanup_with(container_security_done) ContainerSecurity security = { 0 };

        write_layer("base", "passwd", "app:x:1000:100::\n");
        REQUIRE(mkdir(top, 0755) == 0);
        /* The link leads to a directory that exists on the node but not in the image. */
        REQUIRE(symlink(test_directory(), etc) == 0);
        image.layers = layers;
        container.security_context.run_as_user = number(1000);
        security = resolve(&in);
        EXPECT_EQ(security.gid, 0);
}

TEST(container_context_overrides_the_pods)
{
        RuntimeSpecInput in = input();
        cleanup_with(container_security_done) ContainerSecurity security = { 0 };
        cleanup_free char *text = NULL;
        int64_t supplemental[] = { 70, 22 };

        pod.spec.security_context = (PodSecurityContext){
                .run_as_user = number(10),
                .run_as_group = number(20),
                .supplemental_groups = { supplemental, N_ELEMENTS(supplemental) },
                .fs_group = number(80),
        };
        container.security_context.run_as_group = number(22);
        security = resolve(&in);
        text = groups(&security);
        EXPECT_EQ(security.uid, 10);
        EXPECT_EQ(security.gid, 22);
        EXPECT_STREQ(text, "[22,70,80]");
}

TEST(run_as_non_root_refuses_root)
{
        static const struct {
                const char *user;
                uid_t uid;
                int64_t run_as_user;  /* -1: unset */
                const char *sentence; /* NULL: accepted */
        } cases[] = {
                { NULL, 0, -1, "container has runAsNonRoot and image will run as root" },
                { "0", 0, -1, "container has runAsNonRoot and image will run as root" },
                { "0:7", 0, -1, "container has runAsNonRoot and image will run as root" },
                { "app", 1000, -1,
                  "container has runAsNonRoot and image has non-numeric user (app), cannot verify "
                  "user is non-root" },
                { "app:7", 1000, -1,
                  "container has runAsNonRoot and image has non-numeric user (app), cannot verify "
                  "user is non-root" },
                { "1000", 1000, -1, NULL },
                { "1000:0", 1000, -1, NULL },
                { "app", 1000, 7, NULL },
                { "app", 1000, 0, "container's runAsUser breaks non-root policy" },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                RuntimeSpecInput in = input();
                cleanup_with(container_security_done) ContainerSecurity security = { 0 };
                cleanup_error Error error = ERROR_NULL;
                cleanup_free char *user = cases[i].user ? strdup(cases[i].user) : NULL;
                cleanup_free char *expected = NULL;

                image.user = user;
                image.uid = cases[i].uid;
                pod.spec.security_context.run_as_non_root = (OptionalBool){ true, true };
                if (cases[i].run_as_user >= 0)
                        container.security_context.run_as_user = number(cases[i].run_as_user);
                EXPECT_EQ(resolve_container_security(&in, &security, &error),
                          cases[i].sentence ? -BUNDLE_CONFIG_ERROR : 0);
                if (cases[i].sentence)
                        REQUIRE(asprintf(&expected, "%s (pod: \"p_ns(1)\", container: c)",
                                         cases[i].sentence) > 0);
                EXPECT_STREQ(error.message, expected);
        }
        image.user = NULL;
}

TEST(capabilities_are_combined_as_container_engines_do)
{
        static char net_admin[] = "NET_ADMIN", chown_name[] = "CAP_CHOWN", all[] = "all";
        static char *add_admin[] = { net_admin, NULL }, *drop_chown[] = { chown_name, NULL };
        static char *every[] = { all, NULL };
        const uint64_t missing = CAPABILITY_BIT(CAP_SYS_RESOURCE) | CAPABILITY_BIT(CAP_KILL);
        const uint64_t customary = 0xa80425fb & ~missing;
        const struct {
                char **add, **drop;
                bool privileged;
                uint64_t expected;
        } cases[] = {
                { NULL, NULL, false, customary },
                { add_admin, NULL, false, customary | CAPABILITY_BIT(CAP_NET_ADMIN) },
                { NULL, drop_chown, false, customary & ~CAPABILITY_BIT(CAP_CHOWN) },
                { NULL, every, false, 0 },
                { add_admin, every, false, CAPABILITY_BIT(CAP_NET_ADMIN) },
                { every, NULL, false, CAPABILITIES_ALL & ~missing },
                { every, drop_chown, false,
                  CAPABILITIES_ALL & ~missing & ~CAPABILITY_BIT(CAP_CHOWN) },
                { NULL, every, true, CAPABILITIES_ALL & ~missing },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                RuntimeSpecInput in = input();
                cleanup_with(container_security_done) ContainerSecurity security = { 0 };

                config.missing_capabilities = missing;
                container.security_context.capabilities =
                        (Capabilities){ .add = cases[i].add, .drop = cases[i].drop };
                container.security_context.privileged = cases[i].privileged;
                security = resolve(&in);
                EXPECT_EQ(security.capabilities, cases[i].expected);
        }
        memset(&container.security_context, 0, sizeof(container.security_context));
}

static char *write_app_armor_profiles(void) {
        static const char text[] = "mine (enforce)\nmine (old) (complain)\nfree (unconfined)\n";
        char *path = path_join(test_directory(), "profiles");

        REQUIRE(write_file_atomic_at(AT_FDCWD, path, text, strlen(text), 0600) == 0);
        return path;
}

TEST(app_armor_profile_is_refused_without_kernel_support)
{
        SecurityProfile profile = { .type = PROFILE_LOCALHOST,
                                    .localhost_profile = (char[]){ "mine" } };
        cleanup_free char *path = write_app_armor_profiles();
        RuntimeSpecInput in = input();
        ContainerSecurity security = { 0 };
        cleanup_error Error error = ERROR_NULL;

        container.security_context.app_armor_profile = &profile;
        EXPECT(resolve_container_security(&in, &security, &error) < 0);
        EXPECT_STREQ(error.message, "Cannot enforce AppArmor: AppArmor is not enabled on the host");
        config.has_app_armor = true;
        config.app_armor_profiles = path;
        security = resolve(&in);
        EXPECT_STREQ(security.app_armor_profile, "mine");
        container_security_done(&security);
        profile.type = PROFILE_RUNTIME_DEFAULT;
        config.has_app_armor = false;
        security = resolve(&in);
        EXPECT(!security.app_armor_profile);
        container_security_done(&security);
        memset(&container.security_context, 0, sizeof(container.security_context));
}

TEST(app_armor_profile_that_confines_nothing_is_refused)
{
        static const char *const names[] = {
                "unconfined",  "::unconfined", ":root:unconfined",
                "&unconfined", "&mine",        "mine//&unconfined",
                "mine (old",   "mine\nmine",   "free",
                "min",         "mine2",        "",
        };
        cleanup_free char *path = write_app_armor_profiles();

        for (size_t i = 0; i < N_ELEMENTS(names); i++) {
                SecurityProfile profile = { .type = PROFILE_LOCALHOST,
                                            .localhost_profile = (char *) (uintptr_t) names[i] };
                RuntimeSpecInput in = input();
                ContainerSecurity security = { 0 };
                cleanup_error Error error = ERROR_NULL;

                config.has_app_armor = true;
                config.app_armor_profiles = path;
                pod.spec.security_context.app_armor_profile = &profile;
                if (resolve_container_security(&in, &security, &error) >= 0)
                        test_fail(__FILE__, __LINE__, "container_security()", "'%s' is used",
                                  names[i]);
                EXPECT(strstr(error_message(&error, 0), "Cannot enforce AppArmor: profile"));
        }
        memset(&pod.spec, 0, sizeof(pod.spec));
}

TEST(app_armor_defaults_to_the_nodes_profile_if_loaded)
{
        SecurityProfile profile = { 0 };
        static const struct {
                ProfileType type;
                bool is_privileged;
                const char *expected;
        } cases[] = {
                { PROFILE_UNSET, false, "ours" },
                { PROFILE_UNSET, true, "" },
                { PROFILE_RUNTIME_DEFAULT, false, "ours" },
                { PROFILE_RUNTIME_DEFAULT, true, "" },
                { PROFILE_UNCONFINED, false, "unconfined" },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                RuntimeSpecInput in = input();
                ContainerSecurity security;

                config.has_app_armor = true;
                config.app_armor_default = "ours";
                profile.type = cases[i].type;
                if (profile.type != PROFILE_UNSET)
                        pod.spec.security_context.app_armor_profile = &profile;
                container.security_context.privileged = cases[i].is_privileged;
                security = resolve(&in);
                EXPECT_STREQ(strna(security.app_armor_profile), cases[i].expected);
                container_security_done(&security);
        }
        memset(&container.security_context, 0, sizeof(container.security_context));
        memset(&pod.spec, 0, sizeof(pod.spec));
}

TEST(localhost_seccomp_profile_must_be_in_its_directory)
{
        SecurityProfile profile = { .type = PROFILE_LOCALHOST,
                                    .localhost_profile = (char[]){ "link" } };
        cleanup_free char *directory = path_join(test_directory(), "seccomp"),
                          *link = path_join(directory, "link");
        RuntimeSpecInput in = input();
        ContainerSecurity security = { 0 };
        cleanup_error Error error = ERROR_NULL;

        REQUIRE(mkdir(directory, 0755) == 0);
        REQUIRE(symlink("/usr/share/containers/seccomp.json", link) == 0);
        pod.spec.security_context.seccomp_profile = &profile;
        EXPECT_EQ(resolve_container_security(&in, &security, &error), -EXDEV);
        pod.spec.security_context.seccomp_profile = NULL;
}

TEST(privileged_container_gets_all_devices_only)
{
        cleanup_free char *deep = path_join(test_directory(), "deep"),
                          *pts = path_join(test_directory(), "pts"), *text = NULL;
        char path[256];
        json_t *devices;

        REQUIRE(mkdir(deep, 0755) == 0 && mkdir(pts, 0755) == 0);
        (void) snprintf(path, sizeof(path), "%s/file", deep);
        REQUIRE(write_file_atomic_at(AT_FDCWD, path, "", 0, 0644) == 0);
        (void) snprintf(path, sizeof(path), "%s/null", deep);
        if (mknod(path, S_IFCHR | 0620, makedev(1, 3)) < 0)
                return; /* not root */
        REQUIRE(chmod(path, 0620) == 0);
        (void) snprintf(path, sizeof(path), "%s/0", pts);
        REQUIRE(mknod(path, S_IFCHR | 0620, makedev(1, 3)) == 0);
        devices = node_devices(test_directory());
        EXPECT_EQ(json_array_size(devices), 1);
        text = json_dumps(json_array_get(devices, 0), JSON_COMPACT);
        (void) snprintf(path, sizeof(path),
                        "{\"path\":\"%s/null\",\"type\":\"c\",\"major\":1,\"minor\":3,"
                        "\"fileMode\":400,\"uid\":0,\"gid\":0}",
                        deep);
        EXPECT_STREQ(text, path);
        json_decref(devices);
}

TEST(only_safe_or_allowed_sysctls_are_accepted)
{
        Sysctl sysctl = { .name = (char[]){ "net/ipv4/tcp_syncookies" }, .value = (char[]){ "1" } };
        char *allowed[] = { (char[]){ "kernel.msg*" }, (char[]){ "net.core.somaxconn" }, NULL };
        static char unsafe[] = "kernel.msgmax", other[] = "net.core.somaxconns";
        cleanup_error Error error = ERROR_NULL;
        cleanup_free char *text = NULL;

        (void) input();
        pod.spec.security_context.sysctls.items = &sysctl;
        pod.spec.security_context.sysctls.n = 1;
        EXPECT_EQ(pod_check_sysctls(&config, &pod.spec, NULL), 0);
        text = pod_sysctls(&pod.spec);
        EXPECT_STREQ(text, "net/ipv4/tcp_syncookies = 1\n");
        sysctl.name = unsafe;
        EXPECT_EQ(pod_check_sysctls(&config, &pod.spec, &error), -EPERM);
        EXPECT_STREQ(error.message, "forbidden sysctl: \"kernel.msgmax\" not allowlisted");
        config.allowed_unsafe_sysctls = allowed;
        EXPECT_EQ(pod_check_sysctls(&config, &pod.spec, NULL), 0);
        sysctl.name = other;
        EXPECT_EQ(pod_check_sysctls(&config, &pod.spec, NULL), -EPERM);
        config.allowed_unsafe_sysctls = NULL;
}
