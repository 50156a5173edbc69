/* SPDX-License-Identifier: Apache-2.0 */
/* Mounts of a pod, which are private to it. */
#include "tests/component/pod-world.h"

#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

/* A path as the shim sees it. */
static char *in_shim(const TestPod *pod, const char *path) {
        return print_text("/proc/%d/root%s", sandbox_pid(pod->sandbox), path);
}

static char *host_path_line(const TestPod *pod, const char *path, const char *type) {
        return print_text("%s/%s %s/volumes/data none "
                          "rbind,x-mainstay.volume=data,x-mainstay.hostpath=%s 0 0\n",
                          pod->world->directory, path, pod->directory, type);
}

TEST(a_host_path_of_the_wrong_type_is_refused_with_the_message_of_the_kubelet)
{
        static const struct {
                const char *path, *type, *says;
        } cases[] = {
                { "missing", "Directory", "is not a directory" },
                { "file", "Directory", "is not a directory" },
                { "file", "DirectoryOrCreate", "is not a directory" },
                { "missing", "File", "is not a file" },
                { "directory", "File", "is not a file" },
                { "directory", "FileOrCreate", "is not a file" },
                { "missing", "Socket", "is not a socket file" },
                { "file", "Socket", "is not a socket file" },
                { "file", "CharDevice", "is not a character device" },
                { "file", "BlockDevice", "is not a block device" },
        };
        cleanup_free char *invalid = NULL, *orphan = NULL, *good = NULL, *expected = NULL;
        PodWorld world;
        TestPod pod;

        world_init(&world);
        pod_init(&pod, &world, "types");
        pod_start(&pod);
        for (size_t i = 0; i < 2; i++) {
                cleanup_free char *path =
                        print_text("%s/%s", world.directory, i == 0 ? "file" : "directory");
                if (i == 0)
                        write_text(path, "");
                else
                        REQUIRE(mkdir(path, 0755) >= 0);
        }
        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_free char *fstab = host_path_line(&pod, cases[i].path, cases[i].type);
                cleanup_free char *says =
                        print_text("volume \"data\": hostPath type check failed: %s/%s %s",
                                   world.directory, cases[i].path, cases[i].says);

                EXPECT_STREQ(pod_set_up(&pod, fstab), says);
        }
        invalid = host_path_line(&pod, "file", "Nonsense");
        EXPECT_STREQ(pod_set_up(&pod, invalid),
                     "volume \"data\": Nonsense is an invalid volume type");
        orphan = host_path_line(&pod, "no/parent", "FileOrCreate");
        expected = print_text(
                "volume \"data\": cannot create '%s/no/parent': No such file or directory",
                world.directory);
        EXPECT_STREQ(pod_set_up(&pod, orphan), expected);
        good = host_path_line(&pod, "directory", "Directory");
        EXPECT_STREQ(pod_set_up(&pod, good), "ready");
        EXPECT_STREQ(pod_set_up(&pod, invalid), "ready"); /* a repeated request finds it done */
        pod_down(&pod);
        world_done(&world);
}

TEST(host_paths_are_created_and_bind_mounted)
{
        static const struct {
                const char *type;
                mode_t mode;
        } cases[] = {
                { "", S_IFDIR | 0755 },
                { "DirectoryOrCreate", S_IFDIR | 0755 },
                { "FileOrCreate", S_IFREG | 0644 },
                { "CharDevice", S_IFCHR | 0600 },
                { "BlockDevice", S_IFBLK | 0600 },
                { "Socket", S_IFSOCK | 0600 },
        };
        PodWorld world;

        world_init(&world);
        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_free char *uid = print_text("bound%zu", i);
                cleanup_free char *host = print_text("%s/made/%zu", world.directory, i);
                cleanup_free char *parent = print_text("%s/made", world.directory);
                cleanup_free char *relative = print_text("made/%zu", i);
                cleanup_free char *target = NULL, *seen = NULL, *fstab = NULL;
                struct stat st, there;
                TestPod pod;

                pod_init(&pod, &world, uid);
                pod_start(&pod);
                (void) mkdir(parent, 0755);
                if (S_ISSOCK(cases[i].mode) || S_ISCHR(cases[i].mode) || S_ISBLK(cases[i].mode))
                        REQUIRE(mknod(host, cases[i].mode, makedev(1, 3)) >= 0);
                fstab = host_path_line(&pod, relative, cases[i].type);
                EXPECT_STREQ(pod_set_up(&pod, fstab), "ready");
                REQUIRE(stat(host, &st) >= 0);
                EXPECT_EQ(st.st_mode, cases[i].mode);
                target = print_text("%s/volumes/data", pod.directory);
                seen = in_shim(&pod, target);
                REQUIRE(stat(seen, &there) >= 0);
                EXPECT_EQ(there.st_ino, st.st_ino);
                EXPECT(stat(target, &there) >= 0 && there.st_ino != st.st_ino);
                pod_down(&pod);
        }
        world_done(&world);
}

