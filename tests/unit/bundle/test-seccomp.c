/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/bundle/seccomp.h"

#include "agent/model/capability.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "tests/test.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <unistd.h>

static SeccompProfile *profile_of(const char *json) {
        cleanup_free char *path = path_join(test_directory(), "profile.json");
        cleanup_error Error error = ERROR_NULL;
        SeccompProfile *profile = NULL;
        int r;

        REQUIRE(write_file_atomic_at(AT_FDCWD, path, json, strlen(json), 0644) == 0);
        r = seccomp_profile_load(AT_FDCWD, path, &profile, &error);
        if (r < 0)
                test_fail(__FILE__, __LINE__, json, "%s", error_message(&error, r));
        return profile;
}

/* Returns the names in the rules that apply, as "a+b,c". */
static char *names(const char *rules, uint64_t capabilities) {
        cleanup_with(seccomp_profile_freep) SeccompProfile *profile = NULL;
        cleanup_free char *json = NULL;
        json_t *resolved, *rule, *name;
        char *text = NULL;
        size_t i, j, length;
        FILE *out = open_memstream(&text, &length);

        REQUIRE(asprintf(&json, "{\"defaultAction\":\"SCMP_ACT_ERRNO\",\"syscalls\":[%s]}", rules) >
                0);
        profile = profile_of(json);
        resolved = seccomp_profile_resolve(profile, capabilities, false);
        json_array_foreach(json_object_get(resolved, "syscalls"), i, rule) {
                fprintf(out, "%s", i > 0 ? "," : "");
                json_array_foreach(json_object_get(rule, "names"), j, name)
                        fprintf(out, "%s%s", j > 0 ? "+" : "", json_string_value(name));
        }
        fclose(out);
        json_decref(resolved);
        return text;
}

TEST(seccomp_rules_apply_by_capability_architecture_and_kernel)
{
        static const struct {
                const char *rules;
                uint64_t capabilities;
                const char *expected;
        } cases[] = {
                { "{\"names\":[\"a\",\"b\"],\"action\":\"x\"}", 0, "a+b" },
                { "{\"name\":\"a\",\"action\":\"x\"}", 0, "a" },
                { "{\"names\":[\"a\"],\"includes\":{\"caps\":[\"CAP_BPF\"]}}", 0, "" },
                { "{\"names\":[\"a\"],\"includes\":{\"caps\":[\"CAP_BPF\"]}}",
                  CAPABILITY_BIT(CAP_BPF), "a" },
                { "{\"names\":[\"a\"],\"includes\":{\"caps\":[\"CAP_BPF\",\"CAP_KILL\"]}}",
                  CAPABILITY_BIT(CAP_BPF), "" },
                { "{\"names\":[\"a\"],\"includes\":{\"caps\":[\"CAP_FLY\"]}}", CAPABILITIES_ALL,
                  "" },
                { "{\"names\":[\"a\"],\"excludes\":{\"caps\":[\"CAP_BPF\",\"CAP_KILL\"]}}",
                  CAPABILITY_BIT(CAP_BPF), "" },
                { "{\"names\":[\"a\"],\"excludes\":{\"caps\":[\"CAP_BPF\"]}}", 0, "a" },
                { "{\"names\":[\"a\"],\"includes\":{\"arches\":[\"none\"]}}", 0, "" },
                { "{\"names\":[\"a\"],\"includes\":{\"arches\":[]}}", 0, "a" },
                { "{\"names\":[\"a\"],\"includes\":{\"minKernel\":\"4.8\"}},"
                  "{\"names\":[\"b\"],\"includes\":{\"minKernel\":\"999.1\"}}",
                  0, "a" },
                { "{\"names\":[\"a\"],\"excludes\":{\"minKernel\":\"4.8\"}}", 0, "" },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_free char *text = names(cases[i].rules, cases[i].capabilities);

                EXPECT_STREQ(text, cases[i].expected);
        }
}

