/* SPDX-License-Identifier: Apache-2.0 */

/* While entries are added to a directory of the layer, a second process replaces the directory with
 * a link that leads out of the layer, and back again, as fast as possible. */

#include "agent/image-helper/unpack/layer-tree.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "tests/test.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* MAINSTAY_RACES, or the number that takes about a second. */
static unsigned races(void) {
        const char *wanted = getenv("MAINSTAY_RACES");

        return wanted ? (unsigned) strtoul(wanted, NULL, 10) : 20000;
}

static int open_test_directory(const char *name) {
        cleanup_free char *path = path_join(test_directory(), name);
        int fd = path ? open_directory_at(AT_FDCWD, path, 0700) : -ENOMEM;

        REQUIRE(fd >= 0);
        return fd;
}

static size_t count_entries_below(int fd, const char *name) {
        int below = openat(fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        cleanup_closedir DIR *dir = below >= 0 ? fdopendir(below) : NULL;
        const struct dirent *entry;
        size_t n = 0;

        REQUIRE(dir != NULL);
        while ((entry = readdir(dir)))
                n += entry->d_name[0] != '.';
        return n;
}

static pid_t swap_without_end(int fd, unsigned *swaps) {
        pid_t pid = fork();

        REQUIRE(pid >= 0);
        if (pid > 0)
                return pid;
        for (;;)
                if (renameat2(fd, "d", fd, "e", RENAME_EXCHANGE) == 0)
                        __atomic_fetch_add(swaps, 1, __ATOMIC_RELAXED);
}

/* True if the entry was added. */
static bool put_test_entry(LayerTree *tree, unsigned i) {
        cleanup_error Error error = ERROR_NULL;
        char name[32];
        int fd;

        if (layer_tree_enter(tree, "d/s", &error) < 0)
                return false;
        (void) snprintf(name, sizeof(name), "f%u", i);
        fd = openat(layer_tree_fd(tree), name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd >= 0)
                (void) close(fd);
        layer_tree_leave(tree);
        return fd >= 0;
}

TEST(no_entry_leads_out_of_the_layer_when_a_directory_is_replaced_with_a_link)
{
        cleanup_close int layer = open_test_directory("layer"),
                          outside = open_test_directory("outside");
        unsigned *swaps = mmap(NULL, sizeof(*swaps), PROT_READ | PROT_WRITE,
                               MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        const LayerView below = { 0 };
        cleanup_with(layer_tree_freep) LayerTree *tree = NULL;
        unsigned n_races = races(), n_put = 0, n_out = 0;
        pid_t swapper;

        REQUIRE(swaps != MAP_FAILED);
        REQUIRE(mkdirat(layer, "d", 0700) == 0 && mkdirat(layer, "d/s", 0700) == 0);
        REQUIRE(mkdirat(outside, "s", 0700) == 0 && mkdirat(outside, "canary", 0700) == 0);
        REQUIRE(symlinkat("../outside", layer, "e") == 0);
        REQUIRE(layer_tree_new(layer, &below, &tree) >= 0);
        swapper = swap_without_end(layer, swaps);
        for (unsigned i = 0; i < n_races; i++) {
                n_put += put_test_entry(tree, i);
                /* The link does lead out of the layer, so that the test can fail. */
                n_out += faccessat(layer, "d/canary", F_OK, 0) == 0;
        }
        REQUIRE(kill(swapper, SIGKILL) == 0 && waitpid(swapper, NULL, 0) == swapper);
        EXPECT(*swaps > 0);
        EXPECT(n_put > 0);
        EXPECT(n_out > 0);
        EXPECT_EQ(count_entries_below(outside, "s"), 0);
        EXPECT_EQ(count_entries_below(outside, "."), 2);
        (void) munmap(swaps, sizeof(*swaps));
}