TEST(a_line_with_only_a_label_relabels_existing_files_without_a_mount)
{
        static const char label[] = "a_u:a_r:a_t:s0:c1,c2";
        cleanup_free char *fstab = NULL, *path = NULL, *wrong = NULL, *before = NULL, *after = NULL;
        char found[sizeof(label)] = "";
        PodWorld world;
        TestPod pod;

        world_init(&world);
        pod_init(&pod, &world, "labelled");
        pod_start(&pod);
        path = print_text("%s/volume", world.directory);
        write_text(path, "");
        wrong = print_text("%s/missing none none x-mainstay.label=\"%s\",x-mainstay.volume=v 0 0\n",
                           world.directory, label);
        before = print_text("volume \"v\": cannot set the SELinux label of '%s/missing' to '%s': "
                            "No such file or "
                            "directory",
                            world.directory, label);
        EXPECT_STREQ(pod_set_up(&pod, wrong), before);
        fstab = print_text("%s none none x-mainstay.label=\"%s\" 0 0\n", path, label);
        EXPECT_STREQ(pod_set_up(&pod, fstab), "ready");
        EXPECT_EQ(getxattr(path, "security.selinux", found, sizeof(found)), sizeof(label));
        EXPECT_STREQ(found, label);
        after = in_shim(&pod, "/none");
        EXPECT(access(after, F_OK) < 0);
        pod_down(&pod);
        world_done(&world);
}

TEST(a_setup_that_fails_leaves_no_mounts)
{
        cleanup_free char *fstab = NULL, *before = NULL, *after = NULL;
        PodWorld world;
        TestPod pod;

        world_init(&world);
        pod_init(&pod, &world, "undone");
        pod_start(&pod);
        (void) pod_set_up(&pod, "this is not an fstab\n");
        EXPECT(strstr(pod.records[pod.n_records - 1].message, "fstab: line 1: "));
        before = pod_mounts(&pod);
        fstab = print_text("tmpfs %s/a tmpfs size=64k 0 0\n"
                           "%s/a %s/b none bind,ro 0 0\n"
                           "nothing %s/c no-such-type defaults 0 0\n",
                           pod.directory, pod.directory, pod.directory, pod.directory);
        EXPECT(strstr(pod_set_up(&pod, fstab), "cannot mount no-such-type on"));
        after = pod_mounts(&pod);
        EXPECT_STREQ(after, before);
        EXPECT_STREQ(pod_set_up(&pod, ""), "ready");
        pod_down(&pod);
        world_done(&world);
}

TEST(mount_points_are_below_the_pods_directory)
{
        cleanup_free char *outside = NULL, *dots = NULL, *itself = NULL, *link = NULL, *path = NULL;
        PodWorld world;
        TestPod pod;

        world_init(&world);
        pod_init(&pod, &world, "inside");
        pod_start(&pod);
        outside = print_text("tmpfs %s/x tmpfs defaults 0 0\n", world.directory);
        EXPECT(strstr(pod_set_up(&pod, outside), "is not below"));
        dots = print_text("tmpfs %s/../x tmpfs defaults 0 0\n", pod.directory);
        EXPECT(strstr(pod_set_up(&pod, dots), "cannot make the mount point"));
        itself = print_text("tmpfs %s tmpfs defaults 0 0\n", pod.directory);
        EXPECT(strstr(pod_set_up(&pod, itself), "is not below"));
        path = path_join(pod.directory, "link");
        REQUIRE(symlink(world.directory, path) >= 0);
        link = print_text("tmpfs %s/link/never tmpfs defaults 0 0\n", pod.directory);
        EXPECT(strstr(pod_set_up(&pod, link), "cannot make the mount point"));
        free(path);
        path = path_join(world.directory, "never");
        EXPECT(!exists(path));
        pod_down(&pod);
        world_done(&world);
}

