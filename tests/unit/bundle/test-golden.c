/* SPDX-License-Identifier: Apache-2.0 */
/* Compares each example of manifests/ with its config.json and fstab in golden/, for cgroup v1 and
 * v2. With MAINSTAY_UPDATE_GOLDEN in the environment the files are written instead: review the
 * diff. */

#include "agent/bundle/mount-list.h"
#include "agent/bundle/runtime-spec.h"
#include "agent/daemonset/rules/rules.h"
#include "agent/manifest/manifest.h"
#include "agent/model/containers.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "tests/test.h"

#include <fcntl.h>
#include <jansson.h>

static const char manifests[] = SOURCE_DIR "/manifests";
static const char golden[] = SOURCE_DIR "/tests/unit/bundle/golden";

/* The objects of the current example. */
static const ManifestObjects *shown;

static const DataObject *find_object(const ObjectKey *key, void *userdata) {
        for (size_t i = 0; shown && i < shown->data.n; i++)
                if (object_key_matches(key, shown->data.items[i]))
                        return shown->data.items[i];
        return NULL;
}

static const BundleConfig config = {
        .run_dir = "/run/mainstay",
        .state_dir = "/var/lib/mainstay",
        .log_dir = "/var/log",
        .hostname = "node1",
        .cgroup_root = "/",
        .memory_capacity = INT64_C(8) << 30,
        .pod_pids_limit = -1,
        .oom_score_adj_min = -1000,
        .cpu_capacity_milli = 4000,
        .allocatable = { .cpu_milli = 4000, .memory = INT64_C(8) << 30 },
        .host_ips = { "10.0.0.1", NULL },
        .objects.find = find_object,
};

static char *image_layers[] = { (char[]){ "/usr/share" }, (char[]){ "/usr/lib" }, NULL };
static char *image_command[] = { (char[]){ "/bin/sh" }, NULL };
static char *image_env[] = { (char[]){ "PATH=/bin" }, NULL };
static gid_t image_groups[] = { 10, 20 };
static Image image = {
        .layers = image_layers,
        .command = image_command,
        .env = image_env,
        .groups = image_groups,
        .n_groups = N_ELEMENTS(image_groups),
};

/* Seccomp rules have separate tests. The files in golden/ are for amd64. */
static void shorten_filter(json_t *section) {
        json_t *filter = json_object_get(section, "seccomp");

        if (filter) {
                EXPECT(json_array_size(json_object_get(filter, "syscalls")) > 0);
#ifndef __x86_64__
                json_object_set_new(filter, "architectures",
                                    json_pack("[s, s]", "SCMP_ARCH_X86_64", "SCMP_ARCH_X86"));
#endif
                json_object_del(filter, "syscalls");
                json_object_set_new(filter, "syscalls", json_array());
        }
}

static void put_container(FILE *out, const Pod *pod, const Container *container,
                          int cgroup_version) {
        cleanup_free char *text = NULL, *pretty = NULL;
        cleanup_error Error error = ERROR_NULL;
        json_t *document;
        int r = make_runtime_spec(&(RuntimeSpecInput){ .config = &config,
                                                       .pod = pod,
                                                       .container = container,
                                                       .image = &image,
                                                       .id = "0123",
                                                       .attempt = 2,
                                                       .sandbox_pid = 42,
                                                       .cgroup_version = cgroup_version },
                                  &text, &error);

        if (r < 0) {
                test_fail(__FILE__, __LINE__, container->name, "%s", error_message(&error, r));
                return;
        }
        document = json_loads(text, 0, NULL);
        REQUIRE(document);
        shorten_filter(json_object_get(document, "linux"));
        pretty = json_dumps(document, JSON_INDENT(2));
        json_decref(document);
        fprintf(out, "# %s on cgroup v%d\n%s\n", container->name, cgroup_version, pretty);
}

