/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image/image-set.h"
#include "common/cleanup.h"
#include "tests/test.h"

#define DIGEST "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define OTHER  "sha256:f3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

TEST(a_set_of_images_contains_each_normalized_reference_once)
{
        cleanup_with(image_set_done) ImageSet set = IMAGE_SET_NULL;

        image_set_add(&set, "busybox");
        image_set_add(&set, "docker.io/library/busybox:latest");
        image_set_add(&set, "busybox:1");
        image_set_add(&set, "Not An Image");
        image_set_add(&set, NULL);
        EXPECT_EQ(set.n, 2);
        EXPECT(image_set_contains(&set, "docker.io/library/busybox:latest"));
        EXPECT(image_set_contains(&set, "docker.io/library/busybox:1"));
        EXPECT(!image_set_contains(&set, "docker.io/library/busybox:2"));
}

TEST(a_set_of_images_contains_digests_unchanged)
{
        cleanup_with(image_set_done) ImageSet set = IMAGE_SET_NULL;

        image_set_add(&set, DIGEST);
        EXPECT(image_set_contains(&set, DIGEST));
        EXPECT(!image_set_contains(&set, OTHER));
}

TEST(a_set_of_many_images_contains_all_of_them)
{
        cleanup_with(image_set_done) ImageSet set = IMAGE_SET_NULL;
        char name[64];

        for (unsigned i = 0; i < 1000; i++) {
                (void) snprintf(name, sizeof(name), "app:%u", i * 7919 % 1000);
                image_set_add(&set, name);
        }
        EXPECT_EQ(set.n, 1000);
        for (unsigned i = 0; i < 1000; i++) {
                (void) snprintf(name, sizeof(name), "docker.io/library/app:%u", i);
                EXPECT(image_set_contains(&set, name));
        }
        EXPECT(!image_set_contains(&set, "docker.io/library/app:1000"));
}