TEST(only_members_of_the_runtime_spec_are_passed_on)
{
        cleanup_with(seccomp_profile_freep) SeccompProfile *profile = profile_of(
                "{\"defaultAction\":\"SCMP_ACT_ERRNO\",\"defaultErrnoRet\":38,"
                "\"defaultErrno\":\"ENOSYS\",\"architectures\":[\"SCMP_ARCH_X86\"],\"syscalls\":[{"
                "\"names\":[\"a\"],\"action\":\"SCMP_ACT_ALLOW\",\"args\":[],\"comment\":\"\","
                "\"errnoRet\":1,\"errno\":\"EPERM\"}]}");
        json_t *resolved = seccomp_profile_resolve(profile, 0, false);
        cleanup_free char *text = json_dumps(resolved, JSON_COMPACT);

        EXPECT_STREQ(text, "{\"defaultAction\":\"SCMP_ACT_ERRNO\",\"defaultErrnoRet\":38,"
                           "\"architectures\":[\"SCMP_ARCH_X86\"],\"syscalls\":[{\"names\":[\"a\"],"
                           "\"action\":\"SCMP_ACT_ALLOW\",\"errnoRet\":1}]}");
        json_decref(resolved);
}

#ifdef __x86_64__
TEST(unsupported_architecture_gets_no_rules)
{
        cleanup_with(seccomp_profile_freep) SeccompProfile *profile = profile_of(
                "{\"defaultAction\":\"x\",\"archMap\":[{\"architecture\":\"SCMP_ARCH_NONE\"},"
                "{\"architecture\":\"SCMP_ARCH_X86_64\","
                "\"subArchitectures\":[\"SCMP_ARCH_X86\",\"SCMP_ARCH_X32\"]}]}");

        for (int x32 = 0; x32 <= 1; x32++) {
                json_t *resolved = seccomp_profile_resolve(profile, 0, x32);
                cleanup_free char *text =
                        json_dumps(json_object_get(resolved, "architectures"), JSON_COMPACT);

                EXPECT_STREQ(text,
                             x32 ? "[\"SCMP_ARCH_X86_64\",\"SCMP_ARCH_X86\",\"SCMP_ARCH_X32\"]"
                                 : "[\"SCMP_ARCH_X86_64\",\"SCMP_ARCH_X86\"]");
                json_decref(resolved);
        }
}
#endif

/* Returns the action of the last rule with this name and without arguments; NULL: there is none. */
static const char *action_for(const json_t *resolved, const char *call) {
        const char *action = NULL;
        json_t *rule, *name;
        size_t i, j;

        json_array_foreach(json_object_get(resolved, "syscalls"), i, rule)
                json_array_foreach(json_object_get(rule, "names"), j, name)
                        if (streq(json_string_value(name), call) && !json_object_get(rule, "args"))
                                action = json_string_value(json_object_get(rule, "action"));
        return action;
}

