/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/bundle/selinux-labels.h"

#include "agent/bundle/image-volumes.h"
#include "agent/bundle/runtime-spec.h"
#include "agent/bundle/selinux-relabel.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "tests/test.h"

#include <fcntl.h>
#include <jansson.h>

static SeLinuxLabelDefaults defaults = { .process = (char[]){ "system_u:system_r:container_t:s0" },
                                         .file = (char[]){
                                                 "system_u:object_r:container_file_t:s0" } };
static BundleConfig config;
static Container containers[3];
static Pod pod;

static void write_text(const char *path, const char *text) {
        cleanup_free char *full = path_join(test_directory(), path), *parent = strdup(full);

        REQUIRE(full && parent);
        *strrchr(parent, '/') = '\0';
        REQUIRE(mkdir_parents_at(AT_FDCWD, parent, 0755) == 0);
        REQUIRE(write_file_atomic_at(AT_FDCWD, full, text, strlen(text), 0644) == 0);
}

/* A pod of three containers on a node with SELinux. */
static void world_init(const char *uid) {
        static char name[] = "c";
        cleanup_free char *directory = NULL;

        config = (BundleConfig){ .run_dir = test_directory(),
                                 .has_se_linux = true,
                                 .has_selinux_labels = true,
                                 .labels = &defaults };
        memset(containers, 0, sizeof(containers));
        for (size_t i = 0; i < N_ELEMENTS(containers); i++)
                containers[i].name = name;
        pod = (Pod){ .metadata.uid = (char *) (uintptr_t) uid,
                     .spec.containers = { containers, N_ELEMENTS(containers) } };
        REQUIRE(asprintf(&directory, "%s/pods/%s", config.run_dir, uid) > 0);
        REQUIRE(mkdir_parents_at(AT_FDCWD, directory, 0700) == 0);
}

static char *level_of(const char *uid) {
        cleanup_free char *path = NULL;
        char *text = NULL;

        world_init(uid);
        EXPECT_EQ(selinux_prepare_pod_level(&config, &pod, NULL), 0);
        REQUIRE(asprintf(&path, "%s/pods/%s/level", config.run_dir, uid) > 0);
        REQUIRE(read_file_at(AT_FDCWD, path, 64, &text, NULL) == 0);
        return text;
}

static void set_level(const char *level) {
        cleanup_free char *path = NULL;

        REQUIRE(asprintf(&path, "pods/%s/level", pod.metadata.uid) > 0);
        write_text(path, level);
}

static void expect_labels(const Container *container, const char *process, const char *file) {
        cleanup_error Error error = ERROR_NULL;
        cleanup_with(selinux_labels_done) SeLinuxLabels labels = { 0 };
        int r = selinux_container_labels(&config, &pod, container, &labels, &error);

        EXPECT_STREQ(r < 0 ? error_message(&error, r) : "", "");
        EXPECT_STREQ(strna(labels.process), process);
        EXPECT_STREQ(strna(labels.file), file);
}

static void expect_error(const Container *container, int code, const char *sentence) {
        cleanup_error Error error = ERROR_NULL;
        cleanup_with(selinux_labels_done) SeLinuxLabels labels = { 0 };

        EXPECT_EQ(selinux_container_labels(&config, &pod, container, &labels, &error), -code);
        EXPECT_STREQ(strna(error.message), sentence);
}

#define WORD(text) ((char[]){ text })

TEST(pod_level_consists_of_two_ascending_categories_and_is_kept)
{
        unsigned a = 0, b = 0;
        cleanup_free char *first = level_of("one"), *again = level_of("one");

        EXPECT_EQ(sscanf(first, "s0:c%u,c%u\n", &a, &b), 2);
        EXPECT(a < b && b < 1024);
        EXPECT_STREQ(again, first);
}

TEST(no_two_pods_have_the_same_level)
{
        cleanup_free char *path = path_join(test_directory(), "pods/one/level");
        cleanup_free char *first = level_of("one"), *second = NULL;

        world_init("other");
        set_level(first);
        REQUIRE(unlink(path) == 0);
        second = level_of("one");
        EXPECT(!streq(first, second));
}

TEST(default_label_is_the_policys_with_the_pods_level)
{
        world_init("one");
        set_level("s0:c3,c700\n");
        expect_labels(&containers[0], "system_u:system_r:container_t:s0:c3,c700",
                      "system_u:object_r:container_file_t:s0:c3,c700");
}