TEST(a_mount_source_cannot_escape_from_its_root)
{
        cleanup_free char *volume = NULL, *link = NULL, *secret = NULL, *escape = NULL,
                          *made = NULL;
        cleanup_free char *seen = NULL, *target = NULL;
        struct stat st;
        PodWorld world;
        TestPod pod;

        world_init(&world);
        pod_init(&pod, &world, "beneath");
        pod_start(&pod);
        volume = path_join(world.directory, "volume");
        secret = path_join(world.directory, "secret");
        link = path_join(volume, "link");
        REQUIRE(mkdir(volume, 0750) >= 0 && mkdir(secret, 0700) >= 0);
        REQUIRE(symlink("../secret", link) >= 0);
        escape = print_text("%s/link %s/v none bind,x-mainstay.beneath=%s 0 0\n", volume,
                            pod.directory, volume);
        EXPECT(strstr(pod_set_up(&pod, escape),
                      "the subPath 'link' leaves its volume: 'link' is a link"));
        made = print_text("%s/new/dir %s/v none bind,ro,nosuid,x-mainstay.beneath=%s 0 0\n", volume,
                          pod.directory, volume);
        EXPECT_STREQ(pod_set_up(&pod, made), "ready");
        target = path_join(pod.directory, "v");
        seen = in_shim(&pod, target);
        EXPECT(stat(seen, &st) >= 0);
        EXPECT_EQ(st.st_mode & 07777, 0750);
        {
                cleanup_free char *mounts = shim_mounts(&pod);
                cleanup_free char *line = print_text(" %s ro,nosuid,", target);

                EXPECT(strstr(mounts, line));
        }
        pod_down(&pod);
        world_done(&world);
}

TEST(missing_directories_are_created_where_links_within_a_volume_lead)
{
        cleanup_free char *volume = NULL, *versions = NULL, *link = NULL, *out = NULL;
        cleanup_free char *fstab = NULL, *made = NULL, *escape = NULL, *escaped = NULL;
        PodWorld world;
        TestPod pod;

        world_init(&world);
        pod_init(&pod, &world, "links");
        pod_start(&pod);
        volume = path_join(world.directory, "volume");
        versions = path_join(volume, "versions");
        link = path_join(volume, "current");
        out = path_join(volume, "out");
        REQUIRE(mkdir(volume, 0755) >= 0 && mkdir(versions, 0755) >= 0);
        REQUIRE(symlink("versions", link) >= 0 && symlink("..", out) >= 0);
        escape = print_text("%s/out/new %s/v none bind,x-mainstay.beneath=%s 0 0\n", volume,
                            pod.directory, volume);
        EXPECT(strstr(pod_set_up(&pod, escape),
                      "the subPath 'out/new' leaves its volume: 'out' is a link"));
        escaped = path_join(world.directory, "new");
        EXPECT(access(escaped, F_OK) < 0);
        fstab = print_text("%s/current/a/b %s/v none bind,x-mainstay.beneath=%s 0 0\n", volume,
                           pod.directory, volume);
        EXPECT_STREQ(pod_set_up(&pod, fstab), "ready");
        made = path_join(versions, "a/b");
        EXPECT(access(made, F_OK) >= 0);
        pod_down(&pod);
        world_done(&world);
}

