/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/bundle/huge-pages.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "tests/test.h"

#include <fcntl.h>
#include <sys/stat.h>

#define QUANTITY(amount) \
        { (char[]){ #amount }, amount, INT64_C(1000) * (amount) }

static Container containers[] = {
        { .name = (char[]){ "a" }, .resources.limits.huge_pages_2mi = QUANTITY(4194304) },
        { .name = (char[]){ "b" }, .resources.limits.huge_pages_2mi = QUANTITY(2097152) },
};
static const PodSpec spec = { .containers = { containers, N_ELEMENTS(containers) } };

/* A kernel with this number of 2 MiB pages and no other page sizes. */
static void make_kernel(char directory[], const char *count) {
        cleanup_free char *path = NULL;
        cleanup_close int fd = -EBADF;

        REQUIRE(mkdtemp(directory) != NULL);
        path = path_join(directory, "hugepages-2048kB");
        REQUIRE(path && mkdir(path, 0700) == 0);
        fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        REQUIRE(fd >= 0 &&
                write_file_atomic_at(fd, "nr_hugepages", count, strlen(count), 0600) == 0);
}

TEST(too_few_huge_pages_are_an_error)
{
        static const struct {
                const char *count, *verdict;
        } cases[] = {
                { "3\n", NULL },
                { "2\n", "Node didn't have enough resource: hugepages-2Mi, requested: 6291456, "
                         "capacity: 4194304" },
                { "0\n", "Node didn't have enough resource: hugepages-2Mi, requested: 6291456, "
                         "capacity: 0" },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                char directory[] = "/tmp/mainstay-huge-XXXXXX";
                cleanup_error Error error = ERROR_NULL;
                int r;

                make_kernel(directory, cases[i].count);
                r = huge_pages_check(&spec, directory, &error);
                EXPECT_EQ(r, cases[i].verdict ? -ENOSPC : 0);
                EXPECT_STREQ(r < 0 ? error_message(&error, r) : NULL, cases[i].verdict);
                EXPECT_EQ(remove_tree_at(AT_FDCWD, directory), 0);
        }
}

TEST(every_huge_page_size_is_limited_and_unrequested_ones_to_zero)
{
        const unsigned both =
                HUGE_PAGES_BIT(RESOURCE_HUGE_PAGES_1GI) | HUGE_PAGES_BIT(RESOURCE_HUGE_PAGES_2MI);
        CgroupValue values[N_RESOURCE_TYPES];
        json_t *limits = huge_pages_limits(&spec, &containers[1], both);
        cleanup_free char *text = json_dumps(limits, JSON_COMPACT);

        REQUIRE(huge_pages_cgroup_values(&spec, 2, both, values) == 2);
        EXPECT_STREQ(values[0].file, "hugetlb.1GB.max");
        EXPECT_STREQ(values[0].value, "0");
        EXPECT_STREQ(values[1].file, "hugetlb.2MB.max");
        EXPECT_STREQ(values[1].value, "6291456");
        REQUIRE(huge_pages_cgroup_values(&spec, 1, both, values) == 2);
        EXPECT_STREQ(values[1].controller, "hugetlb");
        EXPECT_STREQ(values[1].file, "hugetlb.2MB.limit_in_bytes");
        EXPECT_EQ(huge_pages_cgroup_values(&spec, 1, 0, values), 0);
        EXPECT_STREQ(text, "[{\"pageSize\":\"1GB\",\"limit\":0},"
                           "{\"pageSize\":\"2MB\",\"limit\":2097152}]");
        json_decref(limits);
        EXPECT(huge_pages_limits(&spec, &containers[0], 0) == NULL);
}

TEST(pod_limit_applies_to_its_cgroup_and_to_containers_without_a_limit)
{
        Container plain[] = { { .name = (char[]){ "c" } } };
        ResourceRequirements resources = { .limits.huge_pages_2mi = QUANTITY(8388608) };
        const PodSpec whole = { .containers = { plain, 1 }, .resources = &resources };
        const unsigned mask = HUGE_PAGES_BIT(RESOURCE_HUGE_PAGES_2MI);
        CgroupValue values[N_RESOURCE_TYPES];
        json_t *limits = huge_pages_limits(&whole, &plain[0], mask);
        cleanup_free char *text = json_dumps(limits, JSON_COMPACT);

        REQUIRE(huge_pages_cgroup_values(&whole, 2, mask, values) == 1);
        EXPECT_STREQ(values[0].value, "8388608");
        EXPECT_STREQ(text, "[{\"pageSize\":\"2MB\",\"limit\":8388608}]");
        json_decref(limits);
}

TEST(empty_dir_in_huge_pages_has_the_requested_page_size)
{
        EXPECT_STREQ(huge_pages_mount_option(&spec, MEDIUM_HUGE_PAGES), "pagesize=2M");
        EXPECT_STREQ(huge_pages_mount_option(&spec, MEDIUM_HUGE_PAGES_2MI), "pagesize=2M");
        EXPECT(huge_pages_mount_option(&spec, MEDIUM_HUGE_PAGES_1GI) == NULL);
}