TEST(policy_without_levels_gives_no_level)
{
        SeLinuxLabelDefaults plain = { .process = WORD("system_u:system_r:container_t"),
                                       .file = WORD("system_u:object_r:container_file_t") };

        world_init("one");
        config.labels = &plain;
        set_level("s0:c3,c700\n");
        expect_labels(&containers[0], "system_u:system_r:container_t",
                      "system_u:object_r:container_file_t");
}

TEST(selinux_options_of_container_replace_the_pods)
{
        SeLinuxOptions of_pod = { .user = WORD("pod_u"),
                                  .type = WORD("pod_t"),
                                  .level = WORD("s0:c1,c2") };
        SeLinuxOptions of_first = { .type = WORD("first_t") };
        SeLinuxOptions of_second = { .level = WORD("s0:c8.c9"), .role = WORD("second_r") };
        SeLinuxOptions nothing = { .type = WORD("") };

        world_init("one");
        set_level("s0:c3,c700\n");
        pod.spec.security_context.se_linux_options = &of_pod;
        containers[0].security_context.se_linux_options = &of_first;
        containers[1].security_context.se_linux_options = &of_second;
        containers[2].security_context.se_linux_options = &nothing;
        expect_labels(&containers[0], "system_u:system_r:first_t:s0:c1,c2",
                      "system_u:object_r:container_file_t:s0:c1,c2");
        expect_labels(&containers[1], "system_u:second_r:container_t:s0:c8.c9",
                      "system_u:object_r:container_file_t:s0:c8.c9");
        expect_labels(&containers[2], "pod_u:system_r:pod_t:s0:c1,c2",
                      "pod_u:object_r:container_file_t:s0:c1,c2");
}

TEST(privileged_container_is_unlabelled_but_its_files_are_labelled)
{
        world_init("one");
        set_level("s0:c3,c700\n");
        containers[0].security_context.privileged = true;
        expect_labels(&containers[0], "", "system_u:object_r:container_file_t:s0:c3,c700");
}

TEST(container_in_host_pid_or_ipc_is_labelled_only_on_request)
{
        SeLinuxOptions options = { .type = WORD("spc_t") };

        for (unsigned i = 0; i < 2; i++) {
                world_init("one");
                set_level("s0:c3,c700\n");
                pod.spec.host_pid = i == 0;
                pod.spec.host_ipc = i == 1;
                containers[1].security_context.se_linux_options = &options;
                expect_labels(&containers[0], "", "");
                expect_labels(&containers[1], "system_u:system_r:spc_t:s0:c3,c700",
                              "system_u:object_r:container_file_t:s0:c3,c700");
        }
}

TEST(selinux_options_are_ignored_without_selinux)
{
        SeLinuxOptions options = { .level = WORD("nonsense") };

        world_init("one");
        config = (BundleConfig){ .run_dir = test_directory() };
        containers[0].security_context.se_linux_options = &options;
        EXPECT_EQ(selinux_prepare_pod_level(&config, &pod, NULL), 0);
        expect_labels(&containers[0], "", "");
}

TEST(policy_without_container_contexts_labels_nothing_by_default)
{
        SeLinuxOptions options = { .type = WORD("my_t") };

        world_init("one");
        set_level("s0:c3,c700\n");
        config.has_selinux_labels = false;
        expect_labels(&containers[0], "", "");
        containers[1].security_context.se_linux_options = &options;
        expect_labels(&containers[1], "system_u:system_r:my_t:s0:c3,c700",
                      "system_u:object_r:container_file_t:s0:c3,c700");
        config.labels = NULL;
        expect_error(
                &containers[1], ENOTSUP,
                "seLinuxOptions: cannot set an SELinux label: the policy of this node defines no "
                "contexts of containers");
}

TEST(pod_started_without_labels_stays_without)
{
        SeLinuxOptions options = { .type = WORD("my_t") };

        world_init("unlabelled");
        expect_labels(&containers[0], "", "");
        containers[1].security_context.se_linux_options = &options;
        expect_error(
                &containers[1], ENOTSUP,
                "seLinuxOptions: the pod was started without SELinux labels and gets them when "
                "it is recreated");
}