TEST(undoing_a_setup_does_not_unmount_shared_mounts_of_the_host)
{
        cleanup_free char *host = NULL, *sub = NULL, *file = NULL, *later = NULL, *fstab = NULL;
        cleanup_free char *volume = NULL, *seen = NULL, *bad = NULL;
        PodWorld world;
        TestPod pod;

        world_init(&world);
        host = path_join(world.directory, "host");
        sub = path_join(host, "sub");
        later = path_join(host, "later");
        file = path_join(sub, "canary");
        REQUIRE(mkdir(host, 0755) >= 0);
        REQUIRE(mount("tmpfs", host, "tmpfs", 0, NULL) >= 0);
        REQUIRE(mount(NULL, host, NULL, MS_SHARED, NULL) >= 0);
        REQUIRE(mkdir(sub, 0755) >= 0 && mkdir(later, 0755) >= 0);
        REQUIRE(mount("tmpfs", sub, "tmpfs", 0, NULL) >= 0);
        write_text(file, "alive");
        free(world.mounts_before);
        world.mounts_before = mounts_in(world.directory);

        pod_init(&pod, &world, "shared");
        pod_start(&pod);
        volume = print_text("%s/volumes/data", pod.directory);
        /* The mount of the first line is undone because the second line fails; the next setup
         * succeeds. */
        bad = print_text("%s %s none rbind 0 0\nx %s/y no-such-type defaults 0 0\n", host, volume,
                         pod.directory);
        EXPECT(strstr(pod_set_up(&pod, bad), "no-such-type"));
        EXPECT(exists(file));
        fstab = print_text("%s %s none rbind 0 0\n", host, volume);
        EXPECT_STREQ(pod_set_up(&pod, fstab), "ready");
        seen = print_text("/proc/%d/root%s/sub/canary", sandbox_pid(pod.sandbox), volume);
        EXPECT(exists(seen));
        expect_no_mounts(&world);

        /* The volume stays in its peer group: later mounts of the host are visible in the pod. */
        REQUIRE(mount("tmpfs", later, "tmpfs", 0, NULL) >= 0);
        {
                cleanup_free char *mounts = shim_mounts(&pod);
                cleanup_free char *line = print_text(" %s/later ", volume);

                EXPECT(strstr(mounts, line));
        }
        REQUIRE(umount(later) >= 0);
        pod_down(&pod);
        EXPECT(exists(file));
        expect_no_mounts(&world);
        REQUIRE(umount2(host, MNT_DETACH) >= 0);
        free(world.mounts_before);
        world.mounts_before = mounts_in(world.directory);
        world_done(&world);
}

/* Layers with names as long as digests, more than fit into a page of options. */
static char *many_layers(const PodWorld *world, unsigned n) {
        char *list = strdup("");

        for (unsigned i = 0; i < n; i++) {
                cleanup_free char *layer = print_text("%s/layers/%064u", world->directory, i);
                cleanup_free char *file = print_text("%s/file%u", layer, i);
                char *longer = print_text("%s%s%s", list, i > 0 ? ":" : "", layer);

                free(list);
                list = longer;
                REQUIRE(mkdir_parents_at(AT_FDCWD, layer, 0755) >= 0);
                write_text(file, "");
        }
        return list;
}

TEST(an_image_may_have_more_layers_than_fit_into_a_page_of_options)
{
        cleanup_free char *many = NULL, *fstab = NULL, *target = NULL;
        PodWorld world;
        TestPod pod;

        world_init(&world);
        pod_init(&pod, &world, "layers");
        pod_start(&pod);
        many = many_layers(&world, 127);
        EXPECT(strlen(many) > 4096);
        fstab = print_text("overlay %s/root overlay lowerdir=%s,ro 0 0\n", pod.directory, many);
        EXPECT_STREQ(pod_set_up(&pod, fstab), "ready");
        target = print_text("%s/root", pod.directory);
        for (unsigned i = 0; i < 127; i += 126) {
                cleanup_free char *file = print_text("%s/file%u", target, i);
                cleanup_free char *seen = in_shim(&pod, file);

                EXPECT(exists(seen));
        }
        pod_down(&pod);
        world_done(&world);
}

static size_t count_lines_with(const char *text, const char *word) {
        size_t n = 0;

        for (const char *p = text; (p = strstr(p, word)); p++)
                n++;
        return n;
}

TEST(prepare_makes_one_private_mount)
{
        cleanup_free char *parent = NULL, *directory = NULL, *mounts = NULL, *word = NULL;
        SandboxConfig config = { .shim_path = BUILD_DIR "/agent/mainstay-shim" };
        struct stat st;

        become_host();
        parent = path_join(test_directory(), "shared");
        directory = path_join(parent, "run dir");
        REQUIRE(mkdir(parent, 0755) >= 0);
        REQUIRE(mount("tmpfs", parent, "tmpfs", 0, NULL) >= 0);
        REQUIRE(mount(NULL, parent, NULL, MS_SHARED, NULL) >= 0);
        config.run_dir = directory;
        for (unsigned i = 0; i < 3; i++)
                EXPECT_EQ(sandbox_prepare(&config, NULL, NULL), 0);
        EXPECT(stat(directory, &st) >= 0);
        EXPECT_EQ(st.st_mode & 07777, 0700);
        mounts = read_text("/proc/self/mountinfo");
        word = print_text("%s/run\\040dir rw,", parent);
        EXPECT_EQ(count_lines_with(mounts, word), 1);
        EXPECT(!strstr(strstr(mounts, word), "shared:") ||
               strchr(strstr(mounts, word), '\n') < strstr(strstr(mounts, word), "shared:"));
        REQUIRE(umount2(parent, MNT_DETACH) >= 0);
}