TEST(builtin_profile_depends_on_capabilities_and_is_consistent)
{
        static const struct {
                const char *call;
                uint64_t with;
        } gated[] = {
                { "mount", CAPABILITY_BIT(CAP_SYS_ADMIN) },
                { "unshare", CAPABILITY_BIT(CAP_SYS_ADMIN) },
                { "clone3", CAPABILITY_BIT(CAP_SYS_ADMIN) },
                { "bpf", CAPABILITY_BIT(CAP_BPF) },
                { "bpf", CAPABILITY_BIT(CAP_SYS_ADMIN) },
                { "perf_event_open", CAPABILITY_BIT(CAP_PERFMON) },
                { "init_module", CAPABILITY_BIT(CAP_SYS_MODULE) },
                { "reboot", CAPABILITY_BIT(CAP_SYS_BOOT) },
                { "chroot", CAPABILITY_BIT(CAP_SYS_CHROOT) },
                { "settimeofday", CAPABILITY_BIT(CAP_SYS_TIME) },
        };
        static const char *const never[] = { "kexec_load", "keyctl", "io_uring_setup", "swapon" };
        cleanup_with(seccomp_profile_freep) SeccompProfile *profile = NULL;
        json_t *none, *all;

        REQUIRE(seccomp_profile_builtin(&profile) == 0);
        none = seccomp_profile_resolve(profile, 0, false);
        all = seccomp_profile_resolve(profile, CAPABILITIES_ALL, false);
        for (size_t i = 0; i < N_ELEMENTS(gated); i++) {
                json_t *some = seccomp_profile_resolve(profile, gated[i].with, false);

                EXPECT_STREQ(action_for(none, gated[i].call), "SCMP_ACT_ERRNO");
                EXPECT_STREQ(action_for(some, gated[i].call), "SCMP_ACT_ALLOW");
                EXPECT_STREQ(action_for(all, gated[i].call), "SCMP_ACT_ALLOW");
                json_decref(some);
        }
        for (size_t i = 0; i < N_ELEMENTS(never); i++)
                EXPECT_STREQ(action_for(all, never[i]), "SCMP_ACT_ERRNO");
        EXPECT_STREQ(action_for(none, "openat"), "SCMP_ACT_ALLOW");
        EXPECT_STREQ(action_for(none, "ptrace"), "SCMP_ACT_ALLOW");
        EXPECT_STREQ(action_for(none, "a_call_of_the_future"), NULL);
        json_decref(none);
        json_decref(all);
}

TEST(invalid_profile_is_refused_with_its_path)
{
        static const struct {
                const char *json;
                const char *sentence;
        } cases[] = {
                { "{", "is not valid JSON: 1:1" },
                { "[]", "has no defaultAction" },
                { "{\"defaultAction\":1}", "has no defaultAction" },
        };
        cleanup_free char *path = path_join(test_directory(), "profile.json");

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_error Error error = ERROR_NULL;
                SeccompProfile *profile = NULL;

                REQUIRE(write_file_atomic_at(AT_FDCWD, path, cases[i].json, strlen(cases[i].json),
                                             0644) == 0);
                EXPECT_EQ(seccomp_profile_load(AT_FDCWD, path, &profile, &error), -EINVAL);
                EXPECT(error.message && strstr(error.message, path) &&
                       strstr(error.message, cases[i].sentence));
        }
}

static void put_profile(const char *path, const char *text) {
        REQUIRE(write_file_atomic_at(AT_FDCWD, path, text, strlen(text), 0644) == 0);
}

static void expect_first(const char *const *paths, const char *default_action) {
        cleanup_with(seccomp_profile_freep) SeccompProfile *profile = NULL;
        json_t *resolved;

        REQUIRE(seccomp_profile_load_first(paths, &profile) == 0);
        resolved = seccomp_profile_resolve(profile, 0, false);
        EXPECT_STREQ(json_string_value(json_object_get(resolved, "defaultAction")), default_action);
        json_decref(resolved);
}

TEST(first_existing_profile_is_used_and_a_broken_one_is_not_skipped)
{
        cleanup_free char *missing = path_join(test_directory(), "missing.json"),
                          *first = path_join(test_directory(), "first.json"),
                          *second = path_join(test_directory(), "second.json");
        const char *const paths[] = { missing, first, second, NULL };

        put_profile(second, "{\"defaultAction\":\"SCMP_ACT_LOG\",\"syscalls\":[]}");
        expect_first(paths, "SCMP_ACT_LOG");
        put_profile(first, "{\"defaultAction\":\"SCMP_ACT_KILL\",\"syscalls\":[]}");
        expect_first(paths, "SCMP_ACT_KILL");
        put_profile(first, "not a profile");
        expect_first(paths, "SCMP_ACT_ERRNO");
        REQUIRE(unlink(first) == 0 && unlink(second) == 0);
        expect_first(paths, "SCMP_ACT_ERRNO");
}