static void put_pod(FILE *out, const Pod *pod) {
        cleanup_free char *fstab = pod_fstab(&config, pod);
        const Container *container;

        fprintf(out, "# fstab of %s\n%s", pod->metadata.name, strna(fstab));
        pod_foreach_container(container, &pod->spec)
                for (int version = 1; version <= 2; version++)
                        put_container(out, pod, container, version);
}

/* The pod of a DaemonSet on this node. */
static void put_daemonset(FILE *out, const DaemonSet *set) {
        char hash[REVISION_HASH_SIZE];
        cleanup_with(pod_freep) Pod *pod = NULL;

        REQUIRE(daemonset_revision_hash(&set->spec.template, hash) == 0);
        REQUIRE(daemonset_make_pod(set, &set->spec.template, hash, 1, "node1", &pod) == 0);
        put_pod(out, pod);
}

static char *translate(const char *file) {
        cleanup_free char *path = path_join(manifests, file), *data = NULL;
        cleanup_with(manifest_objects_done) ManifestObjects objects = { 0 };
        cleanup_error Error error = ERROR_NULL;
        char *text = NULL;
        size_t length = 0, size;
        FILE *out = open_memstream(&text, &size);
        int r;

        REQUIRE(out && path && read_file_at(AT_FDCWD, path, MIB, &data, &length) >= 0);
        r = manifest_parse(file, data, length, "node1", &objects, &error);
        if (r < 0)
                test_fail(__FILE__, __LINE__, file, "%s", error_message(&error, r));
        shown = &objects;
        for (size_t i = 0; i < objects.pods.n; i++)
                put_pod(out, objects.pods.items[i]);
        for (size_t i = 0; i < objects.daemonsets.n; i++)
                put_daemonset(out, objects.daemonsets.items[i]);
        shown = NULL;
        fclose(out);
        return text;
}