static char *mount_line(const char *directory) {
        cleanup_free char *mounts = read_text("/proc/self/mountinfo");
        cleanup_free char *word = print_text(" %s rw,", directory);
        const char *found = strstr(mounts, word);

        return found ? strndup(found, strcspn(found, "\n")) : NULL;
}

/* A kernel before Linux 6.4 does not know the option. */
static bool kernel_has_noswap(const char *directory) {
        bool has = mount("tmpfs", directory, "tmpfs", 0, "noswap") >= 0;

        if (has)
                REQUIRE(umount2(directory, 0) >= 0);
        return has;
}

TEST(prepare_keeps_an_empty_directory_in_memory_out_of_swap)
{
        cleanup_free char *parent = NULL, *empty = NULL, *used = NULL, *file = NULL, *line = NULL;
        SandboxConfig config = { .shim_path = BUILD_DIR "/agent/mainstay-shim" };
        struct statvfs space, outer;
        bool has_noswap;

        become_host();
        parent = path_join(test_directory(), "memory");
        empty = path_join(parent, "empty");
        used = path_join(parent, "used");
        file = path_join(used, "file");
        REQUIRE(mkdir(parent, 0755) >= 0);
        has_noswap = kernel_has_noswap(parent);
        REQUIRE(mount("tmpfs", parent, "tmpfs", MS_NOSUID, "size=16m,nr_inodes=500") >= 0);
        REQUIRE(mkdir(empty, 0755) >= 0 && mkdir(used, 0755) >= 0);
        write_text(file, "of a pod that runs\n");
        config.run_dir = empty;
        EXPECT_EQ(sandbox_prepare(&config, NULL, NULL), 0);
        line = mount_line(empty);
        REQUIRE(line);
        EXPECT(strstr(line, "nosuid"));
        EXPECT_EQ(strstr(line, "noswap") != NULL, has_noswap);
        REQUIRE(statvfs(parent, &outer) >= 0 && statvfs(empty, &space) >= 0);
        EXPECT_EQ(space.f_blocks * space.f_frsize, outer.f_blocks * outer.f_frsize);
        EXPECT_EQ(space.f_files, outer.f_files);

        config.run_dir = used;
        EXPECT_EQ(sandbox_prepare(&config, NULL, NULL), 0);
        free(line);
        line = mount_line(used);
        REQUIRE(line);
        EXPECT(!strstr(line, "noswap"));
        EXPECT(access(file, F_OK) >= 0);
        REQUIRE(umount2(parent, MNT_DETACH) >= 0);
}

TEST(a_pod_is_not_mounted_if_the_host_would_see_it)
{
        cleanup_free char *path = NULL;
        PodWorld world;
        TestPod pod;

        world_init(&world);
        REQUIRE(mount(NULL, world.run_dir, NULL, MS_SHARED, NULL) >= 0);
        free(world.mounts_before);
        world.mounts_before = mounts_in(world.directory);
        pod_init(&pod, &world, "exposed");
        pod_start(&pod);
        path = print_text("tmpfs %s/x tmpfs defaults 0 0\n", pod.directory);
        EXPECT(strstr(pod_set_up(&pod, path), "is on a mount that is shared with the host"));
        pod_down(&pod);
        world_done(&world);
}

TEST(cleanup_never_removes_through_a_mount)
{
        cleanup_free char *gone = NULL, *inside = NULL, *elsewhere = NULL, *canary = NULL;
        PodWorld world;

        world_init(&world);
        gone = path_join(world.directory, "gone");
        inside = path_join(gone, "a/mounted here");
        elsewhere = path_join(world.directory, "elsewhere");
        canary = path_join(elsewhere, "canary");
        REQUIRE(mkdir_parents_at(AT_FDCWD, inside, 0755) >= 0);
        REQUIRE(mkdir(elsewhere, 0755) >= 0);
        write_text(canary, "alive");
        REQUIRE(mount(elsewhere, inside, NULL, MS_BIND, NULL) >= 0);
        REQUIRE(mount("tmpfs", inside, "tmpfs", 0, NULL) >= 0);
        {
                const char *directories[] = { gone };

                EXPECT_EQ(clean_up(&world, NULL, directories, 1), 1);
        }
        EXPECT(!exists(gone));
        EXPECT(exists(canary));
        expect_no_mounts(&world);
        world_done(&world);
}
