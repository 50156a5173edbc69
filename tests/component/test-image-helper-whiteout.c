/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image-helper/unpack/layer-tree.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "tests/failing-readdir.h"
#include "tests/test.h"

#include <fcntl.h>
#include <sys/stat.h>

TEST(a_directory_that_cannot_be_listed_is_not_made_opaque)
{
        cleanup_close int fd = open(test_directory(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        const LayerView below = { 0 };
        LayerTree *tree = NULL;

        REQUIRE(fd >= 0 && layer_tree_new(fd, &below, &tree) == 0);
        REQUIRE(layer_tree_enter(tree, "d", NULL) == 0);
        REQUIRE(mknodat(layer_tree_fd(tree), "hidden", S_IFCHR, 0) == 0);
        readdir_calls_left = 0;
        EXPECT_EQ(layer_tree_apply_opaque(tree, NULL), -EIO);
        readdir_calls_left = -1;
        EXPECT_EQ(layer_tree_apply_opaque(tree, NULL), 0);
        EXPECT(faccessat(fd, "d/hidden", F_OK, AT_SYMLINK_NOFOLLOW) < 0);
        layer_tree_leave(tree);
        layer_tree_free(tree);
}
