/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/model/cdi.h"

#include "common/cleanup.h"
#include "common/strv.h"
#include "tests/test.h"

#include <errno.h>

TEST(a_qualified_name_is_a_vendor_a_class_and_a_device)
{
        static const char *const good[] = {
                "vendor.com/class=name",
                "v/c=d",
                "v/c=0",
                "vendor.com/net=eth0:1",
                "Vendor_1.a-b/c.d=a_b",
                "nvidia.com/gpu=all",
                "v/c1=a.b-c",
        };
        static const char *const bad[] = {
                "",
                "name",
                "vendor.com",
                "vendor.com/class",
                "vendor.com/class=",
                "/c=d",
                "v/=d",
                "v/c/e=d",
                "1v/c=d",
                "v/1c=d",
                "v-/c=d",
                "v/c-=d",
                "v/c=d=",
                "v/c=-d",
                "v/c=d d",
                "v/c=d/e",
                "v:1/c=d",
                " v/c=d",
                "=",
                "/",
                "v/c=d\n",
        };

        for (size_t i = 0; i < N_ELEMENTS(good); i++)
                if (check_cdi_qualified_name(good[i], NULL) < 0)
                        test_fail(__FILE__, __LINE__, good[i], "is refused");
        for (size_t i = 0; i < N_ELEMENTS(bad); i++)
                if (check_cdi_qualified_name(bad[i], NULL) != -EINVAL)
                        test_fail(__FILE__, __LINE__, bad[i], "is accepted");
}

TEST(an_annotation_is_split_at_its_commas)
{
        cleanup_strv char **names = NULL;
        cleanup_error Error error = ERROR_NULL;

        REQUIRE(cdi_annotation_split("v/c=a,v/c=b", &names, NULL) == 0);
        EXPECT_EQ(strv_length(names), 2);
        EXPECT_STREQ(names[1], "v/c=b");
        EXPECT_EQ(cdi_annotation_split("v/c=a,", &names, &error), -EINVAL);
        EXPECT_STREQ(error.message,
                     "must be the name of a CDI device, vendor.com/class=name, not ''");
}

TEST(device_names_of_several_annotations_are_unique_and_ordered_by_key)
{
        KeyValue annotations[] = {
                { (char[]){ "app" }, (char[]){ "x" } },
                { (char[]){ "cdi.k8s.io/a" }, (char[]){ "v/c=2,v/c=1" } },
                { (char[]){ "cdi.k8s.io/b" }, (char[]){ "v/c=1,w/c=1" } },
        };
        const Pod pod = { .metadata.annotations = { annotations, N_ELEMENTS(annotations) } };
        const Container container = { 0 };
        cleanup_strv char **names = NULL;

        EXPECT_STREQ(pod_cdi_annotation(&pod)->key, "cdi.k8s.io/a");
        REQUIRE(container_cdi_names(&pod, &container, &names, NULL) == 0);
        REQUIRE(strv_length(names) == 3);
        EXPECT_STREQ(names[0], "v/c=2");
        EXPECT_STREQ(names[1], "v/c=1");
        EXPECT_STREQ(names[2], "w/c=1");
}

TEST(an_annotation_that_is_invalid_is_named)
{
        KeyValue annotations[] = { { (char[]){ "cdi.k8s.io/a" }, (char[]){ "gpu" } } };
        const Pod pod = { .metadata.annotations = { annotations, N_ELEMENTS(annotations) } };
        const Container container = { 0 };
        cleanup_strv char **names = NULL;
        cleanup_error Error error = ERROR_NULL;

        EXPECT_EQ(container_cdi_names(&pod, &container, &names, &error), -EINVAL);
        EXPECT_STREQ(error.message, "annotation cdi.k8s.io/a: must be the name of a CDI device, "
                                    "vendor.com/class=name, not 'gpu'");
}

TEST(only_annotations_of_cdi_make_pods_differ)
{
        KeyValue one[] = { { (char[]){ "app" }, (char[]){ "x" } },
                           { (char[]){ "cdi.k8s.io/a" }, (char[]){ "v/c=1" } } };
        KeyValue two[] = { { (char[]){ "cdi.k8s.io/a" }, (char[]){ "v/c=1" } } };
        KeyValue three[] = { { (char[]){ "cdi.k8s.io/a" }, (char[]){ "v/c=2" } } };
        const Pod a = { .metadata.annotations = { one, 2 } };
        const Pod b = { .metadata.annotations = { two, 1 } };
        const Pod c = { .metadata.annotations = { three, 1 } };
        const Pod none = { 0 };

        EXPECT(pod_cdi_annotations_equal(&a, &b));
        EXPECT(!pod_cdi_annotations_equal(&a, &c));
        EXPECT(!pod_cdi_annotations_equal(&a, &none));
        EXPECT(pod_cdi_annotations_equal(&none, &none));
}

TEST(limits_that_name_a_device_apply_to_their_container)
{
        KeyValue annotations[] = { { (char[]){ "cdi.k8s.io/a" }, (char[]){ "v/c=1" } } };
        const Pod pod = { .metadata.annotations = { annotations, 1 } };
        ExtendedResource limits[] = { { (char[]){ "v/c=0" }, { .value = 0 } },
                                      { (char[]){ "v/c=1" }, { .value = 1 } },
                                      { (char[]){ "v/c=2" }, { .value = 7 } },
                                      { (char[]){ "v/d" }, { .value = 1 } } };
        const Container container = { .resources.limits.extended = { limits, N_ELEMENTS(limits) } };
        cleanup_strv char **names = NULL;

        REQUIRE(container_cdi_names(&pod, &container, &names, NULL) == 0);
        REQUIRE(strv_length(names) == 2);
        EXPECT_STREQ(names[0], "v/c=1");
        EXPECT_STREQ(names[1], "v/c=2");
}