TEST(selinux_level_is_checked_as_in_container_engines)
{
        static const struct {
                const char *level;
                bool good;
        } cases[] = {
                { "s0", true },       { "s0-s1", true },       { "s0:c1", true },
                { "s0:c1,c2", true }, { "s0:c1.c5,c9", true }, { "s0-s0:c0.c1023", true },
                { "s0:c1023", true }, { "S0", false },         { "s", false },
                { "s10", false },     { "s0:", false },        { "s0:1", false },
                { "s0:c", false },    { "s0:c12345", false },  { "s0:c1,", false },
                { "s0:c1 ", false },  { "s0:c1,c2\n", false }, { "s0:c1.5", false },
                { "s0,c1", false },   { "x", false },          { "s0:c1,\"", false },
        };

        world_init("one");
        set_level("s0:c3,c700\n");
        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_free char *level = strdup(cases[i].level);
                SeLinuxOptions options = { .level = level };
                cleanup_with(selinux_labels_done) SeLinuxLabels labels = { 0 };

                containers[0].security_context.se_linux_options = &options;
                EXPECT_EQ(selinux_container_labels(&config, &pod, &containers[0], &labels, NULL) ==
                                  0,
                          cases[i].good);
        }
        containers[0].security_context.se_linux_options = &(SeLinuxOptions){ .level = WORD("x") };
        expect_error(&containers[0], EINVAL,
                     "seLinuxOptions: the format of 'level' \"x\" is not correct");
}

/* The level is checked even if it is the only effective option, because the container has its own
 * options. */
TEST(selinux_level_of_the_pod_is_checked_under_options_of_a_container)
{
        SeLinuxOptions of_pod = { .level = WORD("s0\"\n/etc none none x-mainstay.group=1 0 0\n") };
        SeLinuxOptions own = { .type = WORD("other_t") };
        cleanup_with(selinux_labels_done) SeLinuxLabels labels = { 0 };
        cleanup_free char *shared_label = NULL;

        world_init("one");
        set_level("s0:c3,c700\n");
        pod.spec.security_context.se_linux_options = &of_pod;
        for (size_t i = 0; i < pod.spec.containers.n; i++) {
                containers[i].security_context.se_linux_options = i > 0 ? &own : NULL;
                EXPECT_EQ(selinux_container_labels(&config, &pod, &containers[i], &labels, NULL),
                          -EINVAL);
                EXPECT(!labels.file && !labels.process);
        }
        EXPECT_EQ(selinux_shared_label(&config, &pod, NULL, &shared_label), 0);
        EXPECT(!shared_label);
        of_pod.level = WORD("s0:c5,c6");
        of_pod.user = WORD("not a user");
        expect_labels(&containers[1], "system_u:system_r:other_t:s0:c5,c6",
                      "system_u:object_r:container_file_t:s0:c5,c6");
}

static int knows_all_but_alien(const char *label) {
        return strstr(label, "alien_t") ? -EINVAL : 0;
}

TEST(label_unknown_to_the_kernel_is_an_error)
{
        SeLinuxOptions options = { .type = WORD("alien_t") };

        world_init("one");
        set_level("s0:c3,c700\n");
        config.check_selinux_label = knows_all_but_alien;
        expect_labels(&containers[0], "system_u:system_r:container_t:s0:c3,c700",
                      "system_u:object_r:container_file_t:s0:c3,c700");
        containers[0].security_context.se_linux_options = &options;
        expect_error(&containers[0], EINVAL,
                     "seLinuxOptions: the SELinux policy of this node does not know "
                     "'system_u:system_r:alien_t:s0:c3,c700'");
}

TEST(option_with_a_separator_is_refused)
{
        static const char *const words[] = { "a,b", "a\"b", "a b", "a:b", "a\nb" };

        world_init("one");
        set_level("s0:c3,c700\n");
        for (size_t i = 0; i < N_ELEMENTS(words); i++) {
                cleanup_free char *word = strdup(words[i]);
                SeLinuxOptions options = { .type = word };
                cleanup_with(selinux_labels_done) SeLinuxLabels labels = { 0 };

                containers[0].security_context.se_linux_options = &options;
                EXPECT_EQ(selinux_container_labels(&config, &pod, &containers[0], &labels, NULL),
                          -EINVAL);
        }
}

static char *shared(const Volume *volume) {
        char *label = NULL;

        EXPECT_EQ(selinux_shared_label(&config, &pod, volume, &label), 0);
        return label;
}

TEST(shared_files_have_the_common_label_or_no_categories)
{
        SeLinuxOptions options = { .level = WORD("s0:c1,c2") };
        SeLinuxOptions wrong = { .level = WORD("x") };
        VolumeMount mount = { .name = WORD("both") }, own = { .name = WORD("own") };
        Volume both = { .name = WORD("both") }, alone = { .name = WORD("own") };
        Volume nobodys = { .name = WORD("nobodys") };
        cleanup_free char *first = NULL, *second = NULL, *third = NULL, *fourth = NULL;

        world_init("one");
        set_level("s0:c3,c700\n");
        first = shared(NULL);
        EXPECT_STREQ(first, "system_u:object_r:container_file_t:s0:c3,c700");
        containers[0].security_context.se_linux_options = &options;
        containers[2].security_context.se_linux_options = &wrong;
        containers[0].volume_mounts.items = (VolumeMount[]){ mount, own };
        containers[0].volume_mounts.n = 2;
        containers[1].volume_mounts.items = &mount;
        containers[1].volume_mounts.n = 1;
        second = shared(&both);
        EXPECT_STREQ(second, "system_u:object_r:container_file_t:s0");
        third = shared(&alone);
        EXPECT_STREQ(third, "system_u:object_r:container_file_t:s0:c1,c2");
        fourth = shared(&nobodys);
        EXPECT_STREQ(fourth, "system_u:object_r:container_file_t:s0");
        config.has_se_linux = false;
        EXPECT(!shared(&both));
}