static void compare(const char *file) {
        cleanup_free char *text = translate(file), *name = NULL, *expected = NULL;
        cleanup_close int fd = open(golden, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        REQUIRE(fd >= 0 && asprintf(&name, "%s.txt", file) > 0);
        if (getenv("MAINSTAY_UPDATE_GOLDEN")) {
                EXPECT_EQ(write_file_atomic_at(fd, name, text, strlen(text), 0644), 0);
                return;
        }
        EXPECT_EQ(read_file_at(fd, name, MIB, &expected, NULL), 0);
        EXPECT_STREQ(text, expected);
}

TEST(every_example_becomes_the_configuration_in_its_golden_file)
{
        cleanup_closedir DIR *dir = opendir(manifests);
        struct dirent *entry;
        unsigned n = 0;

        REQUIRE(dir);
        while ((entry = readdir(dir)))
                if (strstr(entry->d_name, ".yaml")) {
                        compare(entry->d_name);
                        n++;
                }
        EXPECT(n > 0);
}

TEST(a_layer_list_becomes_one_overlay_line)
{
        cleanup_free char *fstab = container_fstab(&image, "/b", "/s", NULL, NULL);

        EXPECT_STREQ(fstab,
                     "overlay /b/rootfs overlay lowerdir=/usr/share:/usr/lib,upperdir=/s/upper,"
                     "workdir=/s/work,volatile 0 0\n");
}

TEST(blanks_in_a_host_path_are_escaped_for_fstab)
{
        HostPathVolumeSource source = { .path = (char[]){ "/a b\tc\\#d" },
                                        .type = HOST_PATH_DIRECTORY };
        EmptyDirVolumeSource memory = { .medium = MEDIUM_MEMORY,
                                        .size_limit = { (char[]){ "1Mi" }, 1 << 20, 0 } };
        Volume volumes[] = {
                { .name = (char[]){ "v" }, .host_path = &source },
                { .name = (char[]){ "m" }, .empty_dir = &memory },
        };
        Pod pod = { .metadata.uid = (char[]){ "u" },
                    .spec.volumes = { volumes, N_ELEMENTS(volumes) } };
        cleanup_free char *fstab = pod_fstab(&config, &pod);

        EXPECT_STREQ(
                fstab,
                "shm /run/mainstay/pods/u/shm tmpfs nosuid,nodev,noexec,mode=1777,size=65536k 0 0\n"
                "/a\\040b\\011c\\134#d /run/mainstay/pods/u/volumes/v none "
                "rbind,x-mainstay.volume=v,x-mainstay.hostpath=Directory 0 0\n"
                "m /run/mainstay/pods/u/volumes/m tmpfs "
                "mode=01777,noswap,x-mainstay.volume=m,size=1048576 0 0\n");
}

TEST(nfs_export_keeps_its_options_in_quotes_and_an_address_in_brackets)
{
        NfsVolumeSource writable = { (char[]){ "nas" }, (char[]){ "/a b" }, false };
        NfsVolumeSource readable = { (char[]){ "2001:db8::1" }, (char[]){ "/" }, true };
        Volume volumes[] = {
                { .name = (char[]){ "v" }, .nfs = &writable },
                { .name = (char[]){ "w" }, .nfs = &readable },
        };
        Pod pod = { .metadata.uid = (char[]){ "u" },
                    .spec.host_ipc = true,
                    .spec.volumes = { volumes, N_ELEMENTS(volumes) } };
        cleanup_free char *fstab = pod_fstab(&config, &pod);

        EXPECT_STREQ(fstab, "nas:/a\\040b /run/mainstay/pods/u/volumes/v nfs "
                            "x-mainstay.volume=v,x-mainstay.nfs=\"\" 0 0\n"
                            "[2001:db8::1]:/ /run/mainstay/pods/u/volumes/w nfs "
                            "x-mainstay.volume=w,x-mainstay.nfs=\"ro\" 0 0\n");
}

static char *print_memory_volume(const char *resources, const char *empty_dir,
                                 const BundleConfig *of_node) {
        cleanup_with(manifest_objects_done) ManifestObjects objects = { 0 };
        char yaml[512], *fstab, *line;

        (void) snprintf(yaml, sizeof(yaml),
                        "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n"
                        "  containers: [{name: c, image: i, resources: {%s}}]\n"
                        "  volumes: [{name: v, emptyDir: {%s}}]\n",
                        resources, empty_dir);
        REQUIRE(manifest_parse("f", yaml, strlen(yaml), "n", &objects, NULL) >= 0);
        fstab = pod_fstab(of_node, objects.pods.items[0]);
        REQUIRE(fstab && (line = strstr(fstab, "x-mainstay.volume=v")));
        memmove(fstab, line, strlen(line) + 1);
        return fstab;
}

TEST(volume_in_memory_is_never_larger_than_its_pod_and_never_without_a_limit)
{
        static const struct {
                const char *resources, *empty_dir, *options;
                int64_t allocatable;
        } cases[] = {
                { "limits: {memory: 2Mi}", "medium: Memory, sizeLimit: 1Mi", ",size=1048576",
                  4 * MIB },
                { "limits: {memory: 2Mi}", "medium: Memory, sizeLimit: 8Mi", ",size=2097152",
                  4 * MIB },
                { "limits: {memory: 2Mi}", "medium: Memory, sizeLimit: \"0\"", ",size=2097152", 0 },
                { "limits: {memory: 8Mi}", "medium: Memory", ",size=4194304", 4 * MIB },
                { "", "medium: Memory, sizeLimit: \"0\"", ",size=4194304", 4 * MIB },
                { "", "medium: Memory, sizeLimit: \"0\"", "", 0 },
                { "limits: {memory: 2Mi, hugepages-2Mi: 4Mi}",
                  "medium: HugePages-2Mi, sizeLimit: \"0\"", "", 4 * MIB },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                BundleConfig node = config;
                cleanup_free char *text = NULL, *expected = NULL;

                node.allocatable.memory = cases[i].allocatable;
                text = print_memory_volume(cases[i].resources, cases[i].empty_dir, &node);
                REQUIRE(asprintf(&expected, "x-mainstay.volume=v%s 0 0\n", cases[i].options) > 0);
                EXPECT_STREQ(text, expected);
        }
}
