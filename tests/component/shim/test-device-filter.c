/* SPDX-License-Identifier: Apache-2.0 */
/* The device program of cgroup v2, with the kernel's own verdict. */
#include "agent/shim/device-filter.h"
#include "common/cleanup.h"
#include "common/json-text.h"
#include "tests/test.h"

#include <fcntl.h>
#include <linux/bpf.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROOT  "/tmp/mainstay-device-filter"
#define GROUP ROOT "/mainstay-device-filter"

/* A separate mount of cgroup v2, and a group in it. */
static void enter_group(void) {
        cleanup_close int fd = -EBADF;

        REQUIRE(unshare(CLONE_NEWNS) == 0);
        REQUIRE(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
        REQUIRE(mkdir(ROOT, 0700) == 0 || errno == EEXIST);
        REQUIRE(mount("none", ROOT, "cgroup2", 0, NULL) == 0);
        (void) rmdir(GROUP);
        REQUIRE(mkdir(GROUP, 0755) == 0);
        fd = open(GROUP "/cgroup.procs", O_WRONLY | O_CLOEXEC);
        REQUIRE(fd >= 0 && write(fd, "0", 1) == 1);
}

static void leave_group(void) {
        cleanup_close int fd = open(ROOT "/cgroup.procs", O_WRONLY | O_CLOEXEC);

        REQUIRE(fd >= 0 && write(fd, "0", 1) == 1);
        EXPECT_EQ(rmdir(GROUP), 0);
        EXPECT_EQ(umount2(ROOT, MNT_DETACH), 0);
}

/* Attached as by a runtime: nothing is allowed. */
static void attach_refusal(void) {
        struct bpf_insn program[] = { { .code = BPF_ALU64 | BPF_MOV | BPF_K },
                                      { .code = BPF_JMP | BPF_EXIT } };
        cleanup_close int group = open(GROUP, O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd = -EBADF;
        union bpf_attr attributes = { 0 };

        attributes.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE;
        attributes.insns = (uint64_t) (uintptr_t) program;
        attributes.insn_cnt = N_ELEMENTS(program);
        attributes.license = (uint64_t) (uintptr_t) "Apache-2.0";
        fd = (int) syscall(SYS_bpf, BPF_PROG_LOAD, &attributes, sizeof(attributes));
        REQUIRE(fd >= 0);
        attributes = (union bpf_attr){ 0 };
        attributes.target_fd = (uint32_t) group;
        attributes.attach_bpf_fd = (uint32_t) fd;
        attributes.attach_type = BPF_CGROUP_DEVICE;
        attributes.attach_flags = BPF_F_ALLOW_MULTI;
        REQUIRE(syscall(SYS_bpf, BPF_PROG_ATTACH, &attributes, sizeof(attributes)) == 0);
}

static int open_result(const char *path, int flags) {
        cleanup_close int fd = open(path, flags | O_CLOEXEC);

        return fd < 0 ? -errno : 0;
}

static void replace(const char *config_text, const char *live) {
        cleanup_json json_t *config = json_loads(config_text, 0, NULL);
        cleanup_error Error error = ERROR_NULL;
        DeviceRules rules = { 0 };

        REQUIRE(config);
        EXPECT_EQ(device_rules_load(config, NULL, 0, &rules), 0);
        if (live) {
                char *text = strdup(live);
                LiveDevice device;

                EXPECT_EQ(live_device_parse(text, &device), 0);
                EXPECT_EQ(device_rules_add(&rules, &device), 0);
                free(text);
        }
        EXPECT_EQ(device_filter_replace(GROUP, &rules, &error), 0);
        EXPECT_STREQ(strna(error.message), "");
        free(rules.items);
}

static const char deny[] = "{\"linux\": {\"resources\": {\"devices\": "
                           "[{\"allow\": false, \"access\": \"rwm\"}]}}}";

TEST(program_allows_the_runtimes_devices_and_those_that_are_added)
{
        enter_group();
        attach_refusal();
        EXPECT_EQ(open_result("/dev/null", O_RDONLY), -EPERM);
        replace(deny, NULL);
        EXPECT_EQ(open_result("/dev/null", O_RDWR), 0);
        EXPECT_EQ(open_result("/dev/zero", O_RDWR), 0);
        EXPECT_EQ(open_result("/dev/kmsg", O_RDONLY), -EPERM);
        replace(deny, "c 1:11 r 600 0:0 /dev/kmsg /dev/kmsg");
        EXPECT_EQ(open_result("/dev/kmsg", O_RDONLY), 0);
        EXPECT_EQ(open_result("/dev/kmsg", O_WRONLY), -EPERM);
        EXPECT_EQ(open_result("/dev/loop-control", O_RDONLY), -EPERM);
        replace(deny, "b 1:11 rwm 600 0:0 /dev/kmsg /dev/kmsg"); /* a block device */
        EXPECT_EQ(open_result("/dev/kmsg", O_RDONLY), -EPERM);
        EXPECT_EQ(open_result("/dev/null", O_RDONLY), 0);
        leave_group();
}

TEST(later_rules_of_the_configuration_override_earlier_ones)
{
        enter_group();
        attach_refusal();
        replace("{\"linux\": {\"resources\": {\"devices\": ["
                "{\"allow\": false, \"access\": \"rwm\"},"
                "{\"allow\": true, \"type\": \"c\", \"major\": 1, \"access\": \"rw\"},"
                "{\"allow\": false, \"type\": \"c\", \"major\": 1, \"minor\": 5, \"access\": "
                "\"rwm\"}"
                "]}}}",
                NULL);
        EXPECT_EQ(open_result("/dev/kmsg", O_RDONLY), 0);
        EXPECT_EQ(open_result("/dev/zero", O_RDONLY), -EPERM);
        EXPECT_EQ(open_result("/dev/null", O_RDWR), 0);
        leave_group();
}

TEST(cgroup_without_a_device_program_gets_none)
{
        enter_group();
        replace(deny, NULL);
        EXPECT_EQ(open_result("/dev/kmsg", O_RDONLY), 0);
        leave_group();
}