/* "": it is mounted without a label. */
static void expect_mount_label(const char *label, const char *message) {
        static char name[] = "v";
        Volume volume = { .name = name };
        cleanup_error Error error = ERROR_NULL;
        cleanup_free char *found = NULL;
        int r = selinux_mount_label(&config, &pod, &volume, &found, &error);

        EXPECT_STREQ(r < 0 ? error_message(&error, r) : "", message);
        EXPECT_STREQ(strna(found), label);
}

TEST(volume_is_mounted_with_the_label_that_its_containers_set)
{
        static char name[] = "v", level[] = "s0:c5,c6", other[] = "s0:c7,c8";
        VolumeMount mount = { .name = name };
        SeLinuxOptions options = { .level = level }, others = { .level = other };

        world_init("mounted");
        set_level("s0:c1,c2\n");
        for (size_t i = 0; i < 2; i++) {
                containers[i].volume_mounts.items = &mount;
                containers[i].volume_mounts.n = 1;
        }
        expect_mount_label("", "");
        containers[2].security_context.se_linux_options = &options; /* does not mount it */
        expect_mount_label("", "");
        containers[0].security_context.se_linux_options = &options;
        expect_mount_label("system_u:object_r:container_file_t:s0:c5,c6", "");
        pod.spec.security_context.se_linux_change_policy = SE_LINUX_CHANGE_RECURSIVE;
        expect_mount_label("", "");
        pod.spec.security_context.se_linux_change_policy = SE_LINUX_CHANGE_MOUNT_OPTION;
        containers[1].security_context.se_linux_options = &others;
        expect_mount_label("", "multiple SELinux labels found: "
                               "system_u:object_r:container_file_t:s0:c5,c6,"
                               "system_u:object_r:container_file_t:s0:c7,c8");
        config.has_se_linux = false;
        expect_mount_label("", "");
}

TEST(container_contexts_are_read_from_the_policys_files)
{
        cleanup_with(selinux_label_defaults_done) SeLinuxLabelDefaults found = { 0 };

        EXPECT_EQ(selinux_label_defaults_load(test_directory(), &found), -ENOENT);
        write_text("etc/selinux/config", "# SELINUXTYPE=wrong\nSELINUX=enforcing\n"
                                         "SELINUXTYPE = mine \nSETLOCALDEFS=0\n");
        EXPECT_EQ(selinux_label_defaults_load(test_directory(), &found), -ENOENT);
        write_text("etc/selinux/mine/contexts/lxc_contexts",
                   "process = \"a_u:a_r:a_t:s0\"\ncontent = \"x\"\n"
                   "file = \"b_u:b_r:b_t:s0\"\nro_file = \"c\"\n");
        EXPECT_EQ(selinux_label_defaults_load(test_directory(), &found), 0);
        EXPECT_STREQ(found.process, "a_u:a_r:a_t:s0");
        EXPECT_STREQ(found.file, "b_u:b_r:b_t:s0");
        selinux_label_defaults_done(&found);
        write_text("usr/share/containers/selinux/contexts", "process = \"p:p:p\"\nfile=\"f:f:f\"");
        EXPECT_EQ(selinux_label_defaults_load(test_directory(), &found), 0);
        EXPECT_STREQ(found.process, "p:p:p");
        EXPECT_STREQ(found.file, "f:f:f");
}

static char *fstab_of(const RuntimeSpecInput *input,
                      int (*print)(const RuntimeSpecInput *, char **)) {
        char *text = NULL;

        EXPECT_EQ(print(input, &text), 0);
        return text;
}

TEST(relabelling_is_requested_for_own_volumes_and_never_for_host_paths)
{
        EmptyDirVolumeSource directory = { 0 };
        HostPathVolumeSource host_path = { .path = WORD("/etc") };
        Volume volumes[] = {
                { .name = WORD("mine"), .empty_dir = &directory },
                { .name = WORD("nodes"), .host_path = &host_path },
                { .name = WORD("others"), .empty_dir = &directory },
        };
        VolumeMount mounts[] = { { .name = WORD("mine") }, { .name = WORD("nodes") } };
        cleanup_free char *labelled = NULL, *plain = NULL, *expected = NULL;
        RuntimeSpecInput input;

        world_init("one");
        set_level("s0:c3,c700\n");
        write_text("pods/one/hosts", "");
        config.state_dir = "/state";
        pod.spec.volumes.items = volumes;
        pod.spec.volumes.n = N_ELEMENTS(volumes);
        containers[0].volume_mounts.items = mounts;
        containers[0].volume_mounts.n = N_ELEMENTS(mounts);
        input = (RuntimeSpecInput){ .config = &config, .pod = &pod, .container = &containers[0] };
        plain = fstab_of(&input, selinux_relabel_fstab);
        EXPECT_STREQ(plain, "");
        input.labels.file = WORD("u:r:own:s0:c1");
        labelled = fstab_of(&input, selinux_relabel_fstab);
        REQUIRE(asprintf(&expected,
                         "%1$s/pods/one/hosts none none x-mainstay.label=\"%2$s\" 0 0\n"
                         "%1$s/pods/one/shm none none x-mainstay.label=\"%2$s\" 0 0\n"
                         "/state/pods/one/volumes/kubernetes.io~empty-dir/mine none none "
                         "x-mainstay.label=\"%2$s\",x-mainstay.volume=mine 0 0\n"
                         "/state/pods/one/containers/c/0/termination-log none none "
                         "x-mainstay.label=\"u:r:own:s0:c1\" 0 0\n",
                         config.run_dir, "system_u:object_r:container_file_t:s0:c3,c700") > 0);
        EXPECT_STREQ(labelled, expected);
}

static int print_image_volumes(const RuntimeSpecInput *input, char **ret) {
        return image_volumes_fstab(input, ret, NULL);
}

TEST(labelled_image_volume_of_one_layer_is_an_overlay)
{
        char *layers[] = { WORD("/layer"), NULL };
        Image image = { .layers = layers };
        Image *images[] = { &image };
        ImageVolumeSource source = { 0 };
        Volume volume = { .name = WORD("v"), .image = &source };
        VolumeMount mount = { .name = WORD("v") };
        cleanup_free char *text = NULL;
        RuntimeSpecInput input;

        world_init("one");
        config.run_dir = "/run";
        config.volume_images = images;
        pod.spec.volumes.items = &volume;
        pod.spec.volumes.n = 1;
        containers[0].volume_mounts.items = &mount;
        containers[0].volume_mounts.n = 1;
        input = (RuntimeSpecInput){ .config = &config,
                                    .pod = &pod,
                                    .container = &containers[0],
                                    .labels.file = WORD("u:r:t:s0:c1,c2") };
        text = fstab_of(&input, print_image_volumes);
        EXPECT_STREQ(text, "none /run/pods/one/containers/c/0/images/v.empty tmpfs "
                           "mode=0755,size=4k 0 0\n"
                           "overlay /run/pods/one/containers/c/0/images/v overlay "
                           "lowerdir=/layer:/run/pods/one/containers/c/0/images/v.empty,"
                           "context=\"u:r:t:s0:c1,c2\"," IMAGE_VOLUME_OPTIONS
                           ",x-mainstay.volume=v 0 0\n");
}

TEST(config_json_has_both_labels)
{
        Image image = { .entrypoint = (char *[]){ WORD("/run"), NULL } };
        cleanup_free char *text = NULL;
        json_t *document;

        world_init("one");
        config.state_dir = "/state";
        config.cgroup_root = "/";
        pod.metadata.name = pod.metadata.namespace = WORD("p");
        REQUIRE(make_runtime_spec(
                        &(RuntimeSpecInput){ .config = &config,
                                             .pod = &pod,
                                             .container = &containers[0],
                                             .image = &image,
                                             .id = "0",
                                             .cgroup_version = 2,
                                             .labels = { .process = WORD("u:r:p:s0:c1,c2"),
                                                         .file = WORD("u:r:f:s0:c1,c2") } },
                        &text, NULL) == 0);
        document = json_loads(text, 0, NULL);
        EXPECT_STREQ(json_string_value(
                             json_object_get(json_object_get(document, "process"), "selinuxLabel")),
                     "u:r:p:s0:c1,c2");
        EXPECT_STREQ(json_string_value(
                             json_object_get(json_object_get(document, "linux"), "mountLabel")),
                     "u:r:f:s0:c1,c2");
        json_decref(document);
}
